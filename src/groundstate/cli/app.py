"""The commands and their options; what they do is imported when they run, so that help is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from groundstate.cli.boundary import Boundary

app = typer.Typer(
    name="groundstate",
    cls=Boundary,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help needs no import of rich
    help="All of machine learning as one energy and three operations: parametrise, learn, infer.",
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Same seed, same numbers.")]
Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:1, mps or auto.")]
Quiet = Annotated[bool, typer.Option("--no-progress", help="Show no progress.")]
TableName = Annotated[str, typer.Argument(metavar="TABLE", help="File, or built-in name: iris.")]
Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="File written by fit or save: model.gs.")
]
Out = Annotated[str, typer.Option("--out", help=".csv, .jsonl or .parquet file; - for the screen.")]


def _version(wanted: bool) -> None:
    if wanted:
        from groundstate import __version__

        typer.echo(f"groundstate {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Choose a command."""


@app.command()
def fit(
    table: TableName,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Column to predict: name, position, last or none."),
    ] = None,
    model: Annotated[
        str, typer.Option("--model", "-m", help="auto, or names separated by commas.")
    ] = "auto",
    out: Annotated[str, typer.Option("--out", "-o", help="Folder to write.")] = "groundstate-out",
    test: Annotated[float, typer.Option("--test", help="Share of rows set aside.")] = 0.25,
    metric: Annotated[str | None, typer.Option("--metric", help="What to rank by.")] = None,
    folds: Annotated[int, typer.Option("--folds", help="Parts of the cross-validation.")] = 5,
    workers: Annotated[int, typer.Option("--workers", help="Processes; -1 for every core.")] = 1,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Find the best model for a table, and how good it is on rows it never saw.

    Audits the table, sets test rows aside, compares candidates on the rest with error bars, looks
    at the test rows once, and writes model.gs, report.html, report.json and reproduce.py.
    Without a target: which density describes the rows, their groups and the odd ones out.
    """
    from groundstate.cli.fit import fit as run

    run(table, target, model, out, test, metric, folds, workers, seed, device, json, no_progress)


@app.command()
def predict(
    model: Model,
    table: TableName,
    out: Out = "-",
    proba: Annotated[bool, typer.Option("--proba", help="Add class probabilities.")] = False,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Predict the target of every row with a saved model."""
    from groundstate.cli.answer import predict as run

    run(model, table, out, proba, device, json, no_progress)


@app.command()
def infer(
    model: Model,
    table: TableName,
    free: Annotated[str, typer.Option("--free", help="Variable asked for: x, y, z or the target.")],
    mode: Annotated[str, typer.Option("--mode", help="min, marginal or sample.")] = "min",
    n: Annotated[int, typer.Option("-n", min=1, help="Draws per row, for sample.")] = 1,
    temperature: Annotated[float, typer.Option("--temperature", "-T", help="Of the law.")] = 1.0,
    out: Out = "-",
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Fix the columns of a table and minimise, marginalise or sample the rest."""
    from groundstate.cli.answer import infer as run

    run(model, table, free, mode, n, temperature, out, seed, device, json, no_progress)


@app.command()
def sample(
    model: Model,
    n: Annotated[int, typer.Option("-n", min=1, help="Number of rows.")] = 10,
    out: Out = "-",
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Draw new rows from a saved model that has a law of its rows."""
    from groundstate.cli.answer import sample as run

    run(model, n, out, seed, device, json, no_progress)


@app.command()
def models(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A model, or a saved file, to explain.")
    ] = None,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """List the models, or explain one: its energy, rule, solver and inference."""
    from groundstate.cli.models import models as run

    run(name, json)


@app.command(name="run")
def run_experiments(
    id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Such as ENE-X-collapse.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List what there is.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Run every experiment.")] = False,
    theme: Annotated[str | None, typer.Option("--theme", help="Only this theme.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repeats, same tolerances.")] = False,
    pictures: Annotated[
        str | None, typer.Option("--pictures", help="Folder for the pictures (SVG).")
    ] = None,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Run an experiment, or all, and print whether its claims hold (exit code 1 if not)."""
    from groundstate.cli.run import run

    run(id, listed, everything, theme, quick, pictures, seed, device, json, no_progress)


@app.command()
def bench(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A benchmark.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List what there is.")] = False,
    sizes: Annotated[str | None, typer.Option("--sizes", help="Labels with commas.")] = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Rounds.")] = 5,
    out: Annotated[
        str | None, typer.Option("--out", help="CSV file; - for none; default bench/results.")
    ] = None,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Measure groundstate beside installed peers: time, memory and score."""
    from groundstate.cli.bench import bench as run

    run(name, listed, sizes, repeats, out, seed, device, json, no_progress)


__all__ = ["app"]

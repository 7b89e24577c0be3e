"""The commands and their options; what they do is imported when they run, so that help is quick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from groundstate.cli.ask_options import export, generate, impute, infer, predict, sample, score
from groundstate.cli.boundary import Boundary
from groundstate.cli.drift_options import drift
from groundstate.cli.options import (
    Ahead,
    Aside,
    Budget,
    Design,
    Device,
    Edges,
    FalseAlarm,
    First,
    Folds,
    Groups,
    Json,
    Labels,
    LedgerFile,
    Level,
    Metric,
    Missed,
    NewRows,
    Params,
    PartsOf,
    Positive,
    Processes,
    Quick,
    Quiet,
    Repeats,
    Resamples,
    Second,
    Seed,
    Seeds,
    TableName,
    TableOrModel,
    Target,
    Thorough,
    Time,
    Truth,
    Tune,
    Weights,
    Without,
    Workers,
)
from groundstate.cli.solve_options import solve

app = typer.Typer(
    name="groundstate",
    cls=Boundary,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help needs no import of rich
    help="All of machine learning as one energy and three operations: parametrise, learn, infer.",
)


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


def _job(keep_model: bool) -> Callable[..., None]:
    """The command that assesses a table, with or without keeping the model."""

    def job(
        table: TableName,
        target: Target = None,
        model: Annotated[
            str,
            typer.Option("--model", "-m", help="auto, all, names with commas, or module:Class."),
        ] = "auto",
        out: Annotated[
            str, typer.Option("--out", "-o", help="Folder to write.")
        ] = "groundstate-out",
        metric: Metric = None,
        design: Design = "auto",
        test: Aside = None,
        groups: Groups = None,
        time: Time = None,
        weights: Weights = None,
        edges: Edges = None,
        positive: Positive = None,
        cost_fp: FalseAlarm = None,
        cost_fn: Missed = None,
        tune: Tune = 10,
        params: Params = None,
        seeds: Seeds = None,
        bootstrap: Resamples = None,
        folds: PartsOf = None,
        repeats: Repeats = None,
        level: Level = 0.95,
        budget: Budget = None,
        quick: Quick = False,
        thorough: Thorough = False,
        without: Without = None,
        ledger: LedgerFile = None,
        strict: Annotated[
            bool, typer.Option("--strict", help="Exit with 4 when a column or row leaks.")
        ] = False,
        workers: Processes = None,
        forecast: Ahead = None,
        new_rows: NewRows = False,
        seed: Seed = 0,
        device: Device = None,
        json: Json = False,
        no_progress: Quiet = False,
    ) -> None:
        if new_rows:
            from groundstate.cli.twin import refuse, twin

            refuse({
                "--target": None if target == "none" else target, "--metric": metric, "--test": test,
                "--groups": groups, "--time": time, "--weights": weights, "--edges": edges,
                "--positive": positive, "--cost-fp": cost_fp, "--cost-fn": cost_fn, "--params": params,
                "--seeds": seeds, "--bootstrap": bootstrap, "--folds": folds, "--repeats": repeats,
                "--budget": budget, "--quick": quick, "--thorough": thorough, "--ledger": ledger,
                "--strict": strict, "--workers": workers, "--forecast": forecast,
            })  # fmt: skip
            twin(
                table, out, keep_model=keep_model, model=model, level=level, seed=seed, device=device,
                json=json, no_progress=no_progress,
            )  # fmt: skip
            return
        if forecast is not None:
            from groundstate.cli import forecast as series

            series.refuse({
                "--metric": metric, "--test": test, "--weights": weights, "--edges": edges,
                "--positive": positive, "--cost-fp": cost_fp, "--cost-fn": cost_fn, "--params": params,
                "--seeds": seeds, "--bootstrap": bootstrap, "--folds": folds, "--repeats": repeats,
                "--budget": budget, "--quick": quick, "--thorough": thorough, "--strict": strict,
                "--without": without, "--workers": workers,
            })  # fmt: skip
            series.forecast(
                table, forecast, out, keep_model=keep_model, model=model, id=groups, time=time,
                target=target, level=level, seed=seed, device=device, ledger=ledger or "auto",
                json=json, no_progress=no_progress,
            )  # fmt: skip
            return
        from groundstate.cli.fit import fit as run

        run(
            table, target, out, keep_model=keep_model, model=model, metric=metric, design=design,
            test=test, edges=edges, groups=groups, time=time, weights=weights, positive=positive,
            cost_fp=cost_fp, cost_fn=cost_fn, tune=tune, params=params, seeds=seeds,
            bootstrap=bootstrap, folds=folds, repeats=repeats, level=level, budget=budget,
            quick=quick, thorough=thorough, without=without, ledger=ledger, strict=strict,
            workers=workers,
            seed=seed, device=device, json=json,
            no_progress=no_progress,
        )  # fmt: skip

    return job


app.command(
    "fit",
    help="""Find the best model for a table, and how good it is on rows it never saw.

    Audits the table, sets rows aside (or judges every row in turn when there are few), compares
    candidates with error bars, tunes the best, looks at the held rows once, and writes model.gs,
    report.html, report.json and reproduce.py: a first answer in seconds, which the evidence then
    fills in place. Stopping it keeps what is there. Without a target: which density describes the rows,
    their groups and the odd ones out. With --generate: which generator makes rows like these, how
    faithful and how private, and a synthetic twin. Exit code 3: not better than a constant answer.
    """,
)(_job(keep_model=True))
app.command("assess", help="As fit, without keeping a model: the report alone.")(
    _job(keep_model=False)
)
app.command()(solve)


@app.command()
def tune(
    table: TableName,
    model: Annotated[str, typer.Option("--model", "-m", help="The model to tune.")],
    target: Target = None,
    trials: Annotated[int, typer.Option("--trials", min=1, help="Settings to try.")] = 50,
    storage: Annotated[
        str | None, typer.Option("--storage", help="File or URL that keeps the search.")
    ] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="JSON file of settings.")] = None,
    metric: Metric = None,
    design: Design = "auto",
    test: Annotated[float | None, typer.Option("--test", help="Share of rows set aside.")] = None,
    groups: Groups = None,
    time: Time = None,
    weights: Weights = None,
    folds: Folds = 5,
    budget: Budget = None,
    workers: Workers = 1,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Search the settings of a model; a search with --storage goes on where it stopped."""
    from groundstate.cli.tune import tune as run

    run(
        table, target, model, trials, storage, out, budget, json, no_progress, metric=metric,
        design=design, test=test, groups=groups, time=time, sample_weight=weights, folds=folds,
        seed=seed, workers=workers, device=device,
    )  # fmt: skip


@app.command()
def compare(
    table: TableOrModel,
    a: First,
    b: Second,
    target: Truth = None,
    metric: Metric = None,
    groups: Groups = None,
    level: Level = 0.95,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Which of two models is better on the same rows, and how sure that is.

    The table may also come last: groundstate compare old.gs new.gs test.csv.
    """
    from groundstate.cli.compare import compare as run

    run(table, a, b, target, metric, groups, level, seed, device, json)


@app.command()
def board(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="Folder of labels and submissions, or of runs.")
    ] = ".",
    labels: Labels = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Its column; the last by default.")
    ] = None,
    metric: Metric = None,
    mechanism: Annotated[
        str,
        typer.Option("--mechanism", help="What is reported to submissions: full, ladder or split."),
    ] = "full",
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Show all scores on the page, at the end.")
    ] = False,
    final: Annotated[
        bool, typer.Option("--final", help="Rank on DIR/fresh.csv by DIR/fresh/NAME.csv, once.")
    ] = False,
    level: Level = 0.95,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Rank submissions by hidden labels, with intervals; without labels, rank the runs in a folder.

    DIR holds test.csv (the truth) and submissions/NAME.csv (one prediction for each of its rows).
    Every look is written to DIR/board.ledger.jsonl, the page to show is DIR/board.html.
    """
    from groundstate.cli.boards import board as run

    run(
        folder, json, labels, target=target, metric=metric, mechanism=mechanism,
        reveal=reveal or None, final=final, level=level, seed=seed,
    )  # fmt: skip


@app.command()
def ledger(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Such as table.csv.ledger.jsonl.")],
    metric: Metric = None,
    level: Level = 0.95,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """List the looks at test rows, with intervals corrected for their number."""
    from groundstate.cli.boards import ledger as run

    run(file, metric, level, json)


for _command in (predict, score, impute, infer, sample, generate, export, drift):
    app.command()(_command)


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
    quick: Annotated[
        bool, typer.Option("--quick", help="Less data or fewer repeats, same tolerances.")
    ] = False,
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


@app.command()
def studio(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODEL]...", help="Saved models, or folders that fit wrote."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", help="Rows to draw with the models: a table or pictures."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Its column of labels, for colours.")
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")
    ] = 8484,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only say where it is.")] = False,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Look at models in the browser: inside a network, the plane of codes, the energy, learning.

    Answers on this machine only, and works without a network. Without a model it offers examples.
    """
    from groundstate.cli.web.studio import studio as run

    run(models or [], data, target, port, not no_browser, device, json)

"""The options of commands that ask a saved model or a folder that ``fit`` wrote."""

from __future__ import annotations

from typing import Annotated

import typer

from groundstate.cli.options import (
    Device,
    Edges,
    Groups,
    Json,
    Level,
    Model,
    Out,
    Positive,
    Quiet,
    Seed,
    TableName,
    saved,
)


def predict(
    model: Model,
    table: TableName,
    out: Out = "-",
    proba: Annotated[bool, typer.Option("--proba", help="Add class probabilities.")] = False,
    interval: Annotated[
        bool, typer.Option("--interval", help="Add low and high: an interval that holds the value.")
    ] = False,
    set_of: Annotated[
        bool, typer.Option("--set", help="Add the set of classes that holds the label.")
    ] = False,
    level: Annotated[
        float | None,
        typer.Option(
            "--level",
            help="Share of rows whose truth intervals and sets hold; usually 0.9, and for a "
            "forecaster as in its fit.",
        ),
    ] = None,
    why: Annotated[
        bool, typer.Option("--why", help="Add the columns that moved each prediction most.")
    ] = False,
    background: Annotated[
        str | None, typer.Option("--background", help="Typical rows that --why compares with.")
    ] = None,
    edges: Edges = None,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Predict the target of every row with a saved model.

    Of a folder of pictures a segmenter draws masks into the folder --out, and a detector lists boxes;
    a forecaster goes on behind the end of the series of a table.
    """
    from groundstate.cli.ask import predict as run

    run(
        model, table, out, proba, device, json, no_progress, edges, interval, set_of, level,
        why=why, background=background, seed=seed,
    )  # fmt: skip


def score(
    model: Model,
    table: TableName,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column of the truth; the model's own.")
    ] = None,
    train: Annotated[
        str | None, typer.Option("--train", help="Table the model learned from, to see drift.")
    ] = None,
    positive: Positive = None,
    groups: Groups = None,
    level: Level = 0.95,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Score a saved model on a table with the truth: every metric with its interval, coverage.

    Says too whether that agrees with what the study promised, and whether the model learned from
    some of these rows.
    """
    from groundstate.cli.score import score as run

    run(model, table, target, positive, groups, level, seed, device, json, train)


def impute(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|TABLE", help="A saved model, or the table alone.", callback=saved
        ),
    ],
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="The table with empty cells.")
    ] = None,
    mode: Annotated[
        str, typer.Option("--mode", help="min (the best value) or sample (a drawn one).")
    ] = "min",
    out: Out = "-",
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Fill the empty cells of a table; every other cell stays as it is.

    With a model of the rows its distribution fills them, with any other model the empty cells of its
    target; without a model a mixture of Gaussians fitted to the table itself.
    """
    from groundstate.cli.impute import impute as run

    run(model, table, mode, out, seed, device, json, no_progress)


def export(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="What fit wrote, or the model.gs in it.")
    ] = "groundstate-out",
    out: Annotated[str, typer.Option("--out", help="A .py file; - for the screen.")] = "-",
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Print the Python script that gives the numbers of a report again."""
    from groundstate.cli.export import export as run

    run(folder, out, json)


def infer(
    model: Model,
    table: TableName,
    free: Annotated[
        str, typer.Option("--free", help="Variable asked for: x (gaps), y, z or the target.")
    ] = "x",
    mode: Annotated[str, typer.Option("--mode", help="min, marginal or sample.")] = "min",
    n: Annotated[int, typer.Option("-n", min=1, help="Draws per row, for sample.")] = 1,
    temperature: Annotated[
        float, typer.Option("--temperature", "-T", help="Of the distribution.")
    ] = 1.0,
    out: Out = "-",
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Fix the columns of a table and minimise, marginalise or sample the rest."""
    from groundstate.cli.ask import infer as run

    run(model, table, free, mode, n, temperature, out, seed, device, json, no_progress)


def sample(
    model: Model,
    n: Annotated[int, typer.Option("-n", min=1, help="Number of rows.")] = 10,
    out: Out = "-",
    condition: Annotated[
        str | None,
        typer.Option(
            "--y", help="Label of the rows, or of a table COLUMN=VALUE,...: the rest is drawn."
        ),
    ] = None,
    temperature: Annotated[
        float, typer.Option("--temperature", "-T", help="Of the distribution.")
    ] = 1.0,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Draw new rows from a saved model that has a distribution of its rows.

    Rows of a table go to a file such as new.csv, pictures to a folder.
    """
    from groundstate.cli.ask import sample as run

    run(model, n, out, seed, device, json, no_progress, condition, temperature)


def generate(
    model: Model,
    prompt: Annotated[str, typer.Option("--prompt", "-p", help="How the text begins.")] = "",
    n: Annotated[int, typer.Option("-n", min=1, help="Number of texts.")] = 1,
    tokens: Annotated[int, typer.Option("--tokens", min=1, help="New tokens at most.")] = 200,
    method: Annotated[str, typer.Option("--method", help="sample, greedy or beam.")] = "sample",
    temperature: Annotated[float, typer.Option("--temperature", "-T", help="0: greedy.")] = 1.0,
    top_k: Annotated[int | None, typer.Option("--top-k", min=1, help="Best tokens kept.")] = None,
    top_p: Annotated[float | None, typer.Option("--top-p", help="Probability kept.")] = None,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Continue a text with a saved language model."""
    from groundstate.cli.ask import generate as run

    run(model, prompt, n, tokens, method, temperature, top_k, top_p, seed, device, json)

"""The options of ``groundstate predict``, ``infer``, ``sample`` and ``generate``."""

from __future__ import annotations

from typing import Annotated

import typer

from groundstate.cli.options import Device, Edges, Json, Model, Out, Quiet, Seed, TableName


def predict(
    model: Model,
    table: TableName,
    out: Out = "-",
    proba: Annotated[bool, typer.Option("--proba", help="Add class probabilities.")] = False,
    edges: Edges = None,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Predict the target of every row with a saved model."""
    from groundstate.cli.ask import predict as run

    run(model, table, out, proba, device, json, no_progress, edges)


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
        str | None, typer.Option("--y", help="Label of the rows, for a model fitted with one.")
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

"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def saved(path: str) -> str:
    """The model in a folder that ``fit`` wrote, where a folder is named."""
    inside = Path(path) / "model.gs"
    return str(inside) if inside.is_file() else path


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Same seed, same numbers.")]
Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:1, mps or auto.")]
Quiet = Annotated[bool, typer.Option("--no-progress", help="Show no progress.")]
TableName = Annotated[
    str, typer.Argument(metavar="TABLE", help="File, folder, or built-in name: iris.")
]
Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="Folder that fit wrote, or a saved file: model.gs.", callback=saved
    ),
]
TableOrModel = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="File, folder, or built-in name: iris.", callback=saved),
]
First = Annotated[
    str,
    typer.Argument(
        metavar="A", help="Saved model, folder of fit, or file of predictions.", callback=saved
    ),
]
Second = Annotated[str, typer.Argument(metavar="B", help="Another one.", callback=saved)]
Truth = Annotated[
    str | None,
    typer.Option("--target", "-t", help="Column of the truth; what the models predict."),
]
Labels = Annotated[
    str | None, typer.Option("--labels", help="Table with the truth; usually DIR/test.csv.")
]
Out = Annotated[str, typer.Option("--out", help=".csv, .jsonl or .parquet file; - for the screen.")]
Target = Annotated[
    str | None,
    typer.Option("--target", "-t", help="Column to predict: name, position, last or none."),
]
Metric = Annotated[str | None, typer.Option("--metric", help="What to rank by.")]
Folds = Annotated[int, typer.Option("--folds", help="Parts of the cross-validation.")]
PartsOf = Annotated[
    int | None,
    typer.Option("--folds", help="Parts of the cross-validation; 5 for a table, 3 for other rows."),
]
Workers = Annotated[int, typer.Option("--workers", help="Processes; -1 for every core.")]
Design = Annotated[
    str, typer.Option("--design", help="auto, holdout (.7/.2/.1), or nested for small tables.")
]
Groups = Annotated[
    str | None, typer.Option("--groups", help="Column of labels that never cross sides.")
]
Time = Annotated[str | None, typer.Option("--time", help="Column of dates: the latest rows judge.")]
Weights = Annotated[str | None, typer.Option("--weights", help="Column of row weights.")]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget", help="Time to spend: 60s, 2m, 1h or none; usually by the size of the table."
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="The first answer alone: ten seconds of comparing.")
]
Without = Annotated[
    str | None,
    typer.Option(
        "--without", help="Candidates, or parts of the report, to leave out, with commas."
    ),
]
Thorough = Annotated[bool, typer.Option("--thorough", help="Everything, however long it takes.")]
Level = Annotated[float, typer.Option("--level", help="Confidence of intervals.")]
Edges = Annotated[
    str | None,
    typer.Option("--edges", help="File of edges: the rows of TABLE are nodes of a graph."),
]
Positive = Annotated[str | None, typer.Option("--positive", help="The class that matters, of two.")]
FalseAlarm = Annotated[float | None, typer.Option("--cost-fp", help="What a false alarm costs.")]
Missed = Annotated[float | None, typer.Option("--cost-fn", help="What a missed one costs.")]
Tune = Annotated[int, typer.Option("--tune", min=0, help="Settings of the best model to try.")]
Params = Annotated[
    str | None, typer.Option("--params", help="Settings written by groundstate tune.")
]
Seeds = Annotated[
    int | None, typer.Option("--seeds", min=0, help="Refits with other seeds; usually 5.")
]
Resamples = Annotated[
    int | None, typer.Option("--bootstrap", min=0, help="Refits to resampled rows; usually 100.")
]
Repeats = Annotated[
    int | None,
    typer.Option("--repeats", help="Times a nested design judges every row; usually 5."),
]
LedgerFile = Annotated[
    str | None, typer.Option("--ledger", help="File that counts looks at test rows, or none.")
]
Ahead = Annotated[
    int | None,
    typer.Option("--forecast", min=1, help="Steps ahead of the series of a long table."),
]
NewRows = Annotated[
    bool, typer.Option("--generate", help="Compare generators of such rows, and make new ones.")
]
Aside = Annotated[
    str | None, typer.Option("--test", help="Share of rows set aside, or a file of rows.")
]
Processes = Annotated[
    int | None,
    typer.Option("--workers", help="Processes; -1 for every core, usually when it pays."),
]

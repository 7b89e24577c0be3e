"""Answers that are no column of a table: masks, boxes and forecasts."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.cli.screen import Screen
from groundstate.data.images.decode import SUFFIXES, image_files
from groundstate.data.sequences.ahead import dates_ahead
from groundstate.data.sequences.long import ID, TIME, LongTable, read_long
from groundstate.errors import DataError
from groundstate.registry import models as registered
from groundstate.store import RunDir, manifest

_NUMBERS = ("mean", "lower", "upper")
Writer = Callable[[Any, str, str, str, float | None, Screen], None]


def writer_of(model: Any) -> Writer | None:
    """What writes the answers of a model, by its role; None where they are a column."""
    name = type(model).__name__
    return _WRITERS.get(registered[name].role) if name in registered else None


def _paths(source: str) -> list[Path]:
    """The pictures of a folder (of its folder ``images`` where there is one), or one file."""
    root = Path(source)
    if root.is_file() and root.suffix.lower() in SUFFIXES:
        return [root]
    if not root.is_dir():
        raise DataError(f"there is no picture or folder of pictures {source!r}")
    inside = root / "images"
    return image_files(inside if inside.is_dir() else root, empty=False)


def masks(
    model: Any, file: str, source: str, out: str, level: float | None, screen: Screen
) -> None:
    """A PNG file for every picture, its name and size, with the labels of the pixels."""
    if out == "-":
        raise DataError("the model draws masks; name a folder for them with --out FOLDER")
    paths = _paths(source)
    predictions = model.predict([str(p) for p in paths])
    twice = len({p.stem for p in paths}) < len(paths)
    with RunDir(out) as run:
        for i, (path, mask) in enumerate(zip(paths, predictions, strict=True)):
            name = f"{i + 1:04d}-{path.stem}.png" if twice else f"{path.stem}.png"
            run.write_bytes(name, _png(np.asarray(mask)))
    classes = ", ".join(map(str, model.classes_))
    screen.data({"out": out, "n": len(paths), "classes": model.classes_.tolist()})
    screen.show(f"{len(paths)} masks with the labels {classes}: {out}")


def _png(labels: NDArray[Any]) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    small = labels.min() >= 0 and labels.max() < 256
    Image.fromarray(labels.astype(np.uint8 if small else np.uint16)).save(buffer, format="png")
    return buffer.getvalue()


def boxes(
    model: Any, file: str, source: str, out: str, level: float | None, screen: Screen
) -> None:
    """A line for every object that is found: picture, label, score and corners in its pixels."""
    paths = _paths(source)
    predictions = model.predict([str(p) for p in paths])
    twice = len({p.name for p in paths}) < len(paths)  # in different folders
    lines: dict[str, list[Any]] = {
        name: [] for name in ("image", "label", "score", "x1", "y1", "x2", "y2")
    }
    for path, found in zip(paths, predictions, strict=True):
        name = path.relative_to(source).as_posix() if twice else path.name
        for box, label, score in zip(found["boxes"], found["labels"], found["scores"], strict=True):
            corners = (round(float(v), 2) for v in box)
            values = (name, str(label), round(float(score), 4), *corners)
            for column, value in zip(lines, values, strict=True):
                lines[column].append(value)
    types = {"image": pl.String, "label": pl.String} | dict.fromkeys(
        ("score", "x1", "y1", "x2", "y2"), pl.Float64
    )
    screen.frame(pl.DataFrame(lines, schema=types), out)


def forecasts(
    model: Any, file: str, source: str, out: str, level: float | None, screen: Screen
) -> None:
    """A line for every step behind the end of each series: mean, and the band of the level."""
    about = manifest(file)["meta"]
    table = read_long(
        source, id=about.get("id", ID), time=about.get("time", TIME), target=None,
        features=about.get("columns"), fill=True,
    )  # fmt: skip
    level = about.get("level", 0.9) if level is None else level  # the bands of its fit
    if not 0 < level < 1:
        raise DataError(f"--level is a share between 0 and 1, such as 0.9, got {level}")
    made = model.forecast(about.get("steps"), table.rows, level)
    columns = [table.names[j] for j in getattr(model, "target_", range(len(table.names)))]
    screen.frame(forecast_lines(made, table, columns, about.get("time", TIME)), out)


def forecast_lines(made: Any, table: LongTable, columns: list[str], time: str) -> pl.DataFrame:
    """Forecasts ``(n, steps, F)`` as lines of series, step, date where there is one, and column."""
    n, steps, wide = made.mean.shape
    i, s, j = (axis.ravel() for axis in np.indices((n, steps, wide)))
    names = np.full(n, "") if table.ids is None else np.asarray(table.ids).astype(str)
    lines: dict[str, Any] = {"id": names[i], "step": s + 1}
    dates = dates_ahead(table, steps)
    if any(d is not None for d in dates):
        unknown = np.full(steps, np.datetime64("NaT", "us"))
        each = [unknown if d is None else d.astype("M8[us]") for d in dates]
        found = pl.Series(np.stack(each)[i, s], dtype=pl.Datetime("us"))
        days = all(d is None or d.dtype == np.dtype("M8[D]") for d in dates)
        taken = ("id", "step", "column", *_NUMBERS)
        lines["time" if time in taken else time] = found.cast(pl.Date) if days else found
    numbers = {k: np.asarray(getattr(made, k), np.float64).ravel() for k in _NUMBERS}
    return pl.DataFrame({**lines, "column": np.asarray(columns)[j], **numbers})


_WRITERS: dict[str, Writer] = {"segmenter": masks, "detector": boxes, "forecaster": forecasts}

"""See the energy over two columns, and how inference descends it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from fastapi import APIRouter
from numpy.typing import NDArray
from pydantic import BaseModel, Field
from sklearn.base import is_classifier, is_regressor

from groundstate.errors import ShapeError
from groundstate.models.paths import inference_path
from groundstate.studio.loaded import Loaded
from groundstate.studio.page import Studio, pages
from groundstate.studio.pixels import plain

EDGE = 0.12  # of the plane beyond the rows, of their range
RANGE = 3.0  # half of the side of the plane where there are no rows
TARGET = "y"


class Axes(BaseModel):
    """What can be an axis, what y can be, and where the plane lies."""

    columns: list[str]
    classes: list[str]
    target: bool
    low: list[float]
    high: list[float]
    middle: list[float]


class Plane(BaseModel):
    """Two axes by their numbers; the last number is y of a regressor. ``y`` is a class, by its number."""

    i: int = Field(default=0, ge=0)
    j: int = Field(default=1, ge=0)
    y: int | None = Field(default=None, ge=0)


class Contour(Plane):
    """How fine, and a part of the plane."""

    n: int = Field(default=72, ge=8, le=200)


class Landscape(BaseModel):
    """Energies of n x n places, the lowest row first, and the rows in the plane."""

    n: int
    low: list[float]
    high: list[float]
    energy: list[float | None]
    points: list[list[float | None]]
    labels: list[str] | None
    words: str


class Start(Plane):
    """Where a descent begins, and by which steps."""

    at: list[float] = Field(min_length=2, max_length=2)
    steps: Literal["newton", "adam"] = "adam"


class Way(BaseModel):
    """The points of a descent in the plane and their energies."""

    points: list[list[float | None]]
    energy: list[float | None]
    converged: bool
    words: str


def _no_plane(loaded: Loaded) -> str | None:
    if len(loaded.event) != 1:
        return "its rows are pictures, not columns"
    n = len(loaded.columns) + _has_target(loaded)
    return None if n >= 2 else "a plane needs two columns"


def _has_target(loaded: Loaded) -> bool:
    return bool(is_regressor(loaded.estimator)) and "y" in loaded.estimator.energy_.spaces


@pages.register(
    "energy", title="Energy", order=3, shows="table", needs=("energy",), against=_no_plane
)
def energy(studio: Studio) -> APIRouter:
    """The energy over two columns as a landscape, with the data, and the descent from a point."""
    router = APIRouter()

    @router.get("/{key}")
    def axes(key: str) -> Axes:
        return _axes(studio.ask("energy", key))

    @router.post("/{key}/contour")
    def contour(key: str, plane: Contour) -> Landscape:
        loaded = studio.ask("energy", key)
        with loaded.lock:
            return _landscape(loaded, plane)

    @router.post("/{key}/path")
    def path(key: str, start: Start) -> Way:
        loaded = studio.ask("energy", key)
        with loaded.lock:
            return _descent(loaded, start)

    return router


def _values(loaded: Loaded) -> NDArray[np.float64] | None:
    """Rows with y as the last column, where y is an axis."""
    if loaded.rows is None:
        return None
    if not _has_target(loaded):
        return loaded.rows
    y = np.full(len(loaded.rows), np.nan) if loaded.y is None else np.asarray(loaded.y, np.float64)
    scale = getattr(loaded.model, "target_scale_", None)
    y = y if scale is None else scale.there(y)
    return np.column_stack([loaded.rows, y])


def _axes(loaded: Loaded) -> Axes:
    names = [*loaded.columns, *([TARGET] if _has_target(loaded) else [])]
    values = _values(loaded)
    low, high, middle = np.full((3, len(names)), [[-RANGE], [RANGE], [0.0]])
    if values is not None and not np.isnan(values).all(0).any():
        low, high, middle = np.nanquantile(values, [0.0, 1.0, 0.5], axis=0)
        wide = np.where(high > low, high - low, 1.0) * EDGE
        low, high = low - wide, high + wide
    classes = loaded.estimator.classes_ if is_classifier(loaded.estimator) else []
    return Axes(
        columns=names, classes=[str(c) for c in classes], target=_has_target(loaded),
        low=plain(low), high=plain(high), middle=plain(middle),
    )  # fmt: skip


def _checked(loaded: Loaded, plane: Plane) -> Axes:
    axes = _axes(loaded)
    for axis in (plane.i, plane.j):
        if axis >= len(axes.columns):
            raise ShapeError(f"there are axes 0 to {len(axes.columns) - 1}, got {axis}")
    if plane.i == plane.j:
        raise ShapeError(f"choose two different axes, got {plane.i} twice")
    if plane.y is not None and plane.y >= len(axes.classes):
        raise ShapeError(f"there are {len(axes.classes)} classes, got number {plane.y}")
    return axes


def _label(loaded: Loaded, plane: Plane) -> Any:
    return None if plane.y is None else loaded.estimator.classes_[plane.y]


def _landscape(loaded: Loaded, plane: Contour) -> Landscape:
    axes, n = _checked(loaded, plane), plane.n
    pair = [plane.i, plane.j]
    low, high = np.asarray(axes.low)[pair], np.asarray(axes.high)[pair]
    ends = [np.linspace(a, b, n) for a, b in zip(low, high)]
    places = np.tile(np.asarray(axes.middle), (n * n, 1))
    places[:, plane.i], places[:, plane.j] = (v.ravel() for v in np.meshgrid(*ends))
    e = _energies(loaded, places, axes, pair, _label(loaded, plane))
    values = _values(loaded)
    shown = np.zeros((0, 2)) if values is None else values[loaded.points][:, pair]
    return Landscape(
        n=n, low=plain(low), high=plain(high), energy=plain(e, 5), points=plain(shown, 5),
        labels=None if values is None else loaded.labels, words=_words(loaded, plane, axes),
    )  # fmt: skip


def _energies(
    loaded: Loaded, places: NDArray[np.float64], axes: Axes, pair: list[int], label: Any
) -> NDArray[np.float64]:
    """Energies of places of the plane; y is an axis, a class, or summed out."""
    y: Any = None if label is None else np.full(len(places), label)
    if axes.target:
        last = len(axes.columns) - 1
        y, places = (places[:, last] if last in pair else None), places[:, :last]
    return np.asarray(loaded.estimator.energy(places, y), np.float64)


def _words(loaded: Loaded, plane: Plane, axes: Axes) -> str:
    a, b = axes.columns[plane.i], axes.columns[plane.j]
    others = len(axes.columns) - 2
    held = ", the other columns at their medians" if others and loaded.rows is not None else ""
    if axes.target and len(axes.columns) - 1 in (plane.i, plane.j):
        return f"e(x, y) over {a} and {b}{held}"
    if plane.y is not None:
        return f"e(x, y = {axes.classes[plane.y]}) over {a} and {b}{held}"
    free = [name for name in loaded.estimator.energy_.spaces if name != "x"]
    hidden = f", {' and '.join(free)} summed out" if free else ""
    return f"e(x) over {a} and {b}{hidden}{held}"


def _descent(loaded: Loaded, start: Start) -> Way:
    axes, pair = _checked(loaded, start), [start.i, start.j]
    if not np.isfinite(start.at).all():
        raise ShapeError("a descent starts at finite numbers")
    row = np.asarray(axes.middle, np.float64)
    row[pair] = start.at
    last = len(axes.columns) - 1
    free_y = axes.target and last in pair
    y = row[last] if free_y else _label(loaded, start)
    # with y on an axis the question is the prediction: x stays, y falls to where the energy is lowest
    columns = [] if free_y else pair
    wide = float(np.min((np.asarray(axes.high) - np.asarray(axes.low))[pair]))
    way = inference_path(
        loaded.estimator, row[:last] if axes.target else row, columns, y=y, free_y=free_y,
        steps=start.steps, lr=wide / 50, max_iter=80,
    )  # fmt: skip
    whole = way.x if way.y is None else np.column_stack([way.x, way.y])
    found = f"{len(way) - 1} steps, energy {way.energy[0]:.4g} to {way.energy[-1]:.4g}"
    return Way(
        points=plain(whole[:, pair], 5), energy=plain(way.energy, 5), converged=way.converged,
        words=f"{found}; {'converged' if way.converged else 'not at rest yet'}",
    )  # fmt: skip

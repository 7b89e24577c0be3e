"""Move in the plane of codes and see the decoded row."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from fastapi import APIRouter
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from groundstate.errors import ShapeError, Unsupported
from groundstate.math.geometry.interpolate import lerp, slerp
from groundstate.studio.loaded import Loaded
from groundstate.studio.page import Studio, pages
from groundstate.studio.pixels import Stack, plain

EDGE = 1.15  # of the plane beyond the codes of the rows
FINE = 33  # points of a way; rows are decoded at some of them
CURVED = 13  # points of a shortest way, each of which costs a decoder's slope
NORMAL = 2.5  # half of the side of the plane where there are no rows

Mode = Literal["linear", "slerp", "geodesic"]


class Plane(BaseModel):
    """Two axes of the code; the others stay at the mean of all codes, or at those of a row."""

    i: int = Field(default=0, ge=0)
    j: int = Field(default=1, ge=0)
    row: int | None = Field(default=None, ge=0)


class Codes(BaseModel):
    """The codes of the rows in the plane, and what there is to choose."""

    size: int
    low: list[float]
    high: list[float]
    points: list[list[float | None]]
    rows: list[int]
    labels: list[str] | None
    columns: list[str]
    picture: list[int] | None
    modes: list[Mode]


class Places(Plane):
    """Points of the plane."""

    at: list[list[float]] = Field(min_length=1, max_length=4096)


class Decoded(BaseModel):
    """Rows of codes: as pictures where rows are pictures, and as numbers."""

    pictures: Stack | None
    values: list[list[float | None]]


class Grid(Plane):
    """k x k cells of a part of the plane."""

    k: int = Field(default=12, ge=2, le=32)
    low: list[float] = Field(min_length=2, max_length=2)
    high: list[float] = Field(min_length=2, max_length=2)


class Ends(Plane):
    """A way between two points of the plane."""

    a: list[float] = Field(min_length=2, max_length=2)
    b: list[float] = Field(min_length=2, max_length=2)
    n: int = Field(default=10, ge=2, le=40)
    mode: Mode = "linear"


class Walk(BaseModel):
    """The way in the plane, and the rows along it."""

    points: list[list[float | None]]
    rows: Decoded


def _no_code(loaded: Loaded) -> str | None:
    try:
        size = _size(loaded)
    except Unsupported as reason:
        return str(reason)
    return None if size >= 2 else "its code is one number, a plane needs two"


@pages.register(
    "latent-plane", title="Latent plane", order=2, shows="table",
    needs=("transform", "inverse_transform"), against=_no_code,
)  # fmt: skip
def latent_plane(studio: Studio) -> APIRouter:
    """Move in the plane of codes; see the decoded row, the codes of the data, and ways between them."""
    router = APIRouter()

    @router.get("/{key}/codes")
    def codes(key: str, i: int = 0, j: int = 1) -> Codes:
        loaded = studio.ask("latent-plane", key)
        with loaded.lock:
            return _codes(loaded, Plane(i=i, j=j))

    @router.post("/{key}/decode")
    def decode(key: str, places: Places) -> Decoded:
        loaded = studio.ask("latent-plane", key)
        with loaded.lock:
            return _decoded(loaded, _placed(loaded, places, np.asarray(places.at, np.float64)))

    @router.post("/{key}/grid")
    def grid(key: str, grid: Grid) -> Decoded:
        loaded = studio.ask("latent-plane", key)
        (x0, y0), (x1, y1) = grid.low, grid.high
        half = 0.5 / grid.k
        across = x0 + (x1 - x0) * (np.arange(grid.k) / grid.k + half)
        down = y1 - (y1 - y0) * (np.arange(grid.k) / grid.k + half)
        cells = np.stack(np.meshgrid(across, down), -1).reshape(-1, 2)
        with loaded.lock:
            return _decoded(loaded, _placed(loaded, grid, cells))

    @router.post("/{key}/walk")
    def walk(key: str, ends: Ends) -> Walk:
        loaded = studio.ask("latent-plane", key)
        with loaded.lock:
            both = _placed(loaded, ends, np.asarray([ends.a, ends.b], np.float64))
            way = _way(loaded, both, CURVED if ends.mode == "geodesic" else FINE, ends.mode)
            some = way[np.linspace(0, len(way) - 1, ends.n).round().astype(np.int64)]
            return Walk(points=plain(way[:, [ends.i, ends.j]]), rows=_decoded(loaded, some))

    return router


def _size(loaded: Loaded) -> int:
    """Numbers of a code."""
    model = loaded.estimator
    space = model.energy_.spaces.get("z")
    shape = getattr(space, "shape", None)
    if shape is not None and len(shape) == 1:
        return int(shape[0])
    found = getattr(model, "n_components_", getattr(model, "n_components", None))
    if isinstance(found, int):
        return found
    if hasattr(model, "event_shape_"):  # a flow: as many numbers as the row has
        return int(np.prod(model.event_shape_))
    raise Unsupported(f"{loaded.name} does not say how many numbers its code has")


def _all(loaded: Loaded) -> NDArray[np.float64] | None:
    """Codes of the drawn rows, ``(n, k)``; kept, since every question needs them."""
    if loaded.rows is None:
        return None
    kept = vars(loaded).get("_latent_codes")
    if kept is None:
        given = loaded.rows[loaded.points]
        kept = np.asarray(loaded.estimator.transform(given), np.float64)
        vars(loaded)["_latent_codes"] = kept
    found: NDArray[np.float64] = kept
    return found


def _checked(loaded: Loaded, plane: Plane) -> int:
    size = _size(loaded)
    for axis in (plane.i, plane.j):
        if axis >= size:
            raise ShapeError(f"the code has axes 0 to {size - 1}, got {axis}")
    if plane.i == plane.j:
        raise ShapeError(f"choose two different axes, got {plane.i} twice")
    return size


def _codes(loaded: Loaded, plane: Plane) -> Codes:
    size, z = _checked(loaded, plane), _all(loaded)
    if z is None:
        low, high = np.full(2, -NORMAL), np.full(2, NORMAL)
        points, labels = np.zeros((0, 2)), None
    else:
        points, labels = z[:, [plane.i, plane.j]], loaded.labels
        ends = np.quantile(points, [0.005, 0.995], axis=0)
        middle, half = ends.mean(0), EDGE * (ends[1] - ends[0]) / 2
        low, high = middle - np.maximum(half, 1e-9), middle + np.maximum(half, 1e-9)
    modes: list[Mode] = ["linear", "slerp"]
    if hasattr(loaded.estimator, "decoder_metric"):
        modes.append("geodesic")
    return Codes(
        size=size, low=plain(low), high=plain(high), points=plain(points, 4),
        rows=loaded.points.tolist() if z is not None else [], labels=labels,
        columns=loaded.columns, picture=_picture(loaded), modes=modes,
    )  # fmt: skip


def _picture(loaded: Loaded) -> list[int] | None:
    """Channels, height and width where rows are pictures; squares of many numbers are taken for such."""
    shape = loaded.event
    if len(shape) == 2:
        return [1, *shape]
    if len(shape) == 3:
        return list(shape)
    side = round(float(shape[0]) ** 0.5) if len(shape) == 1 else 0
    unnamed = not hasattr(loaded.model, "feature_names_in_")
    return [1, side, side] if side >= 6 and side * side == shape[0] and unnamed else None


def _placed(loaded: Loaded, plane: Plane, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Whole codes of points of the plane, ``(m, k)``."""
    size, z = _checked(loaded, plane), _all(loaded)
    if at.ndim != 2 or at.shape[1] != 2 or not np.isfinite(at).all():
        raise ShapeError("points of the plane are pairs of finite numbers")
    base = np.zeros(size) if z is None else z.mean(0)
    if plane.row is not None:
        where = np.flatnonzero(loaded.points == plane.row)
        if z is None or not len(where):
            raise ShapeError(f"row {plane.row} is none of the points of the plane")
        base = z[where[0]]
    whole = np.tile(base, (len(at), 1))
    whole[:, [plane.i, plane.j]] = at
    return whole


def _decoded(loaded: Loaded, z: NDArray[np.float64]) -> Decoded:
    rows = np.asarray(loaded.estimator.inverse_transform(z), np.float64).reshape(len(z), -1)
    shape, pictures = _picture(loaded), None
    if shape is not None:
        known = loaded.rows
        low, high = (rows.min(), rows.max()) if known is None else (known.min(), known.max())
        pictures = Stack.of(rows.reshape(-1, *shape), float(low), float(high))
    few = rows if shape is None else rows[:0]
    return Decoded(pictures=pictures, values=plain(few, 5))


def _way(loaded: Loaded, ends: NDArray[np.float64], n: int, mode: Mode) -> NDArray[np.float64]:
    model: Any = loaded.estimator
    device, dtype = model.energy_.placement()
    a, b = torch.from_numpy(ends).to(device, dtype)
    if mode == "geodesic":
        if not hasattr(model, "decoder_metric"):
            raise Unsupported(f"{loaded.name} has no metric of its decoder; use linear or slerp")
        way = model.decoder_metric().geodesic(a, b, n).points
    else:
        t = torch.linspace(0, 1, n, device=device, dtype=dtype)
        way = (lerp if mode == "linear" else slerp)(a, b, t)
    return np.asarray(way.detach().cpu().numpy(), np.float64)

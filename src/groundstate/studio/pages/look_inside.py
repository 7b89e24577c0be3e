"""Draw a picture and see every map of every layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from fastapi import APIRouter
from numpy.typing import NDArray
from pydantic import BaseModel
from torch import nn

from groundstate.errors import ShapeError
from groundstate.models.explain import explain
from groundstate.models.networks.cam import net_of
from groundstate.nn.inspect.summary import summary
from groundstate.studio.loaded import Loaded
from groundstate.studio.page import Studio, pages
from groundstate.studio.pixels import Stack, plain

MOST_MAPS = 64  # of a layer
MOST_PICTURES = 20  # to choose from


class Layer(BaseModel):
    """A layer with maps: its name, kind, shape of its output, parameters, and filters if it has any."""

    name: str
    kind: str
    shape: list[int]
    parameters: int
    filters: Stack | None


class Inside(BaseModel):
    """The network of a model, and pictures to begin with."""

    shape: list[int]
    low: float
    high: float
    classes: list[str]
    layers: list[Layer]
    parameters: int
    pictures: Stack | None
    labels: list[str]


class Drawing(BaseModel):
    """A picture, row by row, channel after channel; or the number of one that is there."""

    pixels: list[float] | None = None
    row: int | None = None


class Map(BaseModel):
    """What a layer makes of the picture."""

    layer: str
    maps: Stack


class Answer(BaseModel):
    """What the model says of a picture, and how it got there."""

    predicted: str
    probabilities: list[float]
    energies: list[float]
    picture: Stack
    cam: Stack
    maps: list[Map]


class Unit(BaseModel):
    """A unit: layer and number."""

    layer: str
    unit: int


class Dream(BaseModel):
    """The picture that excites a unit most, how much, and the most that any picture of the data does."""

    picture: Stack
    activation: float
    best_of_data: float | None
    nearest: Stack | None


def _no_network(loaded: Loaded) -> str | None:
    net = getattr(loaded.estimator.energy_, "net", None)
    return None if isinstance(net, nn.Module) else "its energy holds no network"


@pages.register(
    "look-inside", title="Look inside", order=1, shows="image", task="classification",
    needs=("predict_proba", "explain"), against=_no_network,
)  # fmt: skip
def look_inside(studio: Studio) -> APIRouter:
    """Draw a picture; see the prediction, every feature map, and what excites a unit."""
    router = APIRouter()

    @router.get("/{key}")
    def network(key: str) -> Inside:
        loaded = studio.ask("look-inside", key)
        with loaded.lock:
            return _inside(loaded)

    @router.post("/{key}/see")
    def see(key: str, drawing: Drawing) -> Answer:
        loaded = studio.ask("look-inside", key)
        with loaded.lock:
            return _answer(loaded, _picture(loaded, drawing))

    @router.post("/{key}/maximise")
    def maximise(key: str, unit: Unit) -> Dream:
        loaded = studio.ask("look-inside", key)
        with loaded.lock:
            return _dream(loaded, unit)

    return router


def _range(loaded: Loaded) -> tuple[float, float]:
    """Values of white and black: of the rows where there are some, else [0, 1]."""
    if loaded.rows is None:
        return 0.0, 1.0
    return float(loaded.rows.min()), float(loaded.rows.max())


def _inside(loaded: Loaded) -> Inside:
    net, (low, high) = net_of(loaded.estimator), _range(loaded)
    layout = summary(net, loaded.event)
    layers = [
        Layer(
            name=row.name, kind=row.kind, shape=list(row.output_shape),
            parameters=row.trainable + row.frozen, filters=_filters(net, row.name),
        )
        for row in layout.rows if len(row.output_shape) == 3
    ]  # fmt: skip
    shown = _shown(loaded)
    return Inside(
        shape=list(loaded.event), low=low, high=high,
        classes=[str(c) for c in loaded.estimator.classes_.tolist()],
        layers=layers, parameters=layout.parameters,
        pictures=None if loaded.rows is None else Stack.of(loaded.rows[shown], low, high),
        labels=[] if loaded.y is None else [str(v) for v in np.asarray(loaded.y)[shown].tolist()],
    )  # fmt: skip


def _shown(loaded: Loaded) -> NDArray[np.int64]:
    """A few pictures, of all labels in turn."""
    if loaded.rows is None:
        return np.zeros(0, np.int64)
    if loaded.y is None:
        return np.arange(min(MOST_PICTURES, len(loaded.rows)))
    y = np.asarray(loaded.y)
    classes = np.unique(y)
    each = max(1, MOST_PICTURES // len(classes))
    return np.concatenate([np.flatnonzero(y == c)[:each] for c in classes])[:MOST_PICTURES]


def _filters(net: nn.Module, name: str) -> Stack | None:
    part = net.get_submodule(name)
    if not isinstance(part, nn.Conv2d):
        return None
    weight = explain.filters(net, part).cpu().numpy()[:MOST_MAPS]  # type: ignore[attr-defined]
    large = float(np.abs(weight).max()) or 1.0
    return Stack.of(weight.mean(1), -large, large) if weight.shape[1] > 1 else Stack.of(
        weight[:, 0], -large, large
    )  # fmt: skip


def _picture(loaded: Loaded, drawing: Drawing) -> NDArray[np.float32]:
    """One picture ``(1, C, H, W)``."""
    if drawing.row is not None:
        shown = _shown(loaded)
        if loaded.rows is None or not 0 <= drawing.row < len(shown):
            raise ShapeError(f"row is 0 to {len(shown) - 1}, got {drawing.row}")
        return loaded.rows[shown[drawing.row]][None].astype(np.float32)
    size = int(np.prod(loaded.event))
    given = drawing.pixels or []
    if len(given) != size:
        raise ShapeError(f"a picture of this model has {size} pixels, got {len(given)}")
    values = np.asarray(given, np.float32)
    if not np.isfinite(values).all():
        raise ShapeError("pixels are finite numbers")
    return values.reshape(1, *loaded.event)


def _answer(loaded: Loaded, x: NDArray[np.float32]) -> Answer:
    model, (low, high) = loaded.estimator, _range(loaded)
    maps: dict[str, Any] = explain.feature_maps(model, x)  # type: ignore[attr-defined]
    return Answer(
        predicted=str(model.predict(x)[0]),
        probabilities=plain(model.predict_proba(x)[0], 4),
        energies=plain(model.energies(x)[0], 4),
        picture=Stack.of(x, low, high),
        cam=Stack.of(model.explain(x)),
        maps=[
            Map(layer=name, maps=Stack.of(m[0, :MOST_MAPS].cpu().numpy()))
            for name, m in maps.items()
            if m.ndim == 4
        ],
    )


def _dream(loaded: Loaded, unit: Unit) -> Dream:
    model, (low, high) = loaded.estimator, _range(loaded)
    named = dict(net_of(model).named_modules())
    if unit.layer not in named:
        raise ShapeError(f"the network has no layer {unit.layer!r}")
    found = explain.maximise_activation(  # type: ignore[attr-defined]
        model, unit.layer, unit.unit, low=low, high=high
    )
    best, most, nearest = _activation(model, unit, found), None, None
    if loaded.rows is not None:
        rows = loaded.rows[loaded.points].astype(np.float32)
        each = np.concatenate(
            [_activations(model, unit, rows[at : at + 256]) for at in range(0, len(rows), 256)]
        )
        most, nearest = float(each.max()), Stack.of(rows[[int(each.argmax())]], low, high)
    return Dream(
        picture=Stack.of(found.cpu().numpy(), low, high), activation=best, best_of_data=most,
        nearest=nearest,
    )  # fmt: skip


def _activations(model: Any, unit: Unit, x: Any) -> NDArray[np.float64]:
    """Mean of a map over places, of each picture, ``(B,)``."""
    with torch.no_grad():
        maps = explain.feature_maps(model, x)[unit.layer]  # type: ignore[attr-defined]
    return np.asarray(maps[:, unit.unit].flatten(1).mean(1).cpu().numpy(), np.float64)


def _activation(model: Any, unit: Unit, x: Any) -> float:
    return float(_activations(model, unit, x)[0])

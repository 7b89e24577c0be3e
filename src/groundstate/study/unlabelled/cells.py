r"""What the rest of a row says about one of its cells: draws of :math:`x_c \mid x_{-c}`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from scipy.stats import norm

from groundstate.compute.random import Key
from groundstate.data import Table, read
from groundstate.infer import sample
from groundstate.models.tables.restored import opened, restored
from groundstate.models.tables.table import TablePredictor

F64 = NDArray[np.float64]
Ranges = dict[str, tuple[float, float]]
KINDS = ("numeric", "category")  # of columns whose cells can be drawn and read back
DRAWS = 200
_MANY = 100  # draws whose quantiles are worth something


@dataclass(frozen=True)
class Numbers:
    """Draws of numeric cells: ``values`` (n_rows, n_draws); ``whole`` of a column of whole numbers."""

    values: F64
    whole: bool = False

    @property
    def mean(self) -> F64:
        return np.asarray(self.values.mean(1))

    @property
    def sd(self) -> F64:
        return np.asarray(self.values.std(1))

    def interval(self, level: float = 0.9, within: tuple[float, float] | None = None) -> F64:
        """Ends of the central interval, ``(n_rows, 2)``, within the range that a column has."""
        if self.values.shape[1] >= _MANY:
            ends = np.quantile(self.values, [(1 - level) / 2, (1 + level) / 2], axis=1).T
        else:  # too few for quantiles
            half = float(norm.ppf((1 + level) / 2)) * self.values.std(1, ddof=1)
            ends = np.stack([self.mean - half, self.mean + half], 1)
        ends = ends if within is None else np.clip(ends, *within)
        return self._whole(ends, within) if self.whole else np.asarray(ends)

    def _whole(self, ends: F64, within: tuple[float, float] | None) -> F64:
        """The whole numbers inside, or the nearest to the middle where there is none."""
        inside = np.stack([np.ceil(ends[:, 0] - 1e-9), np.floor(ends[:, 1] + 1e-9)], 1)
        none = inside[:, 0] > inside[:, 1]
        inside[none] = self.best(within)[none, None]
        return np.asarray(inside + 0.0)

    def best(self, within: tuple[float, float] | None = None) -> F64:
        """The expected values, within the range that a column has."""
        values = self.mean if within is None else np.clip(self.mean, *within)
        return np.asarray(np.round(values) + 0.0 if self.whole else values)

    def surprise(self, truth: F64) -> F64:
        """Half the squared distance from the expectation, in standard deviations."""
        return 0.5 * ((truth - self.mean) / np.maximum(self.sd, 1e-12)) ** 2


@dataclass(frozen=True)
class Levels:
    """Draws of cells of categories: ``probability`` (n_rows, n_levels) of ``names``."""

    names: tuple[str, ...]
    probability: F64

    @property
    def mode(self) -> list[str]:
        return [self.names[i] for i in self.probability.argmax(1)]

    def of(self, truth: list[Any]) -> F64:
        """Probability of each row's own level; a level never drawn has less than one draw."""
        place = {name: i for i, name in enumerate(self.names)}
        found = [
            self.probability[i, place[str(level)]] if str(level) in place else 0.0
            for i, level in enumerate(truth)
        ]
        return np.maximum(found, 0.5 / DRAWS)

    def surprise(self, truth: list[Any]) -> F64:
        return -np.log(self.of(truth))


def columns_of(model: TablePredictor) -> list[str]:
    """Columns whose cells the model can draw given the others."""
    if not hasattr(model.estimator_, "impute"):
        return []
    kinds = {name: model.schema_[name].kind for name in model.preparation_.encoders_}
    return [name for name, kind in kinds.items() if kind in KINDS]


def draws_of(
    model: TablePredictor, rows: Table, column: str, key: Key, n: int = DRAWS
) -> Numbers | Levels:
    """Draws of one column's cells given all others of their rows; what stands there is not looked at."""
    frame = rows.frame.with_columns(pl.lit(None, dtype=rows.frame[column].dtype).alias(column))
    X = opened(model.preparation_, read(frame, schema=model.schema_))
    energy = model.estimator_.energy_
    device, dtype = energy.placement()
    x = torch.as_tensor(X, device=device, dtype=dtype)
    hidden = torch.isnan(x)
    others = [name for name in energy.spaces if name != "x"]
    drawn_x = sample(
        energy.marginal(*others) if others else energy, {"x": hidden},
        {"x": torch.where(hidden, 0.0, x)}, n, generator=key.torch(device),
    )["x"]  # (n, n_rows, d)  # fmt: skip
    filled = drawn_x.transpose(0, 1).reshape(-1, x.shape[1]).cpu().numpy()
    drawn = restored(model.preparation_, filled)[column]
    if model.schema_[column].kind == "numeric":
        values = drawn.cast(pl.Float64).to_numpy().reshape(rows.n_rows, n)
        return Numbers(values, model.schema_[column].integer)
    words = np.array([str(value) for value in drawn]).reshape(rows.n_rows, n)
    names = tuple(sorted(set(words.ravel())))
    return Levels(names, np.stack([(words == name).mean(1) for name in names], 1))


def column_itself(
    table: Table, column: str, kind: str, whole: bool, n_rows: int
) -> Numbers | Levels:
    """The column's own cells as draws for so many rows: what is expected of a cell alone."""
    truth = truth_of(table, column, kind)
    if kind == "numeric":
        there = truth[~np.isnan(truth)]
        return Numbers(np.broadcast_to(there, (n_rows, len(there))), whole)
    there = [str(value) for value in truth if value is not None]
    names, times = np.unique(there, return_counts=True)
    share = np.broadcast_to(times / max(1, len(there)), (n_rows, len(names)))
    return Levels(tuple(names.tolist()), share)


def ranges_of(table: Table) -> Ranges:
    """The lowest and highest value of every numeric column."""
    found = {}
    for name in table.columns:
        if table.schema[name].kind == "numeric":
            values = truth_of(table, name, "numeric")
            if not np.isnan(values).all():
                found[name] = float(np.nanmin(values)), float(np.nanmax(values))
    return found


def truth_of(rows: Table, column: str, kind: str) -> Any:
    """The column's own values: floats with NaN where missing, or levels."""
    values = rows.frame[column]
    if kind == "numeric":
        return values.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return values.cast(pl.String).to_list()

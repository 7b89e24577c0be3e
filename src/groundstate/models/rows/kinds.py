"""How estimators of rows that are no tables take what they are given.

An estimator declares the kind of its rows, ``rows = "text"``; reading and checking follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, column_or_1d
from torch import Tensor

from groundstate.compute.rows import (
    Ragged,
    Rows,
    bad_row,
    count,
    describe,
    floating,
    in_memory,
    to_device,
)
from groundstate.data.rows import READERS, Taken, rows_of
from groundstate.energy.spaces import (
    Finite,
    GraphSpace,
    NodeSpace,
    RaggedOf,
    Real,
    Space,
    TextSpace,
    Trajectory,
)
from groundstate.errors import DataError, ShapeError
from groundstate.models.arrays import Home, unwrap
from groundstate.models.validation import checked_target

TABLE = "table"


def tagged(tags: Tags, rows: str) -> Tags:
    """scikit-learn's tags of an estimator whose rows are no tables."""
    tags.input_tags.two_d_array = False
    tags.input_tags.string = rows == "text"
    tags.input_tags.three_d_array = rows in ("image", "sequence")
    return tags


@dataclass(frozen=True)
class RowKind:
    """One kind of rows at the door of an estimator.

    Parameters
    ----------
    name : of the kind, as in ``groundstate.data.KINDS``
    space : of small rows of this kind, from which examples are drawn
    """

    name: str
    space: Space

    def example(self, n: int) -> Rows:
        """So many small rows, the same every time."""
        drawn: Rows = self.space.draw(n, generator=torch.Generator().manual_seed(0))
        return drawn

    def learned(self, estimator: Any, X: Any, y: Any) -> tuple[Rows, Any, dict[str, Any]]:
        """Rows to learn from, encoded targets, and the attributes that belong to these."""
        taken = self._taken(estimator, X, y is None and estimator._takes_target)
        if taken.weight is not None:
            raise DataError("pass the weights of the rows as sample_weight")
        if not count(taken.rows):
            raise DataError(f"{type(estimator).__name__} got no rows to learn from")
        _all_finite(taken.rows)
        if not estimator._takes_target:
            return taken.rows, None, {}
        y = taken.y if y is None else y
        if y is None:
            raise ValueError(
                f"{type(estimator).__name__} requires y to be passed, but the target y is None"
            )
        return taken.rows, *estimator._row_target(y, taken.rows)

    def asked(self, estimator: Any, X: Any) -> tuple[Rows, Home]:
        """Rows to answer for, of the form that was learned, and where answers go."""
        check_is_fitted(estimator, "energy_")
        device, dtype = estimator.energy_.placement()
        rows = floating(self._taken(estimator, X).rows, dtype)
        _all_finite(rows)
        home = Home(X.device) if isinstance(X, Tensor) else Home()
        return to_device(rows, device) if in_memory(rows) else rows, home

    def _taken(self, estimator: Any, X: Any, with_labels: bool = False) -> Taken:
        try:
            both = READERS[self.name].labelled(X) if with_labels else None
            if both is not None:
                return Taken(both[0], self.name, both[1])
            return rows_of(X, self.name)
        except DataError as error:
            raise DataError(f"{type(estimator).__name__} takes {self.name} rows: {error}") from None


def _all_finite(rows: Rows) -> None:
    row = bad_row(rows)
    if row is not None:
        raise DataError(f"row {row} of X holds NaN or infinity; replace or drop such rows")


class SeriesKind(RowKind):
    """Series, of which a forecaster makes its windows itself."""

    def example(self, n: int) -> Rows:
        """One series of four times as many numbers."""
        time = torch.arange(4.0 * n)
        noise = torch.randn(len(time), generator=torch.Generator().manual_seed(0))
        values = 2 + torch.sin(time / 3) + 0.1 * noise
        return Ragged(values[:, None], torch.tensor([0, len(time)]))


KINDS: dict[str, RowKind] = {
    kind.name: kind
    for kind in (
        RowKind("image", Real(1, 4, 4)),
        RowKind("text", TextSpace()),
        RowKind("sequence", RaggedOf(Real(2))),
        SeriesKind("series", RaggedOf(Real(1))),
        RowKind("graph", GraphSpace(2)),
        RowKind("node", NodeSpace(2)),
        RowKind("pair", NodeSpace(2, pairs=True)),
        RowKind("trajectory", Trajectory(Real(2), Finite(3), Real())),
        RowKind("steps", RaggedOf(Real(2))),
    )
}


def one_per_row(estimator: Any, y: Any, rows: Rows) -> tuple[Any, dict[str, Any]]:
    """Check and encode targets of which each row has one, or one row of a table."""
    y = unwrap(y)[0]
    table = estimator._multi_output and getattr(y, "ndim", 1) == 2
    y = checked_target(estimator, np.asarray(y) if table else column_or_1d(y, warn=True))
    if len(y) != count(rows):
        raise ShapeError(f"X has {count(rows)} rows, y has {len(y)}; give one for each")
    found: tuple[Any, dict[str, Any]] = estimator._target(y)
    return found


def no_example(estimator: Any, rows: Rows) -> Any:
    """Targets of example rows: None where each is one class or one number."""
    return None


def check_form(estimator: Any, rows: Rows) -> None:
    """Refuse rows that have another form than those the estimator was fitted to."""
    space = estimator.energy_.spaces["x"]
    if in_memory(rows) and not space.fits(rows):
        raise ShapeError(
            f"{type(estimator).__name__} was fitted to {space!r}; X must {space.expected()}, got "
            f"{tuple(rows.shape) if isinstance(rows, Tensor) else describe(rows)}"
        )

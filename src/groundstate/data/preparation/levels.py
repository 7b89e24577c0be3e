"""Labels as numbers: one column per level, their number, or what the target says about them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.data.preparation.encoders import Floats, Numeric, Scaling
from groundstate.data.preparation.weighted import mean_and_scale, tally
from groundstate.data.tables.cells import listed

PARTS = 5  # of the rows, when the target encodes labels
_UNSEEN, _MISSING = -1.0, -2.0


@dataclass(frozen=True)
class Category:
    """Labels: one column per level seen in training; an unseen level is all zeros.

    With more than `max_categories` levels the heaviest are kept and one column stands for
    every other label, seen or not. A missing label has its own column if training had one.
    """

    kind: ClassVar[str] = "category"
    levels: tuple[str, ...]
    other: bool
    missing: bool

    @classmethod
    def fit(cls, values: pl.Series, weights: Floats | None, max_categories: int) -> Category:
        names, totals, gap = weigh_levels(values, weights)
        ranked = [names[i] for i in np.argsort(-totals, kind="stable")]  # equal totals: by name
        other = len(ranked) > max_categories
        return cls(tuple(sorted(ranked[: max_categories - other])), other, gap > 0)

    def transform(self, values: pl.Series) -> Floats:
        k = len(self.levels)
        codes = level_codes(values, self.levels)
        column = np.where(codes < 0, k, codes)
        absent = codes == int(_MISSING)
        out = np.zeros((len(codes), k + 2))  # (n, levels, other, missing)
        out[np.arange(len(codes)), column] = 1.0
        out[absent, k] = 0.0
        out[absent, k + 1] = 1.0
        return out[:, [*range(k), *([k] if self.other else []), *([k + 1] if self.missing else [])]]

    def names(self, column: str) -> list[str]:
        names = [f"{column}={level}" for level in self.levels]
        names += [f"{column} other"] if self.other else []
        return names + ([f"{column} missing"] if self.missing else [])

    def to_state(self) -> dict[str, Any]:
        return {**asdict(self), "levels": list(self.levels)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Category:
        return cls(tuple(state["levels"]), state["other"], state["missing"])


@dataclass(frozen=True)
class Items:
    """Lists of labels: one column per item, 1 where the list holds it, and how many it holds.

    The heaviest items get a column; others count in the last. A missing list holds nothing.
    """

    kind: ClassVar[str] = "items"
    form: str
    levels: tuple[str, ...]
    number: Numeric

    @classmethod
    def fit(
        cls,
        values: pl.Series,
        weights: Floats | None,
        form: str,
        max_categories: int,
        scaling: Scaling = "standard",
    ) -> Items:
        counts = np.ones(len(values)) if weights is None else weights
        row, item = listed(values, form)
        found = pl.DataFrame({"item": item, "w": counts[row]}).filter(pl.col("w") > 0)
        ranked = found.group_by("item").agg(pl.col("w").sum())
        top = ranked.sort("w", "item", descending=[True, False]).head(max_categories)["item"]
        size = np.bincount(row, minlength=len(values)).astype(np.float64)
        return cls(form, tuple(sorted(top.to_list())), Numeric.of(size, weights, scaling))

    def transform(self, values: pl.Series) -> Floats:
        row, item = listed(values, self.form)
        codes = level_codes(item, self.levels)
        out = np.zeros((len(values), len(self.levels) + 1))
        out[row[codes >= 0], codes[codes >= 0]] = 1.0
        size = np.bincount(row, minlength=len(values)).astype(np.float64)
        out[:, -1] = self.number.apply(size)[:, 0]
        return out

    def names(self, column: str) -> list[str]:
        return [*(f"{column} has {level}" for level in self.levels), f"{column} number"]

    def to_state(self) -> dict[str, Any]:
        number = self.number.to_state()
        return {"form": self.form, "levels": list(self.levels), "number": number}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Items:
        return cls(state["form"], tuple(state["levels"]), Numeric(**state["number"]))


@dataclass(frozen=True)
class Ordinal:
    """Labels as their number in alphabetical order, for trees; unseen -1, missing -2."""

    kind: ClassVar[str] = "ordinal"
    levels: tuple[str, ...]

    @classmethod
    def fit(cls, values: pl.Series, weights: Floats | None) -> Ordinal:
        return cls(tuple(weigh_levels(values, weights)[0]))

    def transform(self, values: pl.Series) -> Floats:
        return level_codes(values, self.levels).astype(np.float64)[:, None]

    def names(self, column: str) -> list[str]:
        return [column]

    def to_state(self) -> dict[str, Any]:
        return {"levels": list(self.levels)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Ordinal:
        return cls(tuple(state["levels"]))


@dataclass(frozen=True)
class TargetMean:
    r"""Labels as the mean target of their level, drawn towards the mean of all rows.

    .. math:: \lambda_\ell \bar y_\ell + (1 - \lambda_\ell)\, \bar y, \qquad
              \lambda_\ell = \frac{n_\ell s^2}{n_\ell s^2 + s_\ell^2}

    with :math:`s^2` the variance of the target and :math:`s_\ell^2` that within the level, as
    scikit-learn's ``TargetEncoder``. Training rows are encoded by the other four fifths of the
    rows (`cross_fit`), so that no row tells a model its own target; an unseen level is the mean.

    Attributes
    ----------
    levels : names of the L levels
    values : (L + 1, K)
        Of each level, last of a missing label; K is 1 for numbers and for two classes.
    prior : (K,)
    labels : the K classes, none for numbers
    numbers : K statistics that standardise the encoded training rows
    """

    kind: ClassVar[str] = "target"
    levels: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    prior: tuple[float, ...]
    labels: tuple[str, ...]
    numbers: tuple[Numeric, ...]

    @classmethod
    def cross_fit(
        cls,
        values: pl.Series,
        targets: Floats,
        labels: tuple[str, ...],
        part: NDArray[np.intp],
        weights: Floats | None,
    ) -> tuple[TargetMean, Floats]:
        """The encoder learned from all rows, and the training rows, each encoded by other parts.

        Parameters
        ----------
        targets : (n, K) values, or which class
        part : (n,) which part of the rows each row belongs to
        """
        levels = tuple(weigh_levels(values, weights)[0])
        codes = level_codes(values, levels)
        codes = np.where(codes == int(_MISSING), len(levels), codes)  # unseen ones have no weight
        counts = np.ones(len(codes)) if weights is None else weights
        known = (counts > 0) & (codes >= 0)

        def learned(rows: NDArray[np.bool_]) -> tuple[Floats, Floats]:
            rows = rows & known
            rows = rows if rows.any() else known
            pairs = [
                _shrunk(codes[rows], y[rows], counts[rows], len(levels) + 1) for y in targets.T
            ]
            return np.stack([p[0] for p in pairs], 1), np.array([p[1] for p in pairs])

        whole, prior = learned(known)
        out = np.empty_like(targets)
        for i in np.unique(part):
            here = part == i
            table, mean = learned(~here)
            out[here] = np.concatenate([table, mean[None]])[codes[here]]  # unseen: the mean
        numbers = tuple(Numeric.of(column, weights) for column in out.T)
        made = cls(
            levels, tuple(map(tuple, whole.tolist())), tuple(prior.tolist()), labels, numbers
        )
        return made, made._scaled(out)

    def transform(self, values: pl.Series) -> Floats:
        codes = level_codes(values, self.levels)
        codes = np.where(codes == int(_MISSING), len(self.levels), codes)
        return self._scaled(np.array([*self.values, self.prior])[codes])

    def _scaled(self, table: Floats) -> Floats:
        return np.concatenate([n.apply(c) for n, c in zip(self.numbers, table.T)], axis=1)

    def names(self, column: str) -> list[str]:
        return [f"{column} by {label}" for label in self.labels] or [f"{column} by target"]

    def to_state(self) -> dict[str, Any]:
        return {
            "levels": list(self.levels),
            "values": [list(row) for row in self.values],
            "prior": list(self.prior),
            "labels": list(self.labels),
            "numbers": [n.to_state() for n in self.numbers],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TargetMean:
        values = tuple(tuple(row) for row in state["values"])
        numbers = tuple(Numeric(**n) for n in state["numbers"])
        return cls(
            tuple(state["levels"]), values, tuple(state["prior"]), tuple(state["labels"]), numbers
        )


def weigh_levels(values: pl.Series, weights: Floats | None) -> tuple[list[str], Floats, float]:
    """Levels that weigh something in alphabetical order, their weights, and that of missing."""
    words = values.cast(pl.String)
    counts = np.ones(len(words)) if weights is None else weights
    absent = words.is_null().to_numpy()
    names = words.drop_nulls().unique().sort().to_list()
    codes = level_codes(words, tuple(names))
    totals: Floats = np.bincount(
        codes[~absent], weights=counts[~absent], minlength=len(names)
    ).astype(np.float64)
    kept = np.flatnonzero(totals > 0)
    return [names[i] for i in kept], totals[kept], float(counts[absent].sum())


def level_codes(values: pl.Series, levels: tuple[str, ...]) -> NDArray[np.int64]:
    """Number of each label among the levels, -1 unseen, -2 missing.  # (n,)"""
    words = values.cast(pl.String)
    codes = {level: i for i, level in enumerate(levels)}
    found = words.replace_strict(codes, default=int(_UNSEEN), return_dtype=pl.Int64)
    return np.where(words.is_null().to_numpy(), int(_MISSING), found.fill_null(-2).to_numpy())


def _shrunk(codes: NDArray[np.int64], y: Floats, counts: Floats, k: int) -> tuple[Floats, float]:
    """Encoded levels (k,) and the mean of all rows, from distinct pairs of level and target."""
    order = np.lexsort((y, codes))
    c, v = codes[order], y[order]
    first = np.flatnonzero(np.r_[True, (c[1:] != c[:-1]) | (v[1:] != v[:-1])])
    c, v, w = c[first], v[first], np.add.reduceat(counts[order], first)
    n = np.bincount(c, w, minlength=k)
    mean, scale = mean_and_scale(*tally(y, counts))
    variance = scale**2 if np.ptp(y) > 0 else 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        own = np.bincount(c, w * v, minlength=k) / n
        within = np.bincount(c, w * (v - own[c]) ** 2, minlength=k) / n
        share = variance * n / (variance * n + within)
    share, own = np.nan_to_num(share), np.nan_to_num(own)
    return share * own + (1 - share) * mean, mean

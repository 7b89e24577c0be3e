"""Scores are samples: an evaluation gives many values, and says where they vary."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.errors import DataError
from groundstate.evaluate.metrics.base import bounds_of
from groundstate.math.stats.bootstrap import bootstrap
from groundstate.math.stats.credible import Region, eti, hdr
from groundstate.math.stats.interval import Interval, checked_level
from groundstate.math.stats.means import mean_interval

Floats = NDArray[np.float64]
_METHODS = ("auto", "t", "normal", "corrected", "eti", "bootstrap")


@dataclass(frozen=True, eq=False)
class Scores(Displayed):
    r"""Values of one metric, and what differs between them.

    Printed as mean and interval, never as a bare number. The interval of the mean is Student's for
    independent values; folds of a cross-validation share training rows, so they carry
    ``n_train`` and ``n_test`` and get :math:`s\sqrt{1/J + n_\text{test}/n_\text{train}}`
    (Nadeau and Bengio).

    Parameters
    ----------
    values : array
    axes : names of the axes of ``values``: ``"test"``, ``"seed"``, ``"train"``, ``"fold"``
    metric : name of what was measured
    n_train, n_test : rows a fold trains on and is judged on
    greater_is_better : direction

    Examples
    --------
    >>> scores = Scores([0.9, 0.92, 0.94], ("seed",), "accuracy")
    >>> print(scores)
    accuracy 0.92 (0.8703 to 0.9697), 3 values over seed
    >>> Scores.from_json(scores.to_json()).values.tolist()
    [0.9, 0.92, 0.94]
    """

    values: Any
    axes: tuple[str, ...] = ("seed",)
    metric: str = "score"
    n_train: float | None = None
    n_test: float | None = None
    greater_is_better: bool = True
    level: float = 0.95
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        values = np.array(self.values, np.float64)
        if values.size == 0:
            raise DataError("Scores needs at least one value")
        given: Any = self.axes
        axes = (given,) if isinstance(given, str) else tuple(given)
        if values.ndim != len(axes):
            raise DataError(f"values of {values.ndim} axes need as many names, got {axes}")
        values.flags.writeable = False
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "axes", axes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    @property
    def mean(self) -> float:
        """Mean of all values."""
        return float(self.values.mean())

    @property
    def std(self) -> float:
        """Their standard deviation (ddof 1), 0 for one value."""
        return float(self.values.std(ddof=1)) if self.values.size > 1 else 0.0

    @property
    def standard_error(self) -> float:
        """Of the mean; corrected where values are folds."""
        n = self.values.size
        if self.n_train and self.n_test:
            return self.std * math.sqrt(1 / n + self.n_test / self.n_train)
        return self.std / math.sqrt(n)

    def interval(
        self, level: float | None = None, method: str = "auto", *, unsafe: bool = False
    ) -> Interval:
        """Interval of the mean (``"t"``, ``"normal"``, ``"corrected"``, ``"bootstrap"``), or of the
        values themselves (``"eti"``); ``"auto"`` is corrected for folds and t otherwise. No interval
        leaves the values that the metric can take.

        Folds are not independent, so for them the plain intervals are refused unless ``unsafe``.
        """
        level = checked_level(self.level if level is None else level)
        flat = self.values.reshape(-1)
        if method not in _METHODS:
            raise ValueError(f"method must be one of {', '.join(_METHODS)}, got {method!r}")
        if len(flat) < 2:
            raise DataError("one value has no interval; score more seeds, folds or resamples")
        folds = bool(self.n_train and self.n_test)
        if method == "auto":
            method = "corrected" if folds else "t"
        if folds and method in ("t", "normal", "bootstrap") and not unsafe:
            raise DataError(
                "scores of folds share training rows, so their plain interval is too short; leave "
                "method at 'auto', or pass unsafe=True to see it anyway"
            )
        if method == "corrected":
            if not folds:
                raise DataError("a corrected interval is for folds; it needs n_train and n_test")
            import scipy.stats

            reach = float(scipy.stats.t.ppf((1 + level) / 2, len(flat) - 1))
            half = reach * self.standard_error
            found = Interval(self.mean, self.mean - half, self.mean + half, level, "corrected t")
            return found.within(bounds_of(self.metric))
        if method == "eti":
            return eti(flat, level)
        if method == "bootstrap":
            return bootstrap("mean", flat, level=level).interval
        plain = mean_interval(flat, level, method="t" if method == "t" else "normal")
        return plain.within(bounds_of(self.metric))

    @property
    def is_bimodal(self) -> bool:
        """Whether two Gaussians describe the values better than one, by BIC."""
        flat = self.values.reshape(-1, 1)
        if len(flat) < 10 or np.ptp(flat) == 0 or len(np.unique(flat)) < 3:
            return False
        from sklearn.mixture import GaussianMixture

        unit = (flat - flat.mean()) / flat.std()
        # a floor on the width keeps repeated values from counting as a spike
        one, two = (
            GaussianMixture(k, n_init=3, random_state=0, reg_covar=1e-3).fit(unit).bic(unit)
            for k in (1, 2)
        )
        return bool(two < one)

    def credible(self, level: float | None = None) -> Interval | Region:
        """Where the values lie: the equal-tailed interval, or with two peaks the region."""
        level = self.level if level is None else level
        flat = self.values.reshape(-1)
        return hdr(flat, level) if self.is_bimodal else eti(flat, level)

    def hist(self, bins: int = 10) -> tuple[NDArray[np.intp], Floats]:
        """Counts and edges of the values.  # (bins,), (bins + 1,)"""
        counts, edges = np.histogram(self.values, bins)
        return counts, edges

    def __str__(self) -> str:
        over = " × ".join(self.axes)
        if self.values.size < 2:
            return f"{self.metric} {self.mean:.4g} (one value over {over}, no interval)"
        found = self.interval()
        text = f"{self.metric} {self.mean:.4g} ({found.low:.4g} to {found.high:.4g})"
        return f"{text}, {self.values.size} values over {over}"

    def __format__(self, spec: str) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "values": self.values.tolist(),
            "axes": list(self.axes),
            "metric": self.metric,
            "n_train": self.n_train,
            "n_test": self.n_test,
            "greater_is_better": self.greater_is_better,
            "level": self.level,
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Scores:
        """The scores of :meth:`to_dict`."""
        try:
            lists = {k: tuple(values[k]) for k in ("axes", "notes")}
            return cls(**{**values, **lists})
        except (KeyError, TypeError) as error:
            raise DataError(f"these are not stored scores: {error}") from error

    def to_json(self) -> str:
        """JSON text of :meth:`to_dict`."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Scores:
        """The scores of :meth:`to_json`."""
        return cls.from_dict(json.loads(text))

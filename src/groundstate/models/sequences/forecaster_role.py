"""What every forecaster shares: series in, windows to learn from, the future out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.data.sequences.series import Series, series_of
from groundstate.data.sequences.windows import Windows, ends, windows
from groundstate.errors import ShapeError
from groundstate.models.arrays import Home
from groundstate.models.base import EnergyEstimator
from groundstate.models.validation import checked_count, checked_weight


@dataclass(frozen=True, repr=False)
class Forecast:
    """The future of series: a mean and a band for every step.

    Attributes
    ----------
    mean, lower, upper : ``(steps,)`` for one series of numbers, ``(steps, F)`` for one of F columns, with
        a leading axis for several series
    level : probability of the band
    """

    mean: Any
    lower: Any
    upper: Any
    level: float

    def __repr__(self) -> str:
        width = float((self.upper - self.lower).mean())
        shape = tuple(self.mean.shape)
        return f"Forecast({shape}, band of {self.level:.0%}, mean width {width:.4g})"


class EnergyForecaster(EnergyEstimator):
    r"""Free future: :math:`\hat y = \arg\min_y e(x, y)` with x the last items of a series.

    Attributes
    ----------
    last_ : (n_series, context, F) array
        The ends of the series that were learned, from which forecasts go on.
    n_features_in_ : int
        F, columns of a series.
    band_ : float
        Factor on the bands; 1 until ``calibrate``.
    """

    rows: ClassVar[str] = "series"
    last_: Any
    feature_names_in_: Any
    band_: float = 1.0  # of models that were saved before there was a factor
    _form: tuple[bool, bool]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        return tags

    # --- what a preset fills in ----------------------------------------------------------

    def _reach(self) -> tuple[int, int, int]:
        """Items a forecast looks back at, items it looks ahead, and items between windows."""
        raise TypeError(f"{type(self).__name__} must define _reach()")

    def _ahead(self) -> int:
        """Items ahead that a window to learn from holds."""
        return self._reach()[1]

    def _pairs(self, made: Windows) -> tuple[Tensor, Tensor]:
        """x and y of the energy, of windows."""
        raise TypeError(f"{type(self).__name__} must define _pairs(windows)")

    def _future(
        self, past: Tensor, steps: int, level: float | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, lower and upper end ``(n, steps, F)`` behind contexts ``(n, context, F)``; without a
        level the mean thrice."""
        raise TypeError(f"{type(self).__name__} must define _future(past, steps, level)")

    # --- learning ------------------------------------------------------------------------

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        if y is not None:
            raise ValueError(
                f"{type(self).__name__} learns the series X itself; pass further columns in X, not y"
            )
        series = series_of(X)
        context, _, stride = self._reach()
        made = windows(series.rows, context, self._ahead(), stride)
        self._counts = torch.bincount(made.row, minlength=len(series.rows)).cpu().numpy()
        self.n_features_in_ = series.rows.item_shape[0]
        self.__dict__.pop("feature_names_in_", None)
        if series.names is not None:
            self.feature_names_in_ = np.array(series.names, object)
        x, target = self._pairs(made)
        last = ends(series.rows, context).cpu().numpy()
        return x, target, {"last_": last, "_form": (series.single, series.flat), "band_": 1.0}

    def _checked_weight(self, weight: Any, X: Any) -> Any:
        """A weight of a series is that of all its windows."""
        counts = self.__dict__.pop("_counts")
        if weight is None:
            return None
        return np.repeat(checked_weight(weight, np.empty((len(counts), 1), np.float64)), counts)

    # --- answers -------------------------------------------------------------------------

    def predict(self, X: Any = None, steps: int | None = None) -> Any:
        """The most fitting future, ``(steps,)`` or ``(steps, F)``, or of several series
        ``(n, steps, ...)``.

        Parameters
        ----------
        X : series to go on from; None goes on from those that were learned
        steps : how many; None is the horizon
        """
        check_is_fitted(self, "energy_")
        past, home, single, flat = self._contexts(X)
        with torch.no_grad():
            mean, _, _ = self._future(past, self._steps(steps), None)
        return self._shaped(mean, home, single, flat)

    def forecast(self, steps: int | None = None, X: Any = None, level: float = 0.9) -> Forecast:
        """The future with bands.

        Parameters
        ----------
        steps : how many; None is the horizon
        X : series to go on from; None goes on from those that were learned
        level : probability that an item lies within its band
        """
        check_is_fitted(self, "energy_")
        steps = self._steps(steps)
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level}")
        past, home, single, flat = self._contexts(X)
        with torch.no_grad():
            mean, lower, upper = self._future(past, steps, level)
        if self.band_ != 1.0:
            lower, upper = (mean + self.band_ * (end - mean) for end in (lower, upper))
        made = [self._shaped(part, home, single, flat) for part in (mean, lower, upper)]
        return Forecast(made[0], made[1], made[2], level)

    def calibrate(
        self, X: Any, steps: int | None = None, level: float = 0.9, holdout: int | None = None
    ) -> Self:
        r"""Widen or narrow the bands until they hold their share of items that were not learned from.

        .. math::
            \text{band\_} = \lceil(n + 1)\,\text{level}\rceil\text{-th smallest of }
            |x_i - \hat x_i| / \tfrac12(u_i - l_i)

        over the last items of each series, forecast from every possible item on.

        Parameters
        ----------
        X : series, the ends of which ``fit`` has not seen
        steps : items ahead; None is the horizon
        level : probability of the band
        holdout : how many items at the end of each series judge; None is ``steps``

        Examples
        --------
        >>> import numpy as np
        >>> from groundstate import AutoRegressor
        >>> x = np.random.default_rng(0).normal(size=120).cumsum()
        >>> model = AutoRegressor(25).fit(x[:90])  # too many lags for so few items
        >>> bool(model.calibrate(x, steps=1, holdout=30).band_ > 1)
        True
        """
        check_is_fitted(self, "energy_")
        steps = self._steps(steps)
        holdout = steps if holdout is None else checked_count(holdout, "holdout")
        series = self._series(X).rows
        made = windows(series, self._reach()[0], steps)
        left = series.lengths[made.row] - made.start - self._reach()[0]
        inside = left <= holdout
        if not bool(inside.any()):
            raise ValueError(
                f"holdout={holdout} items hold no forecast of {steps} steps; use a larger holdout"
            )
        device, dtype = self.energy_.placement()
        with torch.no_grad():
            mean, low, high = self._future(made.past[inside].to(device, dtype), steps, level)
        off = (self._forecast_part(made.future[inside]).to(mean) - mean).abs()
        half = ((high - low) / 2).clamp_min(torch.finfo(mean.dtype).tiny)
        ratio = (off / half).flatten().sort().values
        place = min(math.ceil((len(ratio) + 1) * level), len(ratio)) - 1
        self.band_ = float(ratio[place])
        return self

    def _steps(self, steps: int | None) -> int:
        steps = self._reach()[1] if steps is None else steps
        return checked_count(steps, "steps")

    def _contexts(self, X: Any) -> tuple[Tensor, Home, bool, bool]:
        """Ends of series on the device of θ, where answers go, and their form."""
        device, dtype = self.energy_.placement()
        if X is None:
            single, flat = self._form
            return torch.from_numpy(self.last_).to(device, dtype), Home(), single, flat
        series = self._series(X)
        past = ends(series.rows, self._reach()[0]).to(device, dtype)
        return past, Home(series.device), series.single, series.flat

    def _series(self, X: Any) -> Series:
        check_is_fitted(self, "energy_")
        series = series_of(X)
        if series.rows.item_shape[0] != self.n_features_in_:
            raise ShapeError(
                f"{type(self).__name__} was fitted to series of {self.n_features_in_} columns, got "
                f"{series.rows.item_shape[0]}"
            )
        return series

    @staticmethod
    def _shaped(values: Tensor, home: Home, single: bool, flat: bool) -> Any:
        values = values[..., 0] if flat and values.shape[-1] == 1 else values
        return home.give(values[0] if single else values)

    def _windows(self, X: Any) -> tuple[Series, Tensor, Tensor, Tensor]:
        """Series, and x, y and the series of each of their windows, on the device of θ."""
        series = self._series(X)
        device, dtype = self.energy_.placement()
        made = windows(series.rows, self._reach()[0], self._ahead())
        x, y = self._pairs(made)
        return series, x.to(device, dtype), y.to(device, dtype), made.row.to(device)

    def energy(self, X: Any, y: Any = None, z: Any = None) -> Any:
        """Energy of each series: the sum of those of its windows, ``(n_series,)``."""
        series, x, target, row = self._windows(X)
        with torch.no_grad():
            e = self.energy_(x=x, y=target)
        total = e.new_zeros(len(series.rows)).index_add(0, row, e)
        return Home(series.device).give(total)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """:math:`R^2` of the forecasts of all windows of X; 1 is perfect, 0 as good as the mean."""
        context, horizon, _ = self._reach()
        series = self._series(X)
        device, dtype = self.energy_.placement()
        made = windows(series.rows, context, horizon)
        with torch.no_grad():
            found = self._future(made.past.to(device, dtype), horizon, None)[0]
        truth = self._forecast_part(made.future).to(found)
        weight = torch.ones(len(truth), 1, 1, dtype=dtype, device=device)
        if sample_weight is not None:
            given = torch.as_tensor(np.asarray(sample_weight), dtype=dtype, device=device)
            weight = given[made.row.to(device)][:, None, None]
        mean = (weight * truth).sum((0, 1)) / (weight * torch.ones_like(truth)).sum((0, 1))
        off = (weight * (truth - found).square()).sum()
        spread = (weight * (truth - mean).square()).sum()
        return float(1 - off / spread) if spread > 0 else float(off == 0)

    def _forecast_part(self, future: Tensor) -> Tensor:
        """The columns that are forecast."""
        return future

    def _rows(self, X: Any) -> tuple[Tensor, Home]:
        past, home, _, _ = self._contexts(X)
        return self._pairs(Windows(past, past[:, :1], past, past))[0], home

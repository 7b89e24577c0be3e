r"""Standard errors, tests and confidence intervals of unpenalised linear models.

.. math:: \widehat{\mathrm{Cov}}(\hat\theta) = \hat\varphi\,(X^\top H X)^{-1}, \qquad
          H = \mu'^2/V(\mu)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from groundstate.compute.display import Displayed
from groundstate.energy.basic import LinearEnergy, SquaredEnergy
from groundstate.energy.linear.glm import GLMEnergy
from groundstate.errors import DataError, Unsupported
from groundstate.evaluate.intervals.fisher_information import (
    Fitted,
    from_classes,
    from_glm,
    from_squares,
)
from groundstate.models.tables.table import TablePredictor

if TYPE_CHECKING:
    import polars

Array = NDArray[np.float64]


@dataclass(frozen=True)
class InferenceTable(Displayed):
    r"""Estimates with standard errors, tests of zero, and what the whole model is worth.

    Attributes
    ----------
    names : parameter names, the intercept first
    estimate, se : ``(k,)``
    statistic, p_value : ``(k,)``; t with ``df_resid`` degrees for least squares, else z
    kind : "t" or "z"
    covariance : ``(k, k)``
    n_rows, n_parameters, df_resid : rows (or summed weights), k, and their difference
    dispersion : φ; for least squares s² = SSE/(n − k)
    log_likelihood, aic, bic
    sse, r2 : of least squares, else nan
    f_test : (F, p) of least squares against the mean alone
    lr_test : (:math:`2(\ell_1 - \ell_0)`, p) against the intercept alone
    """

    names: tuple[str, ...]
    estimate: Array
    se: Array
    statistic: Array
    p_value: Array
    kind: str
    covariance: Array = field(repr=False)
    n_rows: float
    n_parameters: int
    df_resid: float
    dispersion: float
    log_likelihood: float
    aic: float
    bic: float
    sse: float = float("nan")
    r2: float = float("nan")
    f_test: tuple[float, float] = (float("nan"), float("nan"))
    lr_test: tuple[float, float] = (float("nan"), float("nan"))

    def conf_int(self, level: float = 0.95) -> Array:
        """Confidence intervals, ``(k, 2)``."""
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level}")
        q = 0.5 * (1 + level)
        reach = scipy.stats.t.ppf(q, self.df_resid) if self.kind == "t" else scipy.stats.norm.ppf(q)
        return np.column_stack([self.estimate - reach * self.se, self.estimate + reach * self.se])

    def to_frame(self, level: float = 0.95) -> polars.DataFrame:
        """One row per parameter, as a polars frame."""
        import polars

        low, high = self.conf_int(level).T
        return polars.DataFrame(
            {
                "parameter": self.names, "estimate": self.estimate, "se": self.se,
                self.kind: self.statistic, "p": self.p_value, "low": low, "high": high,
            }
        )  # fmt: skip

    def __str__(self) -> str:
        low, high = self.conf_int().T
        width = max(9, *(len(n) for n in self.names))
        head = f"{'':{width}s} {'estimate':>11s} {'se':>11s} {self.kind:>8s} {'p':>8s}   95 %"
        lines = [
            f"{n:{width}s} {e:11.5g} {s:11.4g} {t:8.3f} {p:8.4f}   [{a:.4g}, {b:.4g}]"
            for n, e, s, t, p, a, b in zip(
                self.names, self.estimate, self.se, self.statistic, self.p_value, low, high,
                strict=True,
            )
        ]  # fmt: skip
        foot = (
            f"n = {self.n_rows:g}, log-likelihood {self.log_likelihood:.4f}, "
            f"AIC {self.aic:.2f}, BIC {self.bic:.2f}"
        )
        if self.kind == "t":
            foot += f", R² {self.r2:.4f}, F {self.f_test[0]:.4g} (p {self.f_test[1]:.3g})"
        else:
            foot += f", likelihood ratio {self.lr_test[0]:.4g} (p {self.lr_test[1]:.3g})"
        return "\n".join([head, *lines, foot])

    __repr__ = __str__


def inference(
    model: Any, X: Any, y: Any, sample_weight: Any = None, offset: Any = None
) -> InferenceTable:
    r"""Standard errors, tests and intervals of a fitted linear, generalised linear or logistic model.

    Least squares: :math:`s^2 = \mathrm{SSE}/(n-k)`, t tests, F against the mean alone, and the
    log-likelihood at :math:`\sigma^2 = \mathrm{SSE}/n`. Others: Wald z with
    :math:`\mathrm{SE} = \sqrt{\mathrm{diag}\,\varphi(X^\top HX)^{-1}}`, and the likelihood-ratio
    test :math:`2(\ell_1 - \ell_0) \sim \chi^2` against the intercept alone.

    Parameters
    ----------
    model : fitted ``LinearRegression``, ``GLM`` and its presets with ``alpha=0``, or
        ``LogisticRegression(C=numpy.inf)``; behind a preparation of columns the parameters are
        those of the prepared numbers, such as standardised columns
    X, y, sample_weight, offset : the rows of the fit
        Weights count rows: 2 is the row twice.

    Returns
    -------
    InferenceTable
        With ``conf_int(level)`` and ``to_frame()``. A penalised fit, collinear columns or rows that
        the model was not fitted on are refused with ``DataError``.

    Examples
    --------
    >>> from groundstate import LinearRegression
    >>> X, y = np.arange(4.0)[:, None], [1.0, 2.0, 2.0, 4.0]
    >>> inference(LinearRegression().fit(X, y), X, y)
                 estimate          se        t        p   95 %
    intercept         0.9       0.495    1.818   0.2106   [-1.23, 3.03]
    x0                0.9      0.2646    3.402   0.0766   [-0.2384, 2.038]
    n = 4, log-likelihood -2.1898, AIC 8.38, BIC 7.15, R² 0.8526, F 11.57 (p 0.0766)
    """
    if isinstance(model, TablePredictor):
        numbers, scale = model.prepare(X), model.target_scale_
        target = y if scale is None else scale.there(y)
        found = inference(model.estimator_, numbers, target, sample_weight, offset)
        names = model.preparation_.feature_names_out()
        return replace(found, names=(*found.names[: len(found.names) - len(names)], *names))
    check_is_fitted(model, "energy_")
    energy = model.energy_
    _refuse_penalties(model)
    rows = (model, energy, X, y, sample_weight)
    if isinstance(energy, SquaredEnergy) and energy.net is None:
        return _least_squares(from_squares(*rows))
    if isinstance(energy, GLMEnergy):
        return _likelihood(from_glm(*rows, offset))
    if isinstance(energy, LinearEnergy) and hasattr(model, "predict_proba"):
        return _likelihood(from_classes(*rows))
    raise Unsupported(
        f"inference knows linear, generalised linear and logistic models, not "
        f"{type(model).__name__}; bootstrap it instead (groundstate.evaluate.bootstrap)"
    )


def _refuse_penalties(model: Any) -> None:
    params = model.get_params(deep=False)
    strength = params.get("alpha", getattr(model, "alpha_", 0.0))
    penalised = np.ndim(strength) or float(strength) > 0 or np.isfinite(params.get("C", np.inf))
    if penalised or params.get("positive") or params.get("class_weight") is not None:
        raise DataError(
            f"standard errors hold for maximum likelihood, and this {type(model).__name__} was "
            "fitted with a penalty, bounds or class weights; fit it with alpha=0 (C=numpy.inf)"
        )


def _least_squares(found: Fitted) -> InferenceTable:
    n, k = found.n_rows, len(found.estimate)
    free = n - k
    if free <= 0:
        raise DataError(f"{n:g} rows leave no freedom for the noise of {k} parameters")
    s2 = found.sse / free
    covariance = s2 * found.inverse
    se = np.sqrt(covariance.diagonal())
    with np.errstate(divide="ignore", invalid="ignore"):
        t = found.estimate / se
        llf = -0.5 * n * (np.log(2 * np.pi * found.sse / n) + 1)
    tested = k - found.intercept
    f = ((found.sst - found.sse) / tested / s2) if tested and s2 > 0 else np.nan
    return InferenceTable(
        found.names, found.estimate, se, t, 2 * scipy.stats.t.sf(np.abs(t), free), "t", covariance,
        n, k, free, s2, float(llf), float(2 * k - 2 * llf), float(k * np.log(n) - 2 * llf),
        sse=found.sse, r2=1 - found.sse / found.sst if found.sst > 0 else np.nan,
        f_test=(float(f), float(scipy.stats.f.sf(f, tested, free))),
    )  # fmt: skip


def _likelihood(found: Fitted) -> InferenceTable:
    n, k = found.n_rows, len(found.estimate)
    covariance = found.dispersion * found.inverse
    se = np.sqrt(covariance.diagonal())
    z = found.estimate / se
    llf = found.log_likelihood
    tested = k - found.null_parameters
    ratio = (found.null_deviance - found.deviance) / found.dispersion
    return InferenceTable(
        found.names, found.estimate, se, z, 2 * scipy.stats.norm.sf(np.abs(z)), "z", covariance,
        n, k, n - k, found.dispersion, llf, 2 * k - 2 * llf, k * float(np.log(n)) - 2 * llf,
        lr_test=(ratio, float(scipy.stats.chi2.sf(ratio, tested)) if tested else np.nan),
    )  # fmt: skip

r"""What no data removes and what more data would: aleatoric and epistemic uncertainty of a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from groundstate.compute.display import Displayed
from groundstate.compute.foreign.torch import AnyDropout
from groundstate.errors import DataError
from groundstate.evaluate.fitting import gives_std
from groundstate.models.tables.table import TablePredictor
from groundstate.models.traits import traits_of

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Uncertainty(Displayed):
    """Uncertainty of each row.

    Attributes
    ----------
    total, aleatoric, epistemic : (n,)
        Variances (regression), or entropies in nats (classes); the first is the sum of the others.
    mean : (n,) or (n, K)
        Mean answer of the members.
    kind : ``"variance"`` or ``"entropy"``
    """

    total: Floats
    aleatoric: Floats
    epistemic: Floats
    mean: Floats
    kind: str

    def __str__(self) -> str:
        share = self.epistemic.sum() / self.total.sum() if self.total.sum() > 0 else 0.0
        return (
            f"mean {self.kind} {self.total.mean():.4g} = {self.aleatoric.mean():.4g} in the data + "
            f"{self.epistemic.mean():.4g} for want of data ({share:.0%})"
        )


def uncertainty(
    ensemble: Any,
    X: Any = None,
    *,
    variance: Any = None,
    n_samples: int = 100,
    random_state: Any = 0,
) -> Uncertainty:
    r"""Split the uncertainty of an ensemble, a posterior sample set or a dropout network.

    Regression, with member means :math:`\mu_m` and variances :math:`s_m^2`:
    :math:`\mathrm{Var} = \overline{s_m^2} + \mathrm{Var}_m\mu_m`. Classes:
    :math:`H(\bar p) = \overline{H(p_m)} + I`, I the mutual information of label and member.

    Parameters
    ----------
    ensemble : a fitted ensemble (``estimators_`` or ``predict_members``), a network with
        dropout, either behind a preparation of columns too, a list of fitted models, or what
        members predicted: probabilities ``(M, n, K)`` or values ``(M, n)``
    X : rows, unless the members' answers are given
    variance : variances of the members, ``(M, n)``, a number, or ``variance(member, X)``;
        by default what ``predict(X, return_std=True)`` or ``predict_var`` says, else 0
    n_samples : masks of a dropout network

    Examples
    --------
    >>> found = uncertainty(np.array([[[0.9, 0.1]], [[0.5, 0.5]]]))
    >>> [round(float(v[0]), 6) for v in (found.total, found.aleatoric, found.epistemic)]
    [0.610864, 0.509115, 0.101749]
    """
    if isinstance(ensemble, TablePredictor) and X is not None:
        return _behind(ensemble, X, variance, n_samples, random_state)
    predictions, own = _members(ensemble, X, n_samples, random_state)
    if predictions.ndim == 3:
        return _classes(predictions)
    if predictions.ndim != 2:
        raise DataError(
            f"members predict values (M, n) or probabilities (M, n, K), got {predictions.shape}"
        )
    spread = _variances(variance, own, X, predictions)
    epistemic, aleatoric = predictions.var(0), spread.mean(0)
    return Uncertainty(aleatoric + epistemic, aleatoric, epistemic, predictions.mean(0), "variance")


def _behind(model: TablePredictor, X: Any, variance: Any, n: int, random_state: Any) -> Uncertainty:
    """Of an ensemble behind a preparation, in the units of the table's target."""
    kept = model.target_scale_
    square = 1.0 if kept is None else float(kept.scale) ** 2
    if variance is not None and not callable(variance):
        variance = np.asarray(variance, np.float64) / square
    found = uncertainty(
        model.estimator_, model.prepare(X), variance=variance, n_samples=n,
        random_state=random_state,
    )  # fmt: skip
    if kept is None or found.kind != "variance":
        return found
    return replace(
        found, total=square * found.total, aleatoric=square * found.aleatoric,
        epistemic=square * found.epistemic, mean=kept.back(found.mean),
    )  # fmt: skip


def _classes(p: Floats) -> Uncertainty:
    if (p < -1e-9).any() or np.abs(p.sum(-1) - 1).max(initial=0) > 1e-4:
        raise DataError("probabilities (M, n, K) must sum to 1 over the last axis")
    mean = p.mean(0)
    aleatoric = _entropy(p).mean(0)
    # entropy is concave and equal members know the same: only rounding says else
    total = np.maximum(_entropy(mean), aleatoric)
    total = np.where((p == p[0]).all((0, 2)), aleatoric, total)
    return Uncertainty(total, aleatoric, total - aleatoric, mean, "entropy")


def _entropy(p: Floats) -> Floats:
    return np.asarray(-(p * np.log(np.where(p > 0, p, 1.0))).sum(-1))


def _members(ensemble: Any, X: Any, n: int, random_state: Any) -> tuple[Floats, list[Any]]:
    """What each member says, and the members where there are any."""
    if isinstance(ensemble, np.ndarray):
        return ensemble.astype(np.float64), []
    if X is None:
        raise DataError("pass the rows X, or an array of the predictions of members")
    if isinstance(ensemble, (list, tuple)):
        models = list(ensemble)
    elif hasattr(ensemble, "predict_members"):
        return np.asarray(ensemble.predict_members(X), np.float64), []
    elif len(getattr(ensemble, "estimators_", ())):
        summed = traits_of(ensemble).summed
        if hasattr(ensemble, "staged_predict") if summed is None else summed:
            raise DataError(
                f"the parts of {type(ensemble).__name__} are added up, they are no members; fit an "
                "ensemble of it with other seeds or rows"
            )
        models = list(np.ravel(np.asarray(ensemble.estimators_, dtype=object)))
        subsets = getattr(ensemble, "estimators_features_", None)
        if subsets is not None:
            predictions = [
                _predicted(m, np.asarray(X)[:, f], ensemble) for m, f in zip(models, subsets)
            ]
            return np.stack(predictions), []
        X = np.asarray(X) if hasattr(X, "columns") else X
        return np.stack([_predicted(m, X, ensemble) for m in models]), models
    elif _drops(ensemble):
        from groundstate.models.ensembles.seeds.networks import monte_carlo_dropout

        draws = monte_carlo_dropout(ensemble, X, n, random_state=random_state).draws
        return np.asarray(draws, np.float64), []
    else:
        raise DataError(
            f"{type(ensemble).__name__} has no members: pass an ensemble, a network with dropout, "
            "a list of fitted models, or predictions of members"
        )
    if not models:
        raise DataError("an empty list has no uncertainty; pass at least one fitted model")
    return np.stack([_predicted(m, X, None) for m in models]), models


def _predicted(model: Any, X: Any, whole: Any) -> Floats:
    """Probabilities where there are any, in the order of the ensemble's classes."""
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.predict(X), np.float64)
    p = np.asarray(model.predict_proba(X), np.float64)
    classes, own = getattr(whole, "classes_", None), np.asarray(model.classes_)
    if classes is None or len(own) == len(classes):
        return p
    # members of a forest know class numbers, others the labels themselves
    place = own.astype(np.intp) if own.dtype.kind == "f" else np.searchsorted(classes, own)
    wide = np.zeros((len(p), len(classes)))
    wide[:, place] = p
    return wide


def _drops(model: Any) -> bool:
    """Whether a fitted network has dropout layers."""
    energy = getattr(model, "energy_", None)
    if not isinstance(energy, nn.Module):
        return False
    return any(isinstance(part, AnyDropout) and part.p > 0 for part in energy.modules())


def _variances(given: Any, models: list[Any], X: Any, predictions: Floats) -> Floats:
    if callable(given):
        if not models:
            raise DataError("variance(member, X) needs members; pass a list of fitted models")
        call: Callable[[Any, Any], Any] = given
        return np.stack([np.asarray(call(m, X), np.float64) for m in models])
    if given is not None:
        table = np.broadcast_to(np.asarray(given, np.float64), predictions.shape)
        if (table < 0).any():
            raise DataError("variances are not negative")
        return table
    if models and hasattr(models[0], "predict_var"):
        return np.stack([np.asarray(m.predict_var(X), np.float64) for m in models])
    if models and gives_std(models[0]):
        return np.stack([np.square(m.predict(X, return_std=True)[1]) for m in models])
    return np.zeros_like(predictions)

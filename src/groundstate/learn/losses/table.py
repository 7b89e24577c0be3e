r"""Losses by name, and the default for a kind of target."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from groundstate.errors import Unsupported
from groundstate.learn.losses.heads import ROWS, LossHead
from groundstate.nn.heads.base import FAMILIES, DistributionHead, Head, Kind
from groundstate.nn.heads.normal import NormalHead

Task = Literal["regression", "classification", "ranking"]


@dataclass(frozen=True)
class LossRow:
    """One loss: the support of its outcome, and whether it is a likelihood.

    ``make(m, **options)`` builds its head: m coordinates, labels or items.
    """

    name: str
    kind: Kind
    is_likelihood: bool
    options: tuple[str, ...]
    family: str = ""  # of ``DistributionHead``

    @property
    def task(self) -> Task:
        if self.kind in ("labels", "binary"):
            return "classification"
        return "ranking" if self.kind == "ranking" else "regression"

    def make(self, m: int = 1, **options: Any) -> Head:
        """The head for m coordinates (or labels, or items) of the outcome."""
        unknown = sorted(set(options) - set(self.options))
        if unknown:
            has = ", ".join(self.options) or "none"
            raise ValueError(f"the loss {self.name!r} has no setting {unknown[0]!r}; it has {has}")
        if self.name == "normal":
            return NormalHead(m, **options)
        if self.name == "cross_entropy" and options.get("label_smoothing", 0.0):
            return LossHead("smoothed_cross_entropy", m, options)
        if self.name == "cross_entropy":
            return DistributionHead("categorical", m)
        if self.family:
            return DistributionHead(self.family, m, **options)
        return LossHead(self.name, m, options)


def _rows() -> dict[str, LossRow]:
    rows = [
        LossRow(name, row.kind, False, tuple(row.options))
        for name, row in ROWS.items()
        if name != "smoothed_cross_entropy"
    ]
    rows.append(LossRow("cross_entropy", "labels", True, ("label_smoothing",), "categorical"))
    rows.append(LossRow("bce", "binary", True, (), "bernoulli"))
    for name, family in FAMILIES.items():
        if name in ("categorical", "bernoulli"):
            continue
        options: tuple[str, ...] = ("link",)
        if name == "normal":
            options = ("scale", "sigma", "param")
        elif name == "multivariate_normal":
            options = ("link", "covariance")
        elif name == "plackett_luce":
            options = ()
        rows.append(LossRow(name, family.kind, True, options, name))
    return {row.name: row for row in rows}


LOSSES: dict[str, LossRow] = _rows()


def head_of(loss: str | Head, m: int = 1, **options: Any) -> Head:
    """The head of a loss by name, or the head itself.

    Parameters
    ----------
    loss : a name of ``LOSSES``, or a head
    m : coordinates of the outcome; labels of a classification; items of a ranking
    options : settings of the loss, such as ``delta`` of "huber" or ``scale`` of "normal"

    Examples
    --------
    >>> head_of("cross_entropy", 3).n_outputs, head_of("normal", 2).n_outputs
    (3, 4)
    >>> sorted(name for name, row in LOSSES.items() if row.task == "classification")
    ['bce', 'brier', 'cross_entropy', 'dice', 'focal', 'hinge', 'squared_onehot']
    """
    if isinstance(loss, Head):
        return loss
    if loss not in LOSSES:
        near = get_close_matches(str(loss), LOSSES, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(LOSSES)}."
        raise Unsupported(f"there is no loss named {loss!r}; {hint}")
    return LOSSES[loss].make(m, **options)


DEFAULTS = {
    "binary": "bce",
    "multilabel-indicator": "bce",
    "multiclass": "cross_entropy",
    "continuous": "normal",
    "continuous-multioutput": "normal",
    "count": "poisson",
    "positive": "gamma",
    "unit": "beta",
    "angle": "von_mises",
    "ranking": "plackett_luce",
}


def head_for(target: str, m: int = 1) -> Head:
    """The likelihood for a kind of target: the support of y chooses the distribution.

    Parameters
    ----------
    target : what scikit-learn's ``type_of_target`` says ("binary", "multiclass", "continuous",
        "continuous-multioutput", "multilabel-indicator"), or "count", "positive", "unit", "angle",
        "ranking"
    m : coordinates, labels or items

    Examples
    --------
    >>> head_for("multiclass", 4), head_for("continuous")
    (DistributionHead('categorical', m=4, link='softplus'), NormalHead(m=1, scale='learned'))
    """
    if target not in DEFAULTS:
        raise Unsupported(
            f"there is no default loss for a target of kind {target!r}; kinds are "
            f"{', '.join(DEFAULTS)}; for several outputs of mixed type use MultiHead"
        )
    name = DEFAULTS[target]
    return NormalHead(m, "learned") if name == "normal" else head_of(name, m)

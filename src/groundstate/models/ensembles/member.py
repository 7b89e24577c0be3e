r"""A fitted estimator as a member of a committee: its answers read as an energy of x and y."""

from __future__ import annotations

from functools import cache, partial
from inspect import getattr_static, signature
from types import FunctionType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.spaces import Finite, Real
from groundstate.errors import DataError
from groundstate.learn.solvers.committee import Member
from groundstate.models.base import EnergyEstimator
from groundstate.models.population.many import fit_together, has_program
from groundstate.models.roles import EnergyClassifier, EnergyRegressor


class ClassMember(Energy):
    r"""A fitted classifier, :math:`e(x, y) = -\log p(y \mid x)`; without ``predict_proba`` it is
    certain of what it predicts.

    Parameters
    ----------
    d : number of columns that it sees
    k : number of classes of the committee, of which it may know a part
    estimator : fitted to class numbers
    """

    normalised = frozenset({"y"})
    missing = frozenset({"x"})
    held = frozenset({"x"})

    def __init__(self, d: int, k: int, estimator: Any) -> None:
        super().__init__(x=Real(d), y=Finite(k))
        self.d, self.k, self.estimator = d, k, estimator

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "k": self.k, "estimator": self.estimator}

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.energies(x).gather(1, y[:, None]).squeeze(1)

    @offers.table("y")
    @torch.no_grad()
    def energies(self, x: Tensor) -> Tensor:
        own = self.estimator
        if _plain(own, EnergyClassifier, "predict_proba") and len(own.classes_) == self.k:
            return -torch.log_softmax(-own.energy_.table("y", x=x), 1)
        out = torch.zeros(len(x), self.k, dtype=x.dtype, device=x.device)
        if hasattr(self.estimator, "predict_proba"):
            known = torch.as_tensor(np.asarray(self.estimator.classes_, np.int64), device=x.device)
            out[:, known] = _asked(self.estimator, "predict_proba", x).to(out)
        else:
            best = _asked(self.estimator, "predict", x).long().to(x.device)
            out.scatter_(1, best[:, None], 1.0)
        return -out.log()


class ValueMember(Energy):
    r"""A fitted regressor, :math:`e(x, y) = \tfrac12\|y - f(x)\|^2`.

    Parameters
    ----------
    d : number of columns that it sees
    m : number of outputs
    estimator : fitted
    """

    missing = frozenset({"x"})
    held = frozenset({"x"})

    def __init__(self, d: int, m: int, estimator: Any) -> None:
        super().__init__(x=Real(d), y=Real(m))
        self.d, self.m, self.estimator = d, m, estimator

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "m": self.m, "estimator": self.estimator}

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return 0.5 * (y - self.best(x)).square().sum(-1)

    @offers.argmin("y")
    def best(self, x: Tensor) -> Tensor:
        own = self.estimator
        if not isinstance(own, EnergyEstimator):
            values = np.asarray(own.predict(x.numpy(force=True))).reshape(-1, self.m)
            return torch.from_numpy(values).to(x)
        argmin = (
            own.energy_.ability("argmin", "y") if _plain(own, EnergyRegressor, "predict") else None
        )
        with torch.no_grad():
            if argmin is not None:
                value: Tensor = argmin(x=x)
                return value
            return torch.as_tensor(own.predict(x)).to(x).reshape(len(x), self.m)

    def leaves(self, x: Tensor) -> Tensor | None:
        """The leaf of each row where the estimator is a tree of scikit-learn, ``(B,)``."""
        if not hasattr(self.estimator, "tree_") or isinstance(self.estimator, EnergyEstimator):
            return None
        return torch.as_tensor(self.estimator.apply(x.cpu().numpy())).long()

    def move(self, values: Tensor) -> None:
        """New values of those leaves."""
        self.estimator.tree_.value[: len(values), 0, 0] = values.numpy()


def _plain(estimator: Any, role: Any, question: str) -> bool:
    """Whether the answer of an estimator is that of its energy to the rows as they are."""
    if getattr(estimator, "_levels", None):  # of columns of categories
        return False
    cls: Any = type(estimator)
    return _plain_class(cls, role, question)


@cache
def _plain_class(cls: Any, role: Any, question: str) -> bool:
    return (
        issubclass(cls, role)
        and getattr_static(cls, question) is getattr_static(role, question)
        and (question != "predict_proba" or cls._calibrated)
        and getattr_static(cls, "_shares", None) is getattr_static(role, "_shares", None)
        and cls._rows is EnergyEstimator._rows
        and getattr(cls, "_class_table", None) is getattr(role, "_class_table", None)
    )


def _asked(estimator: Any, question: str, x: Tensor) -> Tensor:
    """The answer of an estimator to rows, as a tensor; ours take tensors as they are."""
    rows = x if isinstance(estimator, EnergyEstimator) else x.cpu().numpy()
    return torch.as_tensor(getattr(estimator, question)(rows))


def member(base: Any, k: int | None, seeds: bool = True) -> Member:
    """How to fit a clone of ``base``: to k classes, or to values (None); with seeds of its own."""
    weighs = _weighs(base)

    def fitted(x: Tensor, y: Tensor, weight: Tensor | None, key: Key) -> Energy:
        model = seeded(clone(base), key) if seeds else clone(base)
        X, target = x.cpu().numpy(), y.cpu().numpy()
        w = None if weight is None else weight.double().cpu().numpy()
        if k is None and target.shape[1] == 1:
            target = target[:, 0]
        if k is not None and w is not None and len(np.unique(target[w > 0])) < k:
            X, target, w = X[w > 0], target[w > 0], w[w > 0]  # it must not know classes it has not
        if w is None or weighs:
            model.fit(X, target, **({} if w is None else {"sample_weight": w}))
        else:
            index = np.repeat(np.arange(len(X)), _whole(w, base))
            model.fit(X[index], target[index])
        if k is None:
            return ValueMember(x.shape[1], y.shape[1], model)
        return ClassMember(x.shape[1], k, model)

    if seeds and has_program(base):
        fitted.together = partial(_together, base, k)  # type: ignore[attr-defined]
    return fitted


def _weighs(base: Any) -> bool:
    """Whether ``fit`` takes ``sample_weight``; the signature of a class is read once."""
    method = getattr(type(base), "fit", None)
    if not isinstance(method, FunctionType) or "fit" in vars(base):
        return bool(has_fit_parameter(base, "sample_weight"))
    return _takes_weights(method)


@cache
def _takes_weights(fit: FunctionType) -> bool:
    return "sample_weight" in signature(fit).parameters


def _together(
    base: Any, k: int | None, x: Tensor, y: Tensor, weights: list[Tensor | None], keys: list[Key]
) -> list[Energy]:
    """All members as one program; ``NotApplicable`` where they are fitted one by one."""
    X, target = x.cpu().numpy(), y.cpu().numpy()
    if k is None and target.shape[1] == 1:
        target = target[:, 0]
    own: NDArray[np.float64] | None = None
    if any(w is not None for w in weights):
        rows = [torch.ones(len(x)) if w is None else w for w in weights]
        own = torch.stack([w.double().cpu() for w in rows]).numpy()
    models = fit_together(base, X, target, own, [_seeds(base, key) for key in keys])
    if k is None:
        return [ValueMember(x.shape[1], y.shape[1], model) for model in models]
    return [ClassMember(x.shape[1], k, model) for model in models]


def seeded(model: Any, key: Key) -> Any:
    """Give every ``random_state`` of a model, also of its parts, a seed of its own."""
    seeds = _seeds(model, key)
    return model.set_params(**seeds) if seeds else model


def _seeds(model: Any, key: Key) -> dict[str, int]:
    return {
        name: key.fold(name).low % 2**31
        for name in sorted(model.get_params(deep=True))
        if name == "random_state" or name.endswith("__random_state")
    }


def _whole(weight: NDArray[np.float64], base: Any) -> NDArray[np.int64]:
    counts = np.round(weight)
    if not np.allclose(counts, weight, atol=1e-9):
        raise DataError(
            f"{type(base).__name__} takes no sample_weight, so weights are repeated rows and must "
            "be whole numbers; use a member that takes weights"
        )
    return counts.astype(np.int64)

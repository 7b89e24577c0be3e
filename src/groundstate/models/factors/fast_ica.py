"""Independent components."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar

import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import Tags
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, Options, StrOptions
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.latent.independent_codes import IndependentCodeEnergy
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.latent.factors.fast_ica import FastICA as Steps
from groundstate.learn.solvers.latent.factors.fast_ica import summed
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.factors.linear_codes import codes_of
from groundstate.models.learned import Learned
from groundstate.models.roles import EnergyTransformer
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="factors", task="representation", role="transformer")
class FastICA(ClassNamePrefixFeaturesOutMixin, EnergyTransformer):
    r"""Sources that are mixed linearly and independent of each other.

    .. math::
        x = As + b, \qquad e(x) = \sum_k G\bigl(u_k^\top(x - b)\bigr), \quad G = \log\cosh .

    Of all rotations of white rows those directions are taken along which rows are least Gaussian, by the
    fixed-point steps of Hyvärinen and Oja.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of sources; None is as many as directions with variance.
    algorithm : {"parallel", "deflation"}, default="parallel"
        All directions at once, or one after the other.
    whiten : {"unit-variance", "arbitrary-variance", False}, default="unit-variance"
        Sources of unit variance, of variance 1/n, or rows that are white already.
    fun : {"logcosh", "exp", "cube"} or callable, default="logcosh"
        The contrast; a callable gives its derivatives ``(g(u), g'(u))``, averaged over rows or not.
    fun_args : dict, default=None
        ``{"alpha": 1.0}`` of "logcosh", between 1 and 2.
    max_iter : int, default=200
    tol : float, default=1e-4
    w_init : (n_components, n_components) array, default=None
    whiten_solver : {"svd", "eigh"}, default="svd"
        Kept for scikit-learn's signature; the covariance is decomposed.
    random_state : int, default=None

    Attributes
    ----------
    components_ : (n_components, n_features) array
        What rows are multiplied with to give the sources.
    mixing_ : (n_features, n_components) array
    mean_ : (n_features,) array
    whitening_ : (n_components, n_features) array
    n_iter_ : int
    energy_ : IndependentCodeEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import FastICA
    >>> S = np.random.default_rng(0).laplace(size=(2000, 2))
    >>> model = FastICA(random_state=0).fit(S @ [[2.0, 1.0], [1.0, 1.0]])
    >>> found = np.abs(np.corrcoef(model.transform(S @ [[2.0, 1.0], [1.0, 1.0]]).T, S.T)[:2, 2:])
    >>> bool((found.max(0) > 0.99).all())
    True
    """

    traits = Traits(space={"n_components": settings.Whole(1, 3)})

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "algorithm": [StrOptions({"parallel", "deflation"})],
        "whiten": [
            StrOptions({"arbitrary-variance", "unit-variance"}), Options(bool, {False}),
        ],
        "fun": [StrOptions({"logcosh", "exp", "cube"}), callable],
        "fun_args": [dict, None],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "w_init": ["array-like", None],
        "whiten_solver": [StrOptions({"eigh", "svd"})],
    }  # fmt: skip

    def __init__(
        self,
        n_components: int | None = None,
        *,
        algorithm: str = "parallel",
        whiten: Any = "unit-variance",
        fun: Any = "logcosh",
        fun_args: dict[str, Any] | None = None,
        max_iter: int = 200,
        tol: float = 1e-4,
        w_init: Any = None,
        whiten_solver: str = "svd",
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _min_rows(self) -> int:
        return 2

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        settings_ = dict(self.fun_args or {})
        alpha = settings_.pop("alpha", 1.0)
        if not 1 <= alpha <= 2:
            raise ValueError("alpha must be in [1,2]")
        length, most = self.n_components, min(X.shape)
        if not self.whiten and length is not None:
            warnings.warn("Ignoring n_components with whiten=False.", UserWarning, stacklevel=4)
            length = None
        if length is not None and length > most:
            warnings.warn(
                f"n_components is too large: it will be set to {most}", UserWarning, stacklevel=4
            )
            length = most
        solver = Steps(
            length, self.algorithm, bool(self.whiten), self.whiten == "unit-variance",
            _wrapped(self.fun, settings_) if callable(self.fun) else self.fun, alpha,
            self.max_iter, self.tol, self.w_init,
        )  # fmt: skip
        l = most if length is None else length
        energy = IndependentCodeEnergy(X.shape[1], l, dtype=X.dtype)
        return Plan(energy, Naive(latent="minimise"), solver)

    def _learned(self, energy: Energy) -> dict[str, Any]:
        about = self.history_.about
        found = {"_unmixing": about.pop("rotation")}
        whitening = about.pop("whitening")
        kind = self.components_.dtype
        return {**found, "whitening_": whitening.astype(kind)} if self.whiten else found

    # each is the inverse of the other: writing one sets both
    components_ = Learned(
        lambda model: model.energy_.U.clone(),
        lambda model, value: model.energy_.set(value, torch.linalg.pinv(value), None),
    )
    mixing_ = Learned(
        lambda model: model.energy_.mixing.clone(),
        lambda model, value: model.energy_.set(torch.linalg.pinv(value), value, None),
    )
    mean_ = Learned(lambda model: model.energy_.b)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def inverse_transform(self, X: Any) -> Any:
        """Rows that sources ``(n_samples, n_components)`` mix to, ``(n_samples, n_features)``."""
        energy: Any = getattr(self, "energy_", None)
        codes, home = codes_of(self, X, 0 if energy is None else len(energy.U))
        with answering(energy, codes):
            return home.give(energy.decode(codes))


def _wrapped(fun: Any, arguments: dict[str, Any]) -> Any:
    """A function of NumPy arrays ``(sources, rows)``, as scikit-learn calls it, for tensors."""

    def derivatives(u: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
        value, slope = fun(u.cpu().numpy(), **arguments)
        g, each = torch.as_tensor(value).to(u), torch.as_tensor(slope).to(u)
        if each.ndim == 2:
            return g, summed(each, weight)
        return g, each * (u.shape[1] if weight is None else weight.sum())

    return derivatives

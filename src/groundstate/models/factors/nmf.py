"""Non-negative matrix factorisation."""

from __future__ import annotations

import math
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.latent.nonnegative_codes import NonnegativeCodeEnergy
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.latent.factors.nonnegative import NonnegativeFactors
from groundstate.models import settings
from groundstate.models.arrays import Home, unwrap
from groundstate.models.base import Plan
from groundstate.models.factors.linear_codes import codes_of
from groundstate.models.learned import Learned
from groundstate.models.roles import EnergyTransformer
from groundstate.models.traits import Traits
from groundstate.registry import models

BETA = {"frobenius": 2.0, "kullback-leibler": 1.0, "itakura-saito": 0.0}


@models.register(family="factors", task="representation", role="transformer")
class NMF(ClassNamePrefixFeaturesOutMixin, EnergyTransformer):
    r"""Rows as sums of parts, where neither parts nor amounts are negative.

    .. math::
        e(x, z) = \sum_j d_\beta\bigl(x_j \mid (zH)_j\bigr) + \lambda_1\|z\|_1
        + \tfrac{\lambda_2}2\|z\|^2, \qquad
        \min_{H \ge 0}\; \sum_i w_i\min_{z \ge 0} e(x_i, z) + \Omega(H) .

    Nothing is ever taken away, so that parts are what rows have in common: topics of texts, spectra of
    notes, pieces of images. Codes and parts are lowered by turns; the end is a stationary point, which
    depends on the start.

    Parameters
    ----------
    n_components : int, "auto" or None, default="auto"
        Number of parts; "auto" is that of the start if ``init="custom"``, else as None the number of
        features.
    init : {"random", "nndsvd", "nndsvda", "nndsvdar", "custom"} or None, default=None
        Start: random parts; parts of singular vectors (their zeros kept, filled with the mean of X, or
        with small random numbers); W and H as passed to ``fit``. None is "nndsvda", and "random" for
        more parts than rows or features.
    solver : {"cd", "mu"}, default="cd"
        Coordinate descent, for the squared distance; or multiplicative steps, for every loss.
    beta_loss : float or {"frobenius", "kullback-leibler", "itakura-saito"}, default="frobenius"
        β of the divergence: 2, 1, 0 or another number. Below or at zero X must be positive.
    tol : float, default=1e-4
        Stop when projected gradients have fallen to this part of the first ("cd"), or when ten steps
        lower the distance by less than this part of the first ("mu").
    max_iter : int, default=200
    random_state : int, default=None
        Of the start, and of the order with ``shuffle``.
    alpha_W, alpha_H : float, default=0.0 and "same"
        Strength of the penalties of codes, times ``n_features``, and of parts, times ``n_samples``.
    l1_ratio : float, default=0.0
        Part of the penalties that is :math:`\|\cdot\|_1`; the rest is :math:`\tfrac12\|\cdot\|^2`.
    verbose : int, default=0
    shuffle : bool, default=False
        Whether "cd" takes the parts in random order.

    Attributes
    ----------
    components_ : (n_components_, n_features) array
        The parts, H.
    n_components_ : int
    reconstruction_err_ : float
        :math:`\sqrt{2\sum_i w_id_\beta(x_i \mid z_iH)}`, for β = 2 the Frobenius norm of what is left.
    n_iter_ : int
    energy_ : NonnegativeCodeEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import NMF
    >>> X = np.array([[1.0, 1, 0], [2, 2, 0], [0, 0, 3], [1, 1, 1]])
    >>> model = NMF(2, max_iter=1000).fit(X)
    >>> model.reconstruction_err_ < 0.01
    True
    >>> np.allclose(model.inverse_transform(model.transform(X)), X, atol=0.01)
    True
    """

    traits = Traits(
        space={"n_components": settings.Whole(1, 3), "alpha_W": settings.Real(1e-6, 1e-1, log=True)}
    )
    _accept_sparse: ClassVar[bool | str] = "csr"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None, StrOptions({"auto"})],
        "init": [StrOptions({"random", "nndsvd", "nndsvda", "nndsvdar", "custom"}), None],
        "solver": [StrOptions({"mu", "cd"})],
        "beta_loss": [StrOptions(set(BETA)), Real],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "alpha_W": [Interval(Real, 0, None, closed="left")],
        "alpha_H": [Interval(Real, 0, None, closed="left"), StrOptions({"same"})],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "verbose": ["verbose"],
        "shuffle": ["boolean"],
    }

    def __init__(
        self,
        n_components: Any = "auto",
        *,
        init: str | None = None,
        solver: str = "cd",
        beta_loss: Any = "frobenius",
        tol: float = 1e-4,
        max_iter: int = 200,
        random_state: Any = None,
        alpha_W: float = 0.0,
        alpha_H: Any = "same",
        l1_ratio: float = 0.0,
        verbose: int = 0,
        shuffle: bool = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # --- learning ------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, W: Any = None, H: Any = None
    ) -> Self:
        """Learn from rows ``X`` without negative entries; W and H are the start of ``init="custom"``."""
        self._started(X, W, H, sample_weight)
        self.__dict__.pop("_codes")
        return self

    def fit_transform(
        self, X: Any, y: Any = None, W: Any = None, H: Any = None, sample_weight: Any = None
    ) -> Any:
        """Learn, then the codes of the rows, ``(n_samples, n_components)``.

        For the squared distance they are those of ``transform``; of other losses, where codes take as
        many steps as parts, those that learning ended at.
        """
        self._started(X, W, H, sample_weight)
        codes = self.__dict__.pop("_codes")
        energy: Any = self.energy_
        return self.transform(X) if energy.beta == 2 else unwrap(X)[1].give(codes)

    def _started(self, X: Any, W: Any, H: Any, sample_weight: Any) -> None:
        self._start = W, H
        try:
            super().fit(X, sample_weight=sample_weight)
        finally:
            del self._start

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        beta = BETA[self.beta_loss] if isinstance(self.beta_loss, str) else float(self.beta_loss)
        if self.solver != "mu" and beta != 2:
            raise ValueError(
                f"Invalid beta_loss parameter: solver {self.solver!r} does not handle beta_loss = "
                f"{self.beta_loss!r}; use solver='mu'"
            )
        if self.solver == "mu" and self.init == "nndsvd":
            warnings.warn(
                "multiplicative steps (solver='mu') leave zeros of the start where they are: "
                "init='nndsvda' or 'nndsvdar' ends lower than 'nndsvd'",
                UserWarning,
                stacklevel=5,
            )
        _check_rows(X, beta, "NMF (input X)")
        n, d = X.shape
        start = self._checked_start(n, d, X.dtype)
        length = self.n_components
        if length == "auto" and start is not None:
            length = len(start[1])
        total = n if weight is None else float(weight.sum())
        sparse, ridge = self.l1_ratio, 1.0 - self.l1_ratio
        alpha = self.alpha_W if self.alpha_H == "same" else self.alpha_H
        energy = NonnegativeCodeEnergy(
            d, d if length in ("auto", None) else length, beta=beta,
            l1=d * self.alpha_W * sparse, l2=d * self.alpha_W * ridge,
        )  # fmt: skip
        solver = NonnegativeFactors(
            self.solver, self.init, self.tol, self.max_iter,
            l1=total * alpha * sparse, l2=total * alpha * ridge, shuffle=self.shuffle, start=start,
        )  # fmt: skip
        return Plan(energy, Naive(latent="minimise"), solver)

    def _checked_start(self, n: int, d: int, dtype: torch.dtype) -> Any:
        given = self.__dict__.get("_start", (None, None))
        if self.init != "custom":
            if any(part is not None for part in given):
                warnings.warn(
                    "When init!='custom', provided W or H are ignored. Set  init='custom' to use "
                    "them as initialization.",
                    RuntimeWarning,
                    stacklevel=6,
                )
            return None
        if any(part is None for part in given):
            raise ValueError("init='custom' starts from the W and H that fit is given: pass both")
        k = None if self.n_components == "auto" else self.n_components or d
        W, H = (unwrap(part)[0] for part in given)
        for A, shape, whom in ((H, (k, d), "NMF (input H)"), (W, (n, k), "NMF (input W)")):
            _check_start(A, shape, whom)
        kind = np.float64 if dtype == torch.float64 else np.float32
        if any(np.asarray(A).dtype != kind for A in (W, H)):
            raise TypeError(
                "H and W should have the same dtype as X. Got H.dtype = "
                f"{np.asarray(H).dtype} and W.dtype = {np.asarray(W).dtype}."
            )
        if np.shape(W)[1] != np.shape(H)[0]:
            raise ValueError(
                f"W has {np.shape(W)[1]} columns and H {np.shape(H)[0]} rows; both are the parts"
            )
        return W, H

    def _learned(self, energy: Energy) -> dict[str, Any]:
        assert isinstance(energy, NonnegativeCodeEnergy)
        about = self.history_.about
        self._codes = about.pop("codes")
        error = math.sqrt(2 * about.pop("loss"))
        return {"n_components_": len(energy.H), "reconstruction_err_": error}

    components_ = Learned(lambda model: model.energy_.H)

    @property
    def _n_features_out(self) -> int:
        return len(self.energy_.H)

    # --- answers -------------------------------------------------------------------------

    def _rows(self, X: Any) -> tuple[Tensor, Home]:
        x, home = super()._rows(X)
        energy: Any = self.energy_
        _check_rows(x, energy.beta, "NMF.transform")
        return x, home

    def transform(self, X: Any) -> Any:
        """Codes of lowest energy, each row by itself, ``(n_samples, n_components)``."""
        x, home = self._rows(X)
        energy: Any = self.energy_
        with answering(energy, x):
            return home.give(energy.encode(x, self.tol, self.max_iter))

    def energy(self, X: Any, y: Any = None, z: Any = None) -> Any:
        """Energy of each row with codes z, or with its best code, ``(n_samples,)``."""
        if z is not None:
            return super().energy(X, y, z)
        x, home = self._rows(X)
        energy: Any = self.energy_
        with answering(energy, x):
            return home.give(energy(x=x, z=energy.encode(x, self.tol, self.max_iter)))

    def inverse_transform(self, X: Any) -> Any:
        """Rows that codes ``(n_samples, n_components)`` add up to, ``(n_samples, n_features)``."""
        check_is_fitted(self, "energy_")
        energy: Any = self.energy_
        codes, home = codes_of(self, X, self._n_features_out)
        with answering(energy, codes):
            return home.give(energy.decode(codes))


def _check_rows(x: Tensor, beta: float, whom: str) -> None:
    values = x if x.layout == torch.strided else x.values()
    least = float(values.min()) if values.numel() else 0.0
    if least < 0:
        raise ValueError(f"Negative values in data passed to {whom}; the least is {least:g}")
    filled = x.layout == torch.strided or values.numel() == x.shape[0] * x.shape[1]
    if beta <= 0 and (least == 0 or not filled):
        raise ValueError(
            "When beta_loss <= 0 and X contains zeros, the solver may diverge. Please add small "
            "values to X, or use a positive beta_loss."
        )


def _check_start(A: Any, shape: tuple[int | None, int | None], whom: str) -> None:
    A = check_array(A)
    for axis, (name, size) in enumerate(zip(("first", "second"), shape, strict=True)):
        if size is not None and A.shape[axis] != size:
            raise ValueError(
                f"Array with wrong {name} dimension passed to {whom}. Expected {size}, but got "
                f"{A.shape[axis]}."
            )
    if A.min() < 0:
        raise ValueError(f"Negative values in data passed to {whom}")
    if A.max() == 0:
        raise ValueError(f"Array passed to {whom} is full of zeros.")

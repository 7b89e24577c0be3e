r"""Gaussian classes, :math:`e(x, y) = -\log\pi_y - \log N(x; \mu_y, \Sigma_y)`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, MultivariateNormal, Normal
from torch.nn.functional import linear

from groundstate.energy.abilities import offers
from groundstate.energy.classes.discriminant_moments import RankDeficient, Shape, class_shapes
from groundstate.energy.classes.discriminant_numba import class_squares, set_classes, set_diagonal
from groundstate.energy.classes.naive_bayes.joint import JointClassEnergy
from groundstate.energy.classes.naive_bayes.missing import (
    observed_sums,
    seen_weight,
    shared,
    some_missing,
    spoilt,
    without_missing,
)
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.math.distributions.gaussian.partly_known import PartlyKnownNormal
from groundstate.math.distributions.operations import draw

CELLS = 2**16  # numbers of one block of differences (k, B, d): they stay in the cache
FEW = 64  # features up to which compiled loops on a CPU beat calls
SMALL = 2**20  # products of rows up to which they do
COVARIANCES = ("diag", "tied", "full")


def _example() -> GaussianClassEnergy:
    energy = GaussianClassEnergy(2, 2, "tied")
    with torch.no_grad():
        energy.logits.copy_(torch.tensor([0.3, -0.2]))
        energy.mu.copy_(torch.tensor([[-1.0, 0.5], [1.0, 0.0]]))
        energy.U.copy_(torch.tensor([[1.2, 0.4], [0.0, 0.8]]))
    return energy


@registered(r"e(x, y) = -\log\pi_y - \log N(x; \mu_y, \Sigma_y)", _example)
class GaussianClassEnergy(JointClassEnergy):
    r"""Every class is a Gaussian, :math:`e(x, y) = -\log\pi_y - \log N(x; \mu_y, \Sigma_y)`.

    With :math:`\Sigma_y^{-1} = U_yU_y^\top`,

    .. math:: e(x, y) = -\log\pi_y + \tfrac12\|U_y^\top(x - \mu_y)\|^2 - \log|U_y| + \tfrac d2\log 2\pi .

    One diagonal per class is Gaussian naive Bayes, one matrix for all classes the linear
    discriminant (energies of two classes differ by a linear function of x), and one matrix per
    class the quadratic discriminant. A tied matrix may be singular: directions in which no class
    varies are left out. With one diagonal per class the factors of missing features (NaN) are left
    out too.

    Parameters
    ----------
    k : number of classes
    d : number of features
    covariance : "diag", "tied" or "full"
    smoothing : share of the largest variance that is added to every variance ("diag")
    shrinkage : towards a multiple of the identity, a share or "auto" (Ledoit and Wolf), or None
    reg_param : :math:`\Sigma \leftarrow (1-r)\Sigma + rI`
    tol : smallest relative standard deviation of a direction that counts
    prior : ``(k,)`` probabilities that are kept, or None to learn them
    by_prior : whether the tied matrix weighs the classes by a prior that is kept, not by their rows
    dtype : of the parameters; None is torch's default

    Attributes
    ----------
    mu : Parameter, ``(k, d)``
    U : Parameter, ``(k, d)`` diag, ``(d, d)`` tied, ``(k, d, d)`` full; upper triangular where the
        rank is full, else columns of zeros follow those that count
    origin : buffer, ``(k, d)``; statistics are summed about it
    balance : buffer, ``(k,)``; weight of a class in the tied matrix, relative to its rows
    rank : buffer; number of columns of a tied ``U`` that count
    thin : buffer, ``(d, d)``; a root of a tied covariance that is singular, else zero

    Examples
    --------
    >>> e = GaussianClassEnergy(1, 1, "diag")
    >>> e.from_stats(e.stats(None, x=torch.tensor([[0.0], [2.0]]), y=torch.tensor([0, 0])))
    >>> e.mu.item(), round(1 / e.U.item() ** 2, 6)
    (1.0, 1.0)
    """

    gaussian = frozenset({"x"})
    origin: Tensor
    balance: Tensor
    rank: Tensor
    thin: Tensor

    def __init__(
        self,
        k: int,
        d: int,
        covariance: str = "tied",
        *,
        smoothing: float = 0.0,
        shrinkage: float | str | None = None,
        reg_param: float = 0.0,
        tol: float = 1e-4,
        prior: Sequence[float] | Tensor | None = None,
        by_prior: bool = False,
        dtype: torch.dtype | None = None,
    ) -> None:
        if covariance not in COVARIANCES:
            raise ValueError(
                f"covariance must be one of {', '.join(COVARIANCES)}, got {covariance!r}"
            )
        super().__init__(k, Real(d), prior)
        self.d, self.covariance = d, covariance
        self.missing = frozenset({"x"}) if covariance == "diag" else frozenset()
        by_prior = by_prior and prior is not None
        self.shape = Shape(covariance, smoothing, shrinkage, reg_param, tol, by_prior)
        self.mu = nn.Parameter(torch.zeros(k, d, dtype=dtype))
        diag = covariance == "diag"
        unit = torch.ones(k, d, dtype=dtype) if diag else torch.eye(d, dtype=dtype)
        self.U = nn.Parameter(unit.expand(k, d, d).clone() if covariance == "full" else unit)
        held = self._buffers  # known names: what `register_buffer` would check holds
        held["origin"] = torch.zeros(k, d, dtype=dtype)
        held["balance"] = torch.ones(k, dtype=dtype)
        held["rank"] = torch.tensor(d)
        held["thin"] = torch.zeros((d, d) if covariance == "tied" else (0, 0), dtype=dtype)

    def config(self) -> dict[str, Any]:
        shape = self.shape
        return {
            "k": self.k, "d": self.d, "covariance": self.covariance, "smoothing": shape.smoothing,
            "shrinkage": shape.shrinkage, "reg_param": shape.reg_param, "tol": shape.tol,
            "by_prior": shape.by_prior, **self.kept_prior(),
        }  # fmt: skip

    # --- the energy ----------------------------------------------------------------------

    def log_det(self) -> Tensor:
        r""":math:`\log|U_y| = -\tfrac12\log|\Sigma_y|`, ``(k,)`` or ``(1,)``, on the directions kept."""
        if self.covariance == "diag":
            return self.U.abs().log().sum(1)
        rank = int(self.rank)
        if rank < self.d:
            R = torch.linalg.qr(self.U[:, :rank]).R
            return R.diagonal().abs().log().sum(0, keepdim=True)
        return torch.atleast_1d(self.U.diagonal(dim1=-2, dim2=-1).abs().log().sum(-1))

    def root(self) -> Tensor:
        """U as it acts: upper triangular where the rank is full."""
        whole = self.covariance != "diag" and int(self.rank) == self.d
        return self.U.triu() if whole else self.U

    def tied_covariance(self) -> Tensor:
        """Σ of all classes, ``(d, d)`` float64."""
        if int(self.rank) < self.d:
            thin = self.thin.double()
            return thin @ thin.T
        U = self.root().detach().double()
        eye = torch.eye(self.d, dtype=U.dtype, device=U.device)
        inverse = torch.linalg.solve_triangular(U, eye, upper=True)
        return inverse.T @ inverse

    def log_likelihood(self, x: Tensor) -> Tensor:
        tied = self.covariance == "tied"
        rows = max(64, CELLS * (8 if tied else 1) // (self.d if tied else self.k * self.d))
        squares = torch.cat([self._squares(part) for part in x.split(rows)])
        if self.missing and spoilt(squares):
            return torch.cat([self._observed(part) for part in x.split(rows)])
        return self.log_det() - 0.5 * (squares + int(self.rank) * math.log(2 * math.pi))

    def _observed(self, x: Tensor) -> Tensor:
        """Log likelihood of the features that are there, ``(B, k)``, for one diagonal per class."""
        filled, gone = without_missing(x)
        there = 1 - gone  # (B, d)
        white = (filled - self.mu[:, None]) * self.U[:, None] * there  # (k, B, d)
        constant = linear(there, self.U.abs().log() - 0.5 * math.log(2 * math.pi))
        return constant - 0.5 * white.square().sum(-1).T

    def _squares(self, x: Tensor) -> Tensor:
        r""":math:`\|U_y^\top(x - \mu_y)\|^2`, ``(B, k)``."""
        if self.covariance == "tied":  # one product for all classes, about their middle
            middle, U = self.mu.detach().mean(0), self.root()
            white, means = (x - middle) @ U, (self.mu - middle) @ U
            near = white.square().sum(1, keepdim=True) + means.square().sum(1)
            return torch.addmm(near, white, means.T, alpha=-2.0)
        diff = x - self.mu[:, None]  # (k, B, d)
        white = diff * self.U[:, None] if self.covariance == "diag" else diff @ self.root()
        return white.square().sum(-1).T

    def linear_energies(self, x: Tensor) -> Tensor:
        r"""Tied energies up to what all classes share, :math:`\tfrac12\|U^\top(x - \bar\mu)\|^2`."""
        middle, U = self.mu.mean(0), self.root()
        means = (self.mu - middle) @ U
        W = means @ U.T
        return linear(x, -W, 0.5 * means.square().sum(1) - self.log_prior + W @ middle)

    @offers.conditional("x", partial=True, when=lambda energy: int(energy.rank) == energy.d)
    def around(
        self, y: Tensor, T: float = 1.0, x: Tensor | None = None, mask: Tensor | None = None
    ) -> Distribution:
        """x given its class: N(μ_y, TΣ_y); with ``mask``, of the free coordinates of ``x``."""
        mean = self.mu[y]
        if x is not None and mask is not None:
            U = self.U.diag_embed() if self.covariance == "diag" else self.root()
            precision = (U @ U.mT / T).expand(self.k, self.d, self.d)
            return PartlyKnownNormal(mean, precision[y], x, mask)
        if self.covariance == "diag":
            scale = T**0.5 / self.U.abs()[y]
            return Independent(Normal(mean, scale, validate_args=False), 1)
        U = self.root().expand(self.k, self.d, self.d)[y]
        return MultivariateNormal(mean, precision_matrix=U @ U.mT / T, validate_args=False)

    def draw_x(self, y: Tensor, generator: torch.Generator) -> Tensor:
        if int(self.rank) == self.d:
            return draw(self.around(y), 1, generator)[0]
        noise = torch.randn(
            len(y), self.d, generator=generator, device=generator.device, dtype=self.thin.dtype
        )
        return self.mu.detach()[y] + noise.to(self.thin.device) @ self.thin.T

    # --- learning ------------------------------------------------------------------------

    @torch.no_grad()
    def centre(self, x: Tensor, y: Tensor, weights: Tensor | None) -> Tensor:
        """Move ``origin`` to the class means of some rows, so that sums lose no digits.

        A class without rows gets the mean of all. Returns the weight of every class, ``(k,)``.
        """
        sums = self.sums_of(x, y, weights)
        if self.covariance == "diag" and spoilt(sums["x"]):
            sums = observed_sums(self, x, y, weights)
        self.origin.copy_(shared(sums["x"], seen_weight(sums)))
        return sums["n"]

    @offers.stats
    def stats(
        self, weights: Tensor | None, x: Tensor, y: Tensor | Distribution
    ) -> dict[str, Tensor]:
        """Float64 sums of 1, x and its squares about ``origin`` per class."""
        if isinstance(y, Distribution):
            raise TypeError("GaussianClassEnergy learns from observed classes only")
        origin = self.origin.double()
        if self.covariance == "diag":
            return observed_sums(self, x, y, weights, origin, squares=True)
        if self._is_small() and x.shape[0] * self.d**2 <= SMALL:
            w = np.empty(0) if weights is None else weights.double().numpy()
            tied, balance = self.covariance == "tied", self.balance.double().numpy()
            found = class_squares(x.detach().numpy(), y.numpy(), w, origin.numpy(), balance, tied)
            n, first, second = map(torch.from_numpy, found)
            return {"n": n, "x": first, "xx": second[0] if tied else second}
        x = x.double() - origin[y]
        return {
            **self.sums_of(x, y, weights),
            **self.shape.squares(x, y, weights, self.balance.double()),
        }

    @offers.from_stats
    @torch.no_grad()
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        """Priors, means and covariances; see ``groundstate.energy.classes.discriminant_moments``."""
        self._keep(stats)
        if self._is_small() and self._set_small(stats):
            return
        if self.covariance == "diag" and self.mu.is_cpu and not some_missing(stats):
            sums = stats["n"].numpy(), stats["x"].numpy(), stats["xx"].numpy()
            at = self.mu.detach().numpy(), self.U.detach().numpy()
            set_diagonal(*sums, self.origin.double().numpy(), self.shape.smoothing, *at)
            return
        seen = seen_weight(stats)
        shift = stats["x"] / seen.clamp_min(1e-300)
        mu = shift + self.origin.double()
        # a class that was never seen with some feature has the mean of all rows
        self.mu.copy_(shared(seen * mu, seen) if seen is stats.get("seen") else mu)
        if self.shape.by_prior:
            n = stats["n"]
            wanted = n.new_tensor(self.prior) * n.sum() / n.clamp_min(1e-300)
            self.balance.copy_(torch.where(n > 0, wanted, 0.0))
        U, rank, thin = class_shapes(
            self.shape, stats, seen, shift, self.mu.double(), self.balance.double()
        )
        self.U.copy_(U)
        self.rank.fill_(rank)
        self.thin.zero_()
        if rank < self.d:
            self.thin[:, :rank] = thin.to(self.thin)

    def _is_small(self) -> bool:
        plain = self.covariance != "diag" and not (self.shape.changes or self.shape.by_prior)
        return plain and self.d <= FEW and self.mu.device.type == "cpu"

    def _set_small(self, stats: dict[str, Tensor]) -> bool:
        """Means and roots in one call; False where a tied matrix is not of full rank."""
        d, tied = self.d, self.covariance == "tied"
        U = torch.empty_like(self.U)
        deficient = set_classes(
            stats["n"].numpy(),
            stats["x"].numpy(),
            stats["xx"].reshape(-1, d, d).numpy(),
            self.origin.double().numpy(),
            self.balance.double().numpy(),
            self.shape.tol,
            self.mu.detach().numpy(),
            U.view(-1, d, d).numpy(),
        )
        if deficient >= 0:
            if not tied:
                raise RankDeficient(deficient)
            return False
        self.U.copy_(U)
        self.rank.fill_(d)
        self.thin.zero_()
        return True

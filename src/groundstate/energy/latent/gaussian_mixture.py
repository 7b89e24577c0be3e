r"""A mixture of Gaussians, :math:`e(x, z) = -\log\pi_z - \log N(x; \mu_z, \Sigma_z)`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from scipy.linalg.lapack import dpotrf, dtrtri
from torch import Tensor, nn
from torch.distributions import Categorical, Distribution, Independent, MultivariateNormal, Normal
from torch.nn.functional import one_hot

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.basic.initial import normal, seeded
from groundstate.energy.latent.gaps import gaps_of
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.errors import DataError
from groundstate.math.distances.mahalanobis import scaled_squares
from groundstate.math.distributions.gaussian.partly_known import PartlyKnownNormal
from groundstate.math.distributions.operations import draw
from groundstate.math.info.free_energy import boltzmann_logits

COVARIANCES = ("full", "tied", "diag", "spherical", "identity")
SMALL = 2**14  # entries of U below which calls cost more than arithmetic
CELLS = 2**21  # numbers of one block of differences (B, k, d)


def _example() -> GaussianMixtureEnergy:
    energy = GaussianMixtureEnergy(3, 2, "tied", reg_covar=0.0, scale=1.5)
    with torch.no_grad():
        energy.logits.copy_(torch.tensor([0.3, -0.2, 0.5]))
        energy.U.copy_(torch.tensor([[1.2, 0.4], [0.0, 0.8]]))
    return energy


@registered(r"e(x, z) = -\log\pi_z - \log N(x; \mu_z, \Sigma_z)", _example)
class GaussianMixtureEnergy(Energy):
    r"""One of k Gaussians holds, :math:`e(x, z) = -\log\pi_z - \log N(x; \mu_z, \Sigma_z)`.

    With :math:`\Sigma_z^{-1} = U_zU_z^\top`, :math:`U_z` upper triangular,

    .. math:: e(x, z) = -\log\pi_z + \tfrac12\|U_z^\top(x - \mu_z)\|^2
              - \textstyle\sum_j\log|U_{z,jj}| + \tfrac d2\log 2\pi,

    which is normalised over x and z for every θ, so lowering it on data is maximum likelihood.
    Minimising over z is clustering, summing over z gives :math:`-\log p(x)`, and x given z is
    Gaussian, also when some of its coordinates are known.

    Parameters
    ----------
    k : number of components
    d : number of features
    covariance_type : "full" (each its own), "tied" (one for all), "diag", "spherical", or "identity"
        (Σ = I, not learned)
    uniform : whether π = 1/k, not learned
    reg_covar : added to the diagonal of every learned covariance
    scale : standard deviation of the initial means
    generator : source of the initial means

    Attributes
    ----------
    logits : Parameter, ``(k,)``; :math:`\pi` is their softmax
    mu : Parameter, ``(k, d)``
    U : Parameter, ``(k, d, d)`` full, ``(d, d)`` tied, ``(k, d)`` diag, ``(k,)`` spherical, identity
    origin : buffer, ``(d,)``; summed statistics are taken about it

    Examples
    --------
    >>> e = GaussianMixtureEnergy(2, 1)
    >>> _ = e.mu.data.copy_(torch.tensor([[-1.0], [1.0]]))
    >>> e.energies(torch.tensor([[3.0]])).round(decimals=4).tolist()
    [[9.612099647521973, 3.6120998859405518]]
    """

    normalised = frozenset({"x", "z"})
    gaussian = frozenset({"x"})
    reseeded = 0  # components that lost all rows and began again elsewhere
    origin: Tensor

    def __init__(
        self,
        k: int,
        d: int,
        covariance_type: str = "full",
        *,
        reg_covar: float = 1e-6,
        scale: float = 1.0,
        generator: torch.Generator | None = None,
        uniform: bool = False,
    ) -> None:
        if covariance_type not in COVARIANCES:
            raise ValueError(
                f"covariance_type must be one of {', '.join(COVARIANCES)}, got {covariance_type!r}"
            )
        super().__init__(x=Real(d), z=Finite(k))
        self.covariance_type, self.reg_covar = covariance_type, float(reg_covar)
        self.uniform = bool(uniform)
        self.logits = nn.Parameter(torch.zeros(k), requires_grad=not self.uniform)
        self.mu = nn.Parameter(normal(k, d, scale=scale, generator=generator))
        if covariance_type in ("full", "tied"):
            eye = torch.eye(d)
            unit = eye if covariance_type == "tied" else eye.expand(k, d, d).clone()
        else:
            unit = torch.ones(k, d) if covariance_type == "diag" else torch.ones(k)
        self.U = nn.Parameter(unit, requires_grad=covariance_type != "identity")
        self.register_buffer("origin", torch.zeros(d))

    def config(self) -> dict[str, Any]:
        k, d = self.mu.shape
        kind, reg = self.covariance_type, self.reg_covar
        fixed = {"uniform": True} if self.uniform else {}
        return {"k": k, "d": d, "covariance_type": kind, "reg_covar": reg, **fixed}

    @property
    def whole(self) -> bool:
        """Whether covariances are matrices."""
        return self.covariance_type in ("full", "tied")

    # --- θ as people know it ----------------------------------------------------------------

    @property
    def log_weights(self) -> Tensor:
        r""":math:`\log\pi`, ``(k,)``."""
        return torch.log_softmax(self.logits, 0)

    def factors(self) -> Tensor:
        """U of every component as a matrix, ``(k, d, d)``."""
        k, d = self.mu.shape
        if self.covariance_type == "full":
            return self.U.triu()
        if self.covariance_type == "tied":
            return self.U.triu().expand(k, d, d)
        return torch.diag_embed(self.U.reshape(k, -1).expand(k, d))

    def log_det(self) -> Tensor:
        r""":math:`\log|U_z| = -\tfrac12\log|\Sigma_z|`, ``(k,)``."""
        k, d = self.mu.shape
        if self.covariance_type in ("full", "tied"):
            each = self.U.diagonal(dim1=-2, dim2=-1).abs().log().sum(-1)
        else:
            each = self.U.abs().log().reshape(k, -1).expand(k, d).sum(-1)
        return each.expand(k)

    def covariances(self) -> Tensor:
        """In the shape of ``U``: matrices, variances or one variance per component, float64."""
        U = self.U.detach().double()
        if not self.whole:
            return U.square().reciprocal()
        root = _inverse(U)
        return root.mT @ root

    def from_moments(self, n: Tensor, mean: Tensor, cov: Tensor) -> None:
        """θ from weights ``(k,)``, means ``(k, d)`` and covariances in the shape of ``U``.

        ``reg_covar`` is added here. A component without weight keeps its mean.
        """
        if self.U.numel() <= SMALL and n.device.type == "cpu":
            self._from_few(n.numpy(), mean.numpy(), cov.numpy())
        else:
            self._from_many(n, mean, cov)

    @torch.no_grad()
    def _from_many(self, n: Tensor, mean: Tensor, cov: Tensor) -> None:
        n, mean, cov = (v.to(self.mu.device) for v in (n, mean, cov))
        n = n.double() + 10 * torch.finfo(torch.float64).eps
        if not self.uniform:
            self.logits.copy_(torch.log(n / n.sum()))
        self.mu.copy_(torch.where(n[:, None] > 1e-14 * n.sum(), mean, self.mu.double()))
        if self.covariance_type == "identity":
            return
        cov = cov.double()
        if not self.whole:
            variance = cov + self.reg_covar
            if not bool((variance > 0).all()):
                raise self._collapsed()
            self.U.copy_(variance.rsqrt())
            return
        cov.diagonal(dim1=-2, dim2=-1).add_(self.reg_covar)
        lower, failed = torch.linalg.cholesky_ex(cov)
        if bool(failed.any()) or not bool(torch.isfinite(lower).all()):
            raise self._collapsed()
        self.U.copy_(_inverse(lower.mT))

    def _from_few(self, n: Any, mean: Any, cov: Any) -> None:
        """The same for few numbers, which NumPy handles with less ado."""
        n = n.astype(np.float64) + 10 * np.finfo(np.float64).eps
        total = n.sum()
        theta = (self.logits, self.mu, self.U)
        logits, mu, U = arrays = [p.detach().cpu().numpy() for p in theta]
        if not self.uniform:
            logits[:] = np.log(n / total)
        np.copyto(mu, mean, "same_kind", where=n[:, None] > 1e-14 * total)
        if self.covariance_type == "identity":
            pass
        elif not self.whole:
            variance = cov + self.reg_covar
            if not (variance > 0).all():
                raise self._collapsed()
            U[:] = 1 / np.sqrt(variance)
        else:
            d = mu.shape[1]
            cov = cov.astype(np.float64)
            cov.reshape(-1, d * d)[:, :: d + 1] += self.reg_covar
            if not np.isfinite(cov).all():
                raise self._collapsed()
            for one, root in zip(cov.reshape(-1, d, d), U.reshape(-1, d, d), strict=True):
                lower, failed = dpotrf(one, lower=1, clean=1)
                if failed:
                    raise self._collapsed()
                root[:] = dtrtri(lower, lower=1)[0].T
        if self.mu.device.type != "cpu":  # on the host the arrays are θ itself
            for parameter, values in zip(theta, arrays, strict=True):
                parameter.data.copy_(torch.from_numpy(values))

    @torch.no_grad()
    def from_precisions(self, precisions: Tensor) -> None:
        """U from precisions in its own shape: matrices, vectors or numbers."""
        P = precisions.double()
        if not self.whole:
            if not bool((P > 0).all()):
                raise DataError("precisions must be positive")
            self.U.copy_(P.sqrt())
            return
        lower, failed = torch.linalg.cholesky_ex(P.flip(-1, -2))
        if bool(failed.any()) or not bool(torch.isclose(P, P.mT).all()):
            raise DataError("precisions must be symmetric and positive definite")
        self.U.copy_(lower.flip(-1, -2))

    def _collapsed(self) -> DataError:
        return DataError(
            "a component collapsed: its covariance is not positive definite with "
            f"reg_covar={self.reg_covar}; raise reg_covar, use fewer components or scale the data"
        )

    # --- the energy and its abilities ----------------------------------------------------

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return self.energies(x).gather(1, z[:, None]).squeeze(1)

    @offers.table("z")
    def energies(self, x: Tensor) -> Tensor:
        k, d = self.mu.shape
        constant = 0.5 * d * math.log(2 * math.pi) - self.log_weights - self.log_det()
        rows = max(1, CELLS // (k * d))
        return torch.cat([0.5 * self._squares(part) + constant for part in x.split(rows)])

    def _squares(self, x: Tensor) -> Tensor:
        r""":math:`\|U_z^\top(x - \mu_z)\|^2`, ``(B, k)``, from the differences themselves."""
        if not self.whole:
            return scaled_squares(x, self.mu, self.U.reshape(len(self.mu), -1))
        diff = x - self.mu[:, None]  # (k, B, d)
        return (diff @ self.U.triu()).square().sum(-1).T

    def observed_energies(self, x: Tensor) -> Tensor:
        r"""Energies of all z of rows with NaN, :math:`-\log\pi_z - \log N(x_o; \mu_o, \Sigma_{oo})`."""
        hidden = torch.isnan(x)
        if not bool(hidden.any()):
            return self.energies(x)
        cov = self.full_covariances()
        parts, order = [], []
        for gaps in gaps_of(hidden, len(self.mu)):
            L = gaps.factor(cov)  # (p, k, d, d)
            log_det = L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
            known = (~gaps.free).sum(1).to(log_det)[:, None]
            constant = 0.5 * known * math.log(2 * math.pi) + log_det
            diff = x[gaps.rows][:, None] - self.mu  # (n, k, d)
            diff = torch.where(hidden[gaps.rows][:, None], 0.0, diff)
            root = _inverse(L.mT).mT.to(x.dtype)
            squares = gaps.map(root, diff).square().sum(-1)
            parts.append(0.5 * squares + constant[gaps.which].to(x.dtype))
            order.append(gaps.rows)
        back = torch.cat(order).argsort()
        return torch.cat(parts)[back] - self.log_weights

    def full_covariances(self) -> Tensor:
        """Covariances as matrices, ``(k, d, d)`` float64."""
        k, d = self.mu.shape
        if self.covariance_type == "full":
            return self.covariances()
        if self.covariance_type == "tied":
            return self.covariances().expand(k, d, d)
        return torch.diag_embed(self.covariances().reshape(k, -1).expand(k, d))

    @offers.conditional("z")
    def responsibilities(self, x: Tensor, T: float = 1.0) -> Categorical:
        return Categorical(logits=boltzmann_logits(self.energies(x), T), validate_args=False)

    @offers.conditional("x", partial=True)
    def around(
        self, z: Tensor, T: float = 1.0, x: Tensor | None = None, mask: Tensor | None = None
    ) -> Distribution:
        """x given its component: N(μ_z, TΣ_z); with ``mask``, of the free coordinates of ``x``."""
        mean = self.mu[z]
        if x is not None and mask is not None:
            U = self.factors()
            return PartlyKnownNormal(mean, (U @ U.mT)[z] / T, x, mask)
        if not self.whole:
            scale = T**0.5 / self.U.abs().reshape(len(self.mu), -1)[z]
            return Independent(Normal(mean, scale.expand_as(mean), validate_args=False), 1)
        lower = _inverse(self.factors()).mT * T**0.5
        lower = lower * lower.diagonal(dim1=-2, dim2=-1).sign()[:, None, :]
        return MultivariateNormal(mean, scale_tril=lower[z], validate_args=False)

    @offers.log_partition("z")
    def log_density(self, x: Tensor, T: float = 1.0) -> Tensor:
        return torch.logsumexp(boltzmann_logits(self.energies(x), T), -1)

    def _volumes(self, T: float) -> Tensor:
        r""":math:`\log\int e^{-e(x, z)/T}dx`, ``(k,)``."""
        if T == 1:
            return self.log_weights
        half = 0.5 * self.mu.shape[1]
        flat = (1 - 1 / T) * (half * math.log(2 * math.pi) - self.log_det())
        return self.log_weights / T + flat + half * math.log(T)

    @offers.log_partition("x")
    def log_prior(self, z: Tensor, T: float = 1.0) -> Tensor:
        return self._volumes(T)[z]

    @offers.log_partition("x", "z")
    def total(self, T: float = 1.0) -> Tensor:
        if T == 1:
            return self.mu.new_zeros(1)
        return torch.logsumexp(self._volumes(T), 0, keepdim=True)

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Exact joint draws: a component by its weight, then x around its mean."""
        generator = seeded(generator)
        z = draw(Categorical(logits=self._volumes(T).detach()), n, generator)
        return {"x": draw(self.around(z, T), 1, generator)[0], "z": z}

    # --- learning ------------------------------------------------------------------------

    @offers.stats
    def stats(
        self, weights: Tensor | None, x: Tensor, z: Tensor | Categorical
    ) -> dict[str, Tensor]:
        """Float64 sums of 1, x and its squares about ``origin`` per component; a distribution z gives
        expected sums. They add over chunks and shards, and over different θ.
        """
        k, d = self.mu.shape
        x = x.double() - self.origin.double()
        if k == 1 and self.covariance_type == "full":  # every row counts whole
            w = x.new_ones(len(x)) if weights is None else weights.double()
            scaled = x * w[:, None]
            return {"n": w.sum()[None], "x": scaled.sum(0)[None], "xx": (scaled.T @ x)[None]}
        r = z.probs if isinstance(z, Distribution) else one_hot(z, k)
        r = r.double() if weights is None else r * weights.double()[:, None]
        sums = {"n": r.sum(0), "x": r.T @ x}
        if not self.whole:
            return {**sums, "xx": r.T @ x.square()}
        if self.covariance_type == "tied":
            return {**sums, "xx": (x * r.sum(1, keepdim=True)).T @ x}
        if (
            isinstance(z, Tensor) and len(x) * k * d > SMALL
        ):  # rows of one component stand together: no sums of zeros
            order = z.argsort(stable=True)
            sizes = z.bincount(minlength=k).tolist()
            groups = zip(x[order].split(sizes), r.sum(1)[order].split(sizes))
            return {**sums, "xx": torch.stack([(p * w[:, None]).T @ p for p, w in groups])}
        xx = x.new_zeros(k * d, d)
        for rows, part in zip(r.split(CELLS // (k * d) + 1), x.split(CELLS // (k * d) + 1)):
            xx.addmm_((rows[:, :, None] * part[:, None]).flatten(1).T, part)
        return {**sums, "xx": xx.view(k, d, d)}

    @offers.from_stats
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        """Weights, means and covariances of the completed data, ``reg_covar`` added."""
        self.from_moments(*self.moments(stats))

    def moments(self, stats: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Weights ``(k,)``, means ``(k, d)`` and covariances in the shape of ``U`` of summed
        statistics, without ``reg_covar``.
        """
        n = stats["n"] + 10 * torch.finfo(torch.float64).eps
        mean = stats["x"] / n[:, None]
        if self.covariance_type == "full":
            cov = stats["xx"] / n[:, None, None] - mean[:, :, None] * mean[:, None]
        elif self.covariance_type == "tied":
            cov = (stats["xx"] - (n[:, None] * mean).T @ mean) / n.sum()
        else:
            cov = (stats["xx"] / n[:, None] - mean.square()).clamp_min(0)
            cov = cov.mean(1) if self.U.ndim == 1 else cov
        return stats["n"], mean + self.origin.double(), cov


def _inverse(upper: Tensor) -> Tensor:
    """Inverse of upper triangular matrices."""
    eye = torch.eye(upper.shape[-1], dtype=upper.dtype, device=upper.device)
    return torch.linalg.solve_triangular(upper.triu(), eye.expand_as(upper), upper=True)

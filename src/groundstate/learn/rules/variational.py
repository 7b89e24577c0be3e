r"""A bound instead of a sum: the latents of a rule get an approximate posterior q.

.. math:: F = -T\log\int e^{-e/T}\,dz \;\le\; E_q[e] - T\,H(q)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, distributions, nn
from torch.distributions import Distribution, Independent, MultivariateNormal, Normal

from groundstate.compute.random import split
from groundstate.energy.base import Energy
from groundstate.energy.spaces import Finite
from groundstate.infer.base import ask
from groundstate.infer.variational.families import Categorical, Family, MeanField, default_family
from groundstate.infer.variational.variational import Variational as Fit
from groundstate.learn.base import Batch
from groundstate.learn.rules.inner import held
from groundstate.math.distributions.operations import draw
from groundstate.math.info.free_energy import boltzmann_logits

Estimator = Literal["auto", "exact", "closed", "pathwise", "score"]
ESTIMATORS = ("auto", "exact", "closed", "pathwise", "score")
LISTED = 2**12  # joint values of finite latents that are summed exactly
Distributions = Mapping[str, Distribution]


class Variational(nn.Module):
    r"""For ``rule.latent``: :math:`F` is replaced by the bound :math:`E_q[e] - T\,H(q) \ge F`.

    q is independent between latents. Without an encoder it is fitted to every batch at the current
    θ; an encoder maps the known values to its parameters and learns along with θ.

    Parameters
    ----------
    family : Family or mapping from names to families, optional
        None is mean field: normal or categorical coordinates.
    n : int, default=1
        Draws per row of the sampled estimators.
    estimator : {"auto", "exact", "closed", "pathwise", "score"}
        How :math:`E_q[e]` is found: a sum over finite latents, a closed form where e is quadratic
        and q normal, draws that carry gradients, or the score function with a baseline. "auto"
        takes the first that applies.
    max_iter : int, default=100
        Most iterations of the fit of q to a batch.
    encoder : module, optional
        Called with the known variables as keywords; returns the parameters ``(B, P)`` of q, or a
        mapping of names to them.

    Examples
    --------
    >>> from groundstate.energy import CentroidEnergy
    >>> from groundstate.learn import NLL
    >>> energy = CentroidEnergy(2, 1)
    >>> batch = {"x": torch.tensor([[0.5], [3.0]])}
    >>> bound = NLL(latent=Variational())(energy, batch).loss
    >>> bool(torch.allclose(bound, NLL()(energy, batch).loss, atol=1e-3))  # q is all distributions: tight
    True
    """

    def __init__(
        self,
        family: Family | Mapping[str, Family] | None = None,
        n: int = 1,
        estimator: Estimator = "auto",
        *,
        max_iter: int = 100,
        encoder: nn.Module | None = None,
    ) -> None:
        super().__init__()
        if n < 1:
            raise ValueError(f"at least one draw is needed, got n={n}")
        if estimator not in ESTIMATORS:
            raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}, got {estimator!r}")
        self.family: Any = family
        self.n, self.estimator, self.encoder = n, estimator, encoder
        self.max_iter = max_iter

    def families(self, energy: Energy, latents: tuple[str, ...]) -> dict[str, Family]:
        """The family of every latent."""
        if isinstance(self.family, Mapping):
            return {m: self.family.get(m) or default_family(energy.spaces[m]) for m in latents}
        return {name: self.family or default_family(energy.spaces[name]) for name in latents}

    def reason_against(self, energy: Energy, latents: tuple[str, ...]) -> str | None:
        """Why there is no such bound, or None. Computes nothing."""
        for name, family in self.families(energy, latents).items():
            reason = family.reason_against(energy.spaces[name])
            if reason is not None:
                return f"the family {type(family).__name__} does not fit {name!r}: {reason}"
        if self.estimator == "exact" and not _listable(energy, latents):
            return f"estimator='exact' sums over finite latents, and {', '.join(latents)} are not"
        return None

    def distributions(
        self, energy: Energy, latents: tuple[str, ...], known: Batch, T: float = 1.0
    ) -> dict[str, Distribution]:
        """q of every latent, batch shape ``(B,)``."""
        families = self.families(energy, latents)
        if self.encoder is None:
            return fitted(energy, families, known, T, self.max_iter)
        params = self.encoder(**{n: v for n, v in known.items() if n in energy.spaces})
        if isinstance(params, Tensor):
            sizes = [families[name].size(energy.spaces[name]) for name in latents]
            params = dict(zip(latents, params.split(sizes, dim=1), strict=True))
        return {
            name: f.distribution(energy.spaces[name], params[name]) for name, f in families.items()
        }

    def forward(
        self,
        energy: Energy,
        latents: tuple[str, ...],
        known: Batch,
        *,
        T: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        distributions = self.distributions(energy, latents, known, T)
        return bound(
            energy,
            distributions,
            known,
            T=T,
            n=self.n,
            estimator=self.estimator,
            generator=generator,
        )


def bound(
    energy: Energy,
    distributions: Distributions,
    known: Batch,
    *,
    T: float = 1.0,
    n: int = 1,
    estimator: Estimator = "auto",
    generator: torch.Generator | None = None,
) -> Tensor:
    r""":math:`E_q[e] - T\,H(q) \ge F`, ``(B,)``, differentiable in θ and in the distributions' parameters.

    Parameters
    ----------
    energy : Energy
    distributions : q by latent name, each with batch shape ``(B,)``
    known : all other variables
    T : temperature
    n, estimator : see ``Variational``
    generator : source of randomness

    Examples
    --------
    >>> from torch.distributions import Categorical
    >>> from groundstate.energy import TableEnergy
    >>> joint = torch.tensor([0.5, 0.3, 0.2]) * torch.tensor([0.10, 0.40, 0.05])
    >>> q = Categorical(torch.tensor([[0.2, 0.6, 0.2]]))
    >>> bound(TableEnergy(-joint.log()), {"x": q}, {})
    tensor([1.8421], grad_fn=<SumBackward1>)
    """
    names = tuple(distributions)
    if estimator == "auto":
        estimator = _chosen(energy, distributions)
    if estimator == "exact":
        return _listed(energy, distributions, known, T)
    if estimator == "closed":
        (name,) = names
        return (
            _quadratic(energy, name, distributions[name], known) - T * distributions[name].entropy()
        )
    if estimator == "pathwise":
        with seeded(generator):
            values = {name: q.rsample(torch.Size([n])) for name, q in distributions.items()}
        e = _evaluate(energy, known, values).mean(0)
        return e - T * _entropy(distributions, values)
    values = {name: draw(q, n, generator) for name, q in distributions.items()}
    log_q = torch.stack([q.log_prob(values[name]) for name, q in distributions.items()]).sum(
        0
    )  # (n, B)
    f = _evaluate(energy, known, values) + T * log_q.detach()  # (n, B)
    # E_q of the score is zero, so T*log q needs no gradient of its own
    return with_score(f, log_q).mean(0)


def with_score(f: Tensor, log_q: Tensor) -> Tensor:
    """Values ``(n, B)`` whose gradient in q is that of the score function with a baseline.

    The baseline takes off what the other draws (or, of a single draw, the other rows) predict and
    leaves the mean alone.
    """
    n, rows = f.shape
    fixed = f.detach()
    if n > 1:
        base = (fixed.sum(0) - fixed) / (n - 1)
    else:
        base = (fixed.sum(1, keepdim=True) - fixed) / (rows - 1) if rows > 1 else fixed * 0
    return f + (fixed - base) * (log_q - log_q.detach())


def _chosen(energy: Energy, distributions: Distributions) -> Estimator:
    if _listable(energy, tuple(distributions)):
        return "exact"
    names = tuple(distributions)
    if (
        len(names) == 1
        and names[0] in energy.gaussian
        and _factor(distributions[names[0]]) is not None
    ):
        return "closed"
    return "pathwise" if all(q.has_rsample for q in distributions.values()) else "score"


def _listable(energy: Energy, names: tuple[str, ...]) -> bool:
    return math.prod(energy.spaces[name].size for name in names) <= LISTED


def _evaluate(energy: Energy, known: Batch, values: Mapping[str, Tensor]) -> Tensor:
    """Energies ``(n, B)`` of values ``(n, B, *event)``."""
    n, rows = next(iter(values.values())).shape[:2]
    given = {name: v.repeat(n, *(1,) * (v.ndim - 1)) for name, v in known.items()}
    flat = {name: v.reshape(n * rows, *v.shape[2:]) for name, v in values.items()}
    return energy(**given, **flat).view(n, rows)


def _listed(energy: Energy, distributions: Distributions, known: Batch, T: float) -> Tensor:
    names = tuple(distributions)
    device, dtype = energy.placement(known)
    lists = [energy.spaces[name].enumerate(device, dtype) for name in names]
    index = torch.cartesian_prod(*(torch.arange(len(v), device=device) for v in lists))
    index = index.reshape(-1, len(names))  # (K, latents)
    rows = next((v.shape[0] for v in known.values()), int(distributions[names[0]].batch_shape[0]))
    values = {
        name: v[index[:, j]][:, None].expand(-1, rows, *v.shape[1:])
        for j, (name, v) in enumerate(zip(names, lists, strict=True))
    }
    each = [_log_probs(distributions[n], values[n], index[:, j]) for j, n in enumerate(names)]
    log_q = torch.stack(each).sum(0)  # (K, B)
    if len(names) == 1:
        e = energy.table(names[0], **known).T
    else:
        e = _evaluate(energy, known, values)
    q = log_q.exp()
    return torch.where(q > 0, q * (e + T * log_q), 0.0).sum(0)


def _log_probs(q: Distribution, values: Tensor, index: Tensor) -> Tensor:
    """Log probabilities ``(K, B)`` of listed values; those of a categorical distribution are its table."""
    if isinstance(q, distributions.Categorical):
        return q.logits.T[index]  # log_prob would spread (K, B, K) on the way back
    return q.log_prob(values)


def _factor(q: Distribution) -> tuple[Tensor, Tensor] | None:
    """Mean ``(B, d)`` and square root of the covariance ``(B, d, d)`` of a normal distribution."""
    if isinstance(q, MultivariateNormal):
        return q.loc, q.scale_tril
    if isinstance(q, Independent) and isinstance(q.base_dist, Normal) and q.base_dist.loc.ndim == 2:
        return q.base_dist.loc, torch.diag_embed(q.base_dist.scale)
    return None


def _quadratic(energy: Energy, name: str, q: Distribution, known: Batch) -> Tensor:
    r""":math:`E_q[e]` of an energy that is quadratic in z, from e at 2d + 1 points.

    :math:`E_q[e] = e(\mu) + \tfrac12\sum_j l_j^\top \nabla^2 e\, l_j` with the columns :math:`l_j`
    of the covariance's root, and the second difference of a quadratic is exact.
    """
    factor = _factor(q)
    assert factor is not None
    mean, root = factor
    columns = root.permute(2, 0, 1)  # (d, B, d)
    points = torch.cat([mean[None], mean + columns, mean - columns])
    e = _evaluate(energy, known, {name: points})
    d = columns.shape[0]
    return e[0] + 0.5 * (e[1 : d + 1] + e[d + 1 :] - 2 * e[0]).sum(0)


def _entropy(distributions: Distributions, values: Mapping[str, Tensor]) -> Tensor:
    """Entropy ``(B,)``: closed where known, else from the draws."""
    total: Tensor | None = None
    for name, q in distributions.items():
        try:
            part = q.entropy()
        except NotImplementedError:
            part = -q.log_prob(values[name]).mean(0)
        total = part if total is None else total + part
    assert total is not None
    return total


def fitted(
    energy: Energy, families: Mapping[str, Family], known: Batch, T: float, max_iter: int = 100
) -> dict[str, Distribution]:
    """q at its best for these rows and the current θ, without gradient in its parameters."""
    if len(families) == 1:
        ((name, family),) = families.items()
        if isinstance(energy.spaces[name], Finite) and isinstance(family, (MeanField, Categorical)):
            with (
                torch.no_grad()
            ):  # every distribution on the values is in the family: the posterior
                logits = boltzmann_logits(energy.table(name, **known), T)
            return {name: distributions.Categorical(logits=logits, validate_args=False)}
    query = ask(energy, tuple(families), {n: v.detach() for n, v in known.items()}, T=T)
    fit = Fit(family=dict(families), n=32, max_iter=max_iter, tol=1e-4)
    with held(energy):
        return fit.distributions(query)


@contextmanager
def seeded(generator: torch.Generator | None) -> Iterator[None]:
    """Torch's distributions read the process-wide stream: seed it for a moment and put it back."""
    own = split(generator, 1)[0].initial_seed()
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(own)
        yield

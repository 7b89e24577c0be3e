r"""The bound and its gap make up the evidence, and climbing the bound ends at the posterior."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution, MultivariateNormal

from groundstate.compute.random import Key
from groundstate.energy import CentroidEnergy, DirectedEnergy, Energy, LinearGaussianEnergy, Real
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.infer import Gradient, log_partition, minimise, posterior
from groundstate.learn import elbo as bound_of
from groundstate.math.divergences import kl

F64 = torch.float64


class SoftmaxDistribution(Energy):
    r"""A distribution of z as a variable: :math:`e(\varphi) = -\mathrm{ELBO}(\mathrm{softmax}(\varphi))`."""

    def __init__(self, model: Energy, x: Tensor) -> None:
        super().__init__(phi=Real(int(model.spaces["z"].size)))
        self.model, self.x = model, x  # one observation

    def observed(self, rows: int) -> dict[str, Tensor]:
        """The observation, once for every distribution."""
        return {"x": self.x.expand(rows, *self.x.shape[1:])}

    def forward(self, phi: Tensor) -> Tensor:
        return -bound_of(self.model, Categorical(logits=phi), self.observed(len(phi))).value


def dice() -> DirectedEnergy:
    """Three causes with prior (.5, .3, .2); the outcome 0 has likelihood (.10, .40, .05)."""
    seen = torch.tensor([0.10, 0.40, 0.05], dtype=F64)
    table = torch.stack([seen, 1 - seen], 1)
    prior = Categorical(torch.tensor([0.5, 0.3, 0.2], dtype=F64))
    return DirectedEnergy(prior, lambda z: Categorical(table[z]))


@experiment("ENE-X-elbo", theme="energy", title="Bound + KL = log p; ascent ends at the posterior")
def elbo(seed: int = 0, *, quick: bool = False) -> Result:
    r"""For every distribution q of the hidden z, the bound and its distance from the posterior add up to
    the evidence,

    .. math:: \log p(x) = \underbrace{E_q[\log p(x,z)] + H(q)}_{\mathrm{ELBO}(q)}
              + \mathrm{KL}(q\,\|\,p(z\mid x)),

    checked on random distributions of a mixture's label and of a linear-Gaussian code. As
    :math:`\log p(x)` does not depend on q, climbing the bound over softmax distributions can only end at
    :math:`q = p(z\mid x)`, where it touches :math:`\log p(x)`.
    """
    key = Key.of(seed)
    g = key.fold("distributions").torch()
    rows = 50 if quick else 500
    errors = {
        "label of a mixture": _finite_error(rows, g),
        "linear-Gaussian code": _gaussian_error(rows, g),
    }

    model, x = dice(), torch.zeros(1, dtype=torch.int64)
    distribution = SoftmaxDistribution(model, x)
    start = {"phi": 2.0 * torch.randn(5, 3, generator=g, dtype=F64)}
    method = Gradient(tol=1e-8, optimizer=lambda phi: torch.optim.SGD(phi, lr=1.0), max_iter=2000)
    found = minimise(distribution, "phi", init=start, method=method)
    assert found.trace is not None
    curves = -found.trace  # (steps + 1, 5)
    evidence = float(_evidence(model, {"x": x}))
    ended = Categorical(logits=found["phi"])
    exact = posterior(model, "z", {"x": x})
    assert isinstance(exact, Categorical)
    distance = kl(ended, exact)
    assert isinstance(distance, Tensor)
    last = float(distance.max())
    tilt = found["phi"].softmax(1)[0].tolist()

    claims = [
        Claim.below(f"{name}: largest |bound + KL − log p|", error, 1e-12)
        for name, error in errors.items()
    ]
    claims.append(
        Claim.below("ascent from 5 starts: largest final KL to the posterior", last, 1e-6)
    )
    above = float((curves - evidence).max())
    claims.append(Claim.at_most("ascent: most that the bound exceeds log p", above, 1e-12))
    numbers = {"log p": evidence, "final KL": last, "distribution": tilt, **errors}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=[3, 2])
        steps = torch.arange(len(curves)) + 1
        for j, curve in enumerate(curves.T):
            left.plot(steps, curve.numpy(), color=COLOURS[j])
        left.axhline(evidence, color="black", linestyle="--", linewidth=1, label="log p(x)")
        left.set(xscale="log", xlabel="step", title="ELBO while q climbs, five starts")
        left.legend(loc="lower right")
        k = torch.arange(3)
        right.bar(
            k - 0.2, start["phi"].softmax(1)[0].numpy(), 0.38, color=COLOURS[5], label="start"
        )
        right.bar(k + 0.2, tilt, 0.38, color=COLOURS[0], label="end")
        right.hlines(exact.probs[0].numpy(), k - 0.45, k + 0.45, color="black", label="posterior")
        right.set(title="q(z)", xticks=[0, 1, 2], xlabel="z")
        right.legend()

    return Result(claims, numbers, draw)


def _evidence(energy: Energy, given: dict[str, Tensor]) -> Tensor:
    with torch.no_grad():
        return log_partition(energy, "z", given) - log_partition(energy, tuple(energy.spaces))


def _error(energy: Energy, q: Distribution, given: dict[str, Tensor]) -> float:
    """Largest gap between log p(x) and bound + KL, each found on its own."""
    with torch.no_grad():
        distance = kl(q, posterior(energy, "z", given))
        assert isinstance(distance, Tensor)
        total = bound_of(energy, q, given).value + distance
        return float((total - _evidence(energy, given)).abs().max())


def _finite_error(rows: int, g: torch.Generator) -> float:
    energy = CentroidEnergy(4, 2, generator=g).double()
    x = torch.randn(rows, 2, generator=g, dtype=F64)
    return _error(energy, Categorical(torch.rand(rows, 4, generator=g, dtype=F64)), {"x": x})


def _gaussian_error(rows: int, g: torch.Generator) -> float:
    energy = LinearGaussianEnergy(3, 2, s=0.7, generator=g).double()
    x = torch.randn(rows, 3, generator=g, dtype=F64)
    root = torch.randn(rows, 2, 2, generator=g, dtype=F64)
    mean = torch.randn(rows, 2, generator=g, dtype=F64)
    q = MultivariateNormal(mean, root @ root.mT + torch.eye(2, dtype=F64))
    return _error(energy, q, {"x": x})

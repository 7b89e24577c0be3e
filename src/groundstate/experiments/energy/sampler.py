r"""A network that is taught to draw low energies needs entropy, or it draws one value."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.energy import Energy, Real
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import landscape
from groundstate.infer import HMC, Quadrature, marginalise, sample
from groundstate.learn import Adversarial, Affine, PushForward
from groundstate.nn.blocks.mlp import network

F64 = torch.float64
A, H = 1.5, 0.5  # wells at x₁ = ±A, with a barrier of H·A⁴ = 2.5 between them
BATCH, STEPS, RATE = 128, 800, 0.01


class DoubleWell(Energy):
    r""":math:`e(x) = h(x_1^2 - a^2)^2 + \tfrac12x_2^2 + t\|x\|^2` at t = 0.

    :math:`\partial F/\partial t = E\|x\|^2` is what t is for: the free energy's slope is a mean.
    """

    def __init__(self) -> None:
        super().__init__(x=Real(2, low=-6.0, high=6.0))
        self.t = nn.Parameter(torch.zeros((), dtype=F64))

    def forward(self, x: Tensor) -> Tensor:
        well = H * (x[:, 0].square() - A**2).square() + 0.5 * x[:, 1].square()
        return well + self.t * x.square().sum(-1)


@experiment("ENE-X-sampler", theme="energy", title="A sampler without entropy collapses", slow=True)
def sampler(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Teach a generator :math:`x = g(\varepsilon)` to sample a fixed double well by descending
    :math:`KL(p_g\|p) = E\,e(g(\varepsilon)) - H(p_g) + \log Z`.

    The first term alone is lowest where all draws are one minimum of e: the covariance goes to
    zero. With the entropy, exact for a flow :math:`g = A\varepsilon + b`
    (:math:`H = \log|\det A|` + const) or by pulling the draws towards a wider Gaussian (MMD), the
    draws keep a spread like that of the model. A network g may split the noise between both wells
    and still has no entropy: it draws points, not a distribution.
    """
    key = Key.of(seed)
    energy = DoubleWell()
    F = marginalise(energy, "x", method=Quadrature(points=200)).value
    exact = float(torch.autograd.grad(F.sum(), energy.t)[0])  # mean is 0: E‖x‖² is the trace

    rules = {
        "no entropy": _rule(_flow(), None, 0.0),
        "exact entropy": _rule(_flow(), "exact", 1.0),
        "MMD entropy": _rule(_flow(), "mmd", 30.0),
        "network, no entropy": _rule(network((32, 32), 2, 2, key.torch()), None, 0.0),
    }
    draws = {}
    for name, rule in rules.items():
        _teach(energy, rule, key.fold(name))
        with torch.no_grad():
            draws[name] = rule.g.draw(4000, generator=key.fold(name, "draws").torch())
    trace = {name: float(torch.cov(x.T).trace()) / exact for name, x in draws.items()}
    across = float(draws["network, no entropy"][:, 1].var())  # the model's is 1
    reached = float(energy(x=draws["no entropy"]).detach().mean())

    claims = [
        Claim.below("no entropy: trace of the covariance, relative to the model's",
                    trace["no entropy"], 0.1),
        Claim.at_most("no entropy: mean energy of the draws (the minimum is 0)", reached, 0.01),
        Claim.between("exact entropy: trace of the covariance, relative",
                      trace["exact entropy"], 0.5, 2.0),
        Claim.between("MMD entropy: trace of the covariance, relative",
                      trace["MMD entropy"], 0.5, 2.0),
        Claim.below("network, no entropy: variance of x₂, relative", across, 0.1),
    ]  # fmt: skip
    numbers = {"exact trace": exact, "trace": trace, "network across": across}
    model = sample(
        energy, "x", n=600, method=HMC(step_size=0.3, n_steps=40),
        generator=key.fold("model").torch(),
    )["x"][:, 0]  # fmt: skip

    def draw(figure: Figure) -> None:
        shown = {"the model": model, **draws}
        reach = torch.tensor([[-2.8, -2.8], [2.8, 2.8]], dtype=F64)
        for ax, (name, x) in zip(figure.subplots(1, 5, sharey=True), shown.items()):
            landscape(ax, lambda v: energy(x=v).clamp(max=8.0), reach)
            at = x[:400].numpy()
            ax.scatter(at[:, 0], at[:, 1], s=5, color=COLOURS[1], linewidth=0)
            note = f"\ntrace × {trace[name]:.2f}" if name in trace else f"\ntrace {exact:.2f}"
            ax.set(title=name + note, aspect="equal", xlim=(-3.2, 3.2), ylim=(-3.2, 3.2))

    return Result(claims, numbers, draw, size=(12.0, 3.0))


def _flow() -> Affine:
    """ε + (½, 0): off the ridge between the wells, where b would have no slope by symmetry."""
    net = Affine(2)
    with torch.no_grad():
        net.b[0] = 0.5
    return net


def _rule(net: nn.Module, entropy: str | None, weight: float) -> Adversarial:
    return Adversarial(PushForward(net.double(), noise=2), entropy, weight, m=1.0)


def _teach(energy: DoubleWell, rule: Adversarial, key: Key) -> None:
    """The generator's half of adversarial learning: the energy stays as it is."""
    optimizer = torch.optim.Adam(rule.g.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, STEPS)
    generator = key.torch()
    batch = {"x": torch.zeros(BATCH, 2, dtype=F64)}  # only its length counts
    for _ in range(STEPS):
        optimizer.zero_grad()
        rule.inner(energy, batch, generator).backward()
        optimizer.step()
        schedule.step()

r"""Smaller batches take rougher paths, and roughness can leave a local minimum."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.energy.networks.location import LocationHead
from groundstate.energy.networks.network import NetworkEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import NLL, PathRecorder, Stochastic, fit, fit_population
from groundstate.math.optim import landscape

ROWS, SIZES = 128, {"full": None, "32": 32, "1": 1}
STARTS, EPOCHS, RATE = 100, 200, 8.0
LOW = 1e-3  # losses below it are those of the lowest minimum


class Line(nn.Module):
    """θ₀ + θ₁x."""

    def __init__(self, theta: Tensor) -> None:
        super().__init__()
        self.theta = nn.Parameter(theta.clone())

    def forward(self, x: Tensor) -> Tensor:
        return self.theta[0] + self.theta[1] * x


class Gabor(Line):
    """A wave in a bell, :math:`\\sin u\\,e^{-u^2/32}` with :math:`u = θ₀ + 0.06\\,θ₁x`."""

    def forward(self, x: Tensor) -> Tensor:
        u = self.theta[0] + 0.06 * self.theta[1] * x
        return torch.sin(u) * torch.exp(-u.square() / 32)


def error(model: type[Line], theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Half the mean squared error."""
    given = torch.func.functional_call(model(torch.zeros(2)), {"theta": theta}, (x,))
    return 0.5 * (given - y).square().mean()


def energy_of(model: type[Line], theta: Tensor) -> NetworkEnergy:
    return NetworkEnergy(1, LocationHead("squared_error"), model(theta))


def walk(key: Key, x: Tensor, y: Tensor, size: int | None, epochs: int) -> tuple[Tensor, float]:
    """Path of a line's parameters, and how far its steps turn away from the full gradient.

    The direction variance is the mean of 1 − cos of the angle between a step and −∇L.
    """
    way = PathRecorder()
    solver = Stochastic("sgd", lr=0.05, batch_size=size, max_epochs=epochs, tol=None)
    energy = energy_of(Line, torch.tensor([-2.0, 2.5]))
    fit(energy, {"x": x, "y": y}, NLL(), solver, callbacks=[way], random_state=key)
    path = way.path[:101]
    down = -torch.func.vmap(torch.func.grad(lambda t: error(Line, t, x, y)))(path[:-1])
    turn = 1 - torch.cosine_similarity(path.diff(dim=0).double(), down.double(), dim=1)
    return path, float(turn.mean())


def descend(
    key: Key, starts: Tensor, x: Tensor, y: Tensor, size: int | None, rate: float, epochs: int
) -> Tensor:
    """Where descent on the wave ends from every start, ``(P, 2)``."""
    members = [energy_of(Gabor, start) for start in starts]
    solver = Stochastic("sgd", lr=rate, batch_size=size, max_epochs=epochs, tol=None,
                        schedule="cosine")  # fmt: skip
    fit_population(members, {"x": x, "y": y}, NLL(), solver, random_state=key.split(len(members)))
    return torch.stack([p.detach() for e in members for p in e.parameters()])


@experiment("NEU-X-batch", theme="neural", title="Smaller batches, rougher paths", slow=True)
def batch(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A step on a batch follows :math:`\nabla L_b`, which is :math:`\nabla L` only on average,
    :math:`\sum_b\frac{n_b}{n}L_b = L`: the smaller the batch, the more its steps turn away from the
    steepest way down. Every batch has its own landscape, so a minimum of L that is not one of every
    :math:`L_b` does not hold a noisy path: noise can leave a local minimum, where descent on all rows
    stays by construction. That noise also ends more often in the lowest minimum, from the same starts
    with as many steps, did not come out: over the seeds 0 to 7 it is 0.24 of the starts against 0.215,
    more in three draws of the rows and less in four. Both shares are among the numbers, no claim.

    A line through 128 points, steps of 0.05 with all rows, 32 and 1, the first 100 of them; the
    direction variance is the mean of 1 − cos between step and :math:`-\nabla L`. Then the two
    parameters of :math:`\sin u\,e^{-u^2/32}`, u = θ₀ + 0.06 θ₁x, from 100 starts, 30 points, batches of
    5 against all rows: 1,200 steps of each; then both ways again, 200 passes, from where the full steps
    ended elsewhere than in the lowest minimum. The rate falls from 8 to 0 along a cosine.
    """
    key = Key.of(seed)
    g = key.fold("line").torch()
    x = torch.randn(ROWS, 1, generator=g)
    y = 1 + 0.7 * x + 0.7 * torch.randn(ROWS, 1, generator=g)
    walks = {name: walk(key.fold("walk", name), x, y, size, 100 if size is None else 25)
             for name, size in SIZES.items()}  # fmt: skip
    turns = {name: turn for name, (_, turn) in walks.items()}
    parts = [(x[a : a + 40], y[a : a + 40]) for a in range(0, ROWS, 40)]  # 40, 40, 40 and 8 rows
    seen = landscape(lambda t, x, y: error(Line, t, x, y), torch.tensor([0.5, 0.5]), x, y,
                     directions=(0, 1), extent=3.0, n=41, batches=parts)  # fmt: skip
    share = torch.tensor([len(a) / ROWS for a, _ in parts])[:, None, None]
    mean_gap = float(((share * seen.batches).sum(0) / seen.values - 1).abs().max())
    apart = float((seen.batches - seen.values).abs().amax((1, 2)).min())

    g = key.fold("gabor").torch()
    u = 30 * torch.rand(30, 1, generator=g) - 15
    with torch.no_grad():
        v = Gabor(torch.tensor([0.0, 16.6]))(u) + 0.02 * torch.randn(30, 1, generator=g)
    g = key.fold("starts").torch()
    starts = torch.rand(50 if quick else STARTS, 2, generator=g) * 20 + torch.tensor([-10.0, 2.5])
    settled = descend(key.fold("settle"), starts, u, v, None, RATE, 6 * EPOCHS)
    noisy = descend(key.fold("noisy"), starts, u, v, 5, RATE, EPOCHS)  # as many steps

    def lowest(at: Tensor) -> Tensor:
        return torch.func.vmap(lambda t: error(Gabor, t, u, v))(at) < LOW

    stuck = settled[~lowest(settled)]
    ends = {
        "all rows": descend(key.fold("again"), stuck, u, v, None, RATE, EPOCHS),
        "batches of 5": descend(key.fold("again"), stuck, u, v, 5, RATE, EPOCHS),
    }
    success = {name: float(lowest(at).double().mean()) for name, at in ends.items()}
    equal_steps = {"all rows": float(lowest(settled).double().mean()),
                   "batches of 5": float(lowest(noisy).double().mean())}  # fmt: skip
    claims = [
        Claim.below("direction variance, all rows against 32", turns["full"], turns["32"]),
        Claim.below("direction variance, 32 against 1", turns["32"], turns["1"]),
        Claim.at_most("weighted mean of batch surfaces against the full one, relative", mean_gap, 1e-6),
        Claim.above("least difference of a batch surface from the full one", apart, 0.1),
        Claim.above("noise can leave a local minimum: from minima of L that are not the lowest, share "
                    "that batches of 5 take to the lowest, against all rows, which stay",
                    success["batches of 5"], success["all rows"]),
    ]  # fmt: skip
    numbers = {
        "direction variance": turns,
        "from other minima to the lowest": success,
        "from the same starts to the lowest, 1,200 steps": equal_steps,
        "stuck": len(stuck),
        "surfaces": [mean_gap, apart],
    }

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        bowl = landscape(lambda t, x, y: error(Line, t, x, y), torch.tensor([-0.5, 1.2]), x, y,
                         directions=(0, 1), extent=2.3, n=41)  # fmt: skip
        left.contour(bowl.a - 0.5, bowl.b + 1.2, bowl.values.sqrt(), levels=14, colors="#c9ced6",
                     linewidths=0.7)  # fmt: skip
        for (name, (path, turn)), colour in zip(walks.items(), COLOURS):
            left.plot(*path.T, "o-", color=colour, markersize=1.5, linewidth=0.7,
                      label=f"{name}: {turn:.2f}")  # fmt: skip
        left.set(title="100 steps, with their direction variance", xlabel="θ₀", ylabel="θ₁")
        left.legend()
        hills = landscape(lambda t: error(Gabor, t, u, v), torch.tensor([0.0, 12.5]),
                          directions=(0, 1), extent=10.0, n=81)  # fmt: skip
        right.contourf(hills.a, hills.b + 12.5, hills.values, levels=20, cmap="Greys")
        for (name, at), colour in zip(ends.items(), (COLOURS[0], COLOURS[1])):
            right.plot(*at.T, ".", color=colour, label=f"{name}: {success[name]:.2f}")
        right.set(title="where those stuck elsewhere end", xlabel="θ₀", ylabel="θ₁", xlim=(-10, 10),
                  ylim=(2.5, 22.5))  # fmt: skip
        right.legend()

    return Result(claims, numbers, draw, size=(9.5, 3.8))

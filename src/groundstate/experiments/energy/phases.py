r"""Learning pushes the data down and everything else up, in proportion to its probability."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import LinearEnergy, TableEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import Watch, blobs
from groundstate.infer import posterior
from groundstate.learn import NLL, SoftMin, Stochastic, fit, phases, sgd

SIDE = 32  # cells of the landscape along each axis


@experiment("ENE-X-phases", theme="energy", title="Data down, rest up")
def data_down_rest_up(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A step of maximum likelihood lowers the target and raises every other value ∝ its p.

    :math:`\nabla L = \nabla e(\text{data}) - E_p[\nabla e]`: the first phase comes from the data, the
    second from what the model itself believes. On one row of a linear energy a step of rate η
    changes the class energies by :math:`\Delta e_k = -\eta(\|x\|^2 + 1)(1(k = y) - p_k)`. On a
    landscape of free cells, :math:`\Delta e_k = -\eta(\hat p_k - p_k)`: a pit is dug where the data
    are and filled where the model was.
    """
    key = Key.of(seed)
    target, spread, total = _one_row(key.fold("row"))
    traces = _training(key, 100)
    before, after, observed, p, step = _cells(key)
    cells = after - before  # (SIDE², )
    empty = observed == 0
    gap = float((cells[empty] - step * p[empty]).abs().max() / (step * p).max())
    mean_data = float((cells * observed).sum())

    claims = [
        Claim.below("one row: change of the target's energy", target, 0.0),
        Claim.at_most("one row: relative spread of rise / p over the other classes", spread, 1e-9),
        Claim.at_most("one row: sum of all changes", abs(total), 1e-12),
        Claim.below("training: the target's mean energy, end less start",
                    float(traces[-1, 0] - traces[0, 0]), 0.0),
        Claim.above("training: the others' mean energy, smallest end less start",
                    float((traces[-1, 1:] - traces[0, 1:]).min()), 0.0),
        Claim.below("landscape: mean change where the data are", mean_data, 0.0),
        Claim.at_most("landscape: gap of the rise elsewhere to η p, relative", gap, 1e-9),
    ]  # fmt: skip
    numbers = {
        "target change": target, "spread": spread, "landscape gap": gap, "data change": mean_data,
    }  # fmt: skip

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 4)
        for k, (name, colour) in enumerate(zip(("target", "other", "other"), COLOURS)):
            axes[0].plot(traces[:, k].numpy(), color=colour, label=name)
        axes[0].set(title="class energies in training", xlabel="step")
        axes[0].legend()
        low, high = float(torch.minimum(before, after).min()), float(before.max())
        for ax, (name, e) in zip(axes[1:3], {"before": before, "after one step": after}.items()):
            ax.contourf(
                e.view(SIDE, SIDE).clamp(max=high).numpy(), levels=14, vmin=low, vmax=high,
                cmap="viridis",
            )  # fmt: skip
            ax.set(title=name, xticks=[], yticks=[])
        change = cells.view(SIDE, SIDE).numpy()
        top = abs(change).max()
        axes[3].imshow(change, origin="lower", cmap="RdBu_r", vmin=-top, vmax=top)
        axes[3].set(title="change: down (blue), up (red)", xticks=[], yticks=[])

    return Result(claims, numbers, draw, size=(11.0, 3.0))


def _one_row(key: Key) -> tuple[float, float, float]:
    """Change of the target, relative spread of rise / p over the others, sum of changes."""
    energy = LinearEnergy(3, 5, scale=0.7, generator=key.torch()).double()
    x = torch.randn(1, 3, generator=key.fold("x").torch(), dtype=torch.float64)
    y = torch.tensor([2])
    with torch.no_grad():
        before = energy.table("y", x=x)[0]
        p = posterior(energy, "y", {"x": x}).probs[0]  # type: ignore[attr-defined]
    solver = Stochastic(sgd, lr=0.1, batch_size=None, max_epochs=1, tol=None)
    fit(energy, {"x": x, "y": y}, SoftMin(), solver, random_state=0)
    with torch.no_grad():
        change = energy.table("y", x=x)[0] - before
    others = torch.tensor([0, 1, 3, 4])
    rise = change[others] / p[others]
    spread = float((rise.max() - rise.min()) / rise.mean())
    return float(change[2]), spread, float(change.sum())


def _training(key: Key, steps: int) -> Tensor:
    """Mean energies of class 0 (the target) and of the others on rows of class 0."""
    x, y = blobs(key.fold("blobs"), [[2, 0], [-1, 2], [-1, -2]], 0.8, 300)
    energy = LinearEnergy(2, 3).double()
    watch = Watch(lambda e: e.table("y", x=x[y == 0]).mean(0))
    solver = Stochastic(sgd, lr=0.1, batch_size=None, max_epochs=steps, tol=None)
    fit(energy, {"x": x, "y": y}, SoftMin(), solver, callbacks=[watch], random_state=0)
    return watch.seen


def _cells(key: Key) -> tuple[Tensor, Tensor, Tensor, Tensor, float]:
    """A landscape of free cells before and after one step, the data's shares, p, and the rate."""
    axis = torch.linspace(-3, 3, SIDE, dtype=torch.float64)
    b, a = torch.meshgrid(axis, axis, indexing="ij")
    bowl = 0.8 * ((a + 1.2).square() + (b + 0.8).square())
    energy = TableEnergy(bowl.reshape(-1)).double()
    at, _ = blobs(key.fold("cells"), [[1.2, 1.0]], 0.45, 2000)
    place = ((at + 3) / 6 * SIDE).floor().clamp(0, SIDE - 1).long()
    data = {"x": place[:, 1] * SIDE + place[:, 0]}
    with torch.no_grad():
        before = energy.table("x")[0].clone()
        p = posterior(energy, "x").probs.reshape(-1)  # type: ignore[attr-defined]
    found = phases(energy, data, NLL())
    observed = next(iter(found.positive.values())).reshape(-1)
    step = 400.0
    solver = Stochastic(sgd, lr=step, batch_size=None, max_epochs=1, tol=None)
    fit(energy, data, NLL(), solver, random_state=0)
    with torch.no_grad():
        return before, energy.table("x")[0].clone(), observed, p, step

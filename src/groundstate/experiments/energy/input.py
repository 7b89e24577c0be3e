r"""Moving the inputs instead of θ explains the training rows and nothing else."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import Energy, LinearEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import accuracy, blobs, regions, scatter
from groundstate.infer import Gradient, adapt
from groundstate.learn import Perceptron, SoftMin, fit

CENTRES = [[1.5, 0.0], [-0.8, 1.3], [-0.8, -1.3]]


@experiment("ENE-X-input", theme="energy", title="Moving inputs does not transfer")
def moved_inputs(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Descending :math:`e(x, y) - \min_k e(x, k)` in x brings the training loss to 0 and leaves the
    test accuracy as it was.

    The loss of the perceptron is an energy of x as well as of θ. Moved along
    :math:`-\nabla_x(e_y - e_{\hat y}) = w_y - w_{\hat y}`, every training row ends on the right side of
    the boundary, but the boundary has not moved: new rows fare no better. Learning θ does transfer.
    """
    key = Key.of(seed)
    x, y = blobs(key.fold("train"), CENTRES, 0.6, 300)
    new_x, new_y = blobs(key.fold("test"), CENTRES, 0.6, 3000)
    energy = LinearEnergy(2, 3, scale=0.5, generator=key.fold("W").torch()).double()
    kept = {name: p.detach().clone() for name, p in energy.named_parameters()}
    loss = energy + (-1.0) * energy.minimal("y")
    before = {"loss": _loss(energy, x, y), "test": accuracy(energy, new_x, new_y)}
    moved = adapt(loss, x, {"y": y}, method=Gradient(max_iter=2000, optimizer=_steps))["x"]
    after = {"loss": _loss(energy, moved, y), "test": accuracy(energy, new_x, new_y)}
    drift = max(
        float((p - kept[name]).detach().abs().max()) for name, p in energy.named_parameters()
    )

    learned = LinearEnergy(2, 3).double()
    fit(learned, {"x": x, "y": y}, SoftMin(), random_state=0)
    taught = accuracy(learned, new_x, new_y)
    gap_before, gap_after = _one_step()

    claims = [
        Claim.above("training loss before", before["loss"], 0.1),
        Claim.equal("training loss after moving the inputs", after["loss"], 0.0),
        Claim.equal("training accuracy on the moved rows", accuracy(energy, moved, y), 1.0),
        Claim.equal("test accuracy after less before", after["test"] - before["test"], 0.0),
        Claim.equal("change of θ", drift, 0.0),
        Claim.above("test accuracy after learning θ instead, less before",
                    taught - before["test"], 0.05),
        Claim.close("worked example: e_y − e_ŷ before the step", gap_before, 0.5, tol=1e-12),
        Claim.close("worked example: e_y − e_ŷ after one step of 0.1", gap_after, 0.0, tol=1e-12),
    ]  # fmt: skip
    numbers = {
        "loss before": before["loss"], "loss after": after["loss"],
        "test before": before["test"], "test after": after["test"], "test learned": taught,
    }  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        regions(left, energy, x, y)
        left.set_title(f"fixed θ: {before['test']:.1%} of new rows right")
        regions(middle, energy, x, y)
        for k, colour in enumerate(COLOURS[:3]):
            rows = ((moved - x).norm(dim=1) > 0) & (y == k)
            a, d = x[rows].numpy(), (moved - x)[rows].numpy()
            middle.quiver(*a.T, *d.T, angles="xy", scale_units="xy", scale=1, color=colour,
                          width=0.004)  # fmt: skip
        scatter(middle, moved, y)
        middle.set_title(f"inputs moved: {after['test']:.1%} of new rows right")
        regions(right, learned, x, y)
        right.set_title(f"θ learned: {taught:.1%} of new rows right")

    return Result(claims, numbers, draw, size=(11.0, 3.6))


def _steps(parameters: list[Tensor]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1)


def _loss(energy: Energy, x: Tensor, y: Tensor) -> float:
    with torch.no_grad():
        return float(Perceptron()(energy, {"x": x, "y": y}).loss.mean())


def _one_step() -> tuple[float, float]:
    r""":math:`w_y = (1, 0), w_{\hat y} = (0, 2), x = (.3, .4)`: the gap before and after one step."""
    energy = LinearEnergy(2, 2, bias=False).double()
    with torch.no_grad():
        energy.W.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
    x, y = torch.tensor([[0.3, 0.4]], dtype=torch.float64), torch.tensor([0])
    loss = energy + (-1.0) * energy.minimal("y")
    moved = adapt(loss, x, {"y": y}, method=Gradient(max_iter=1, optimizer=_steps))
    with torch.no_grad():
        return float(loss(x=x, y=y)), float(loss(x=moved["x"], y=y))

r"""Moving the data instead of the model solves training and nothing else."""

from __future__ import annotations

import torch

from groundstate.compute.random import Key
from groundstate.energy import LinearEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import accuracy, blobs, regions
from groundstate.learn import Perceptron, Stochastic, fit
from groundstate.learn.gradients import adapt_input

CENTRES = ((0.0, 1.2), (-1.1, -0.7), (1.1, -0.7))
STEPS, RATE = 400, 0.5


@experiment("NEU-X-input", theme="neural", title="Moving the data solves training, not the task")
def input(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Descent lowers a loss in whatever is left free. With θ fixed and the inputs free,
    :math:`x \leftarrow x - \eta\nabla_x\ell(x, y; \theta)`, the training loss reaches 0 as well, but θ
    is what it was: rows that were not moved are classified as before, exactly. Only what unseen rows
    share with the training rows can help them, and that is θ.

    Three classes, linear energies with random weights, the perceptron loss
    :math:`e_y - \min_ke_k`, 90 rows moved for 400 steps, 2,000 unseen ones; then the same loss
    lowered in θ.
    A run takes about a second; quick ones are the same.
    """
    key = Key.of(seed)
    x, y = blobs(key.fold("train"), CENTRES, 0.5, 90)
    unseen, truth = blobs(key.fold("test"), CENTRES, 0.5, 2000)
    energy = LinearEnergy(2, 3).double()
    g = key.fold("theta").torch()
    with torch.no_grad():
        for p in energy.parameters():
            p.copy_(torch.randn(p.shape, generator=g, dtype=p.dtype))
    theta = [p.detach().clone() for p in energy.parameters()]
    before = {"train": accuracy(energy, x, y), "unseen": accuracy(energy, unseen, truth)}
    moved = adapt_input(energy, x, y, steps=STEPS, lr=RATE, rule=Perceptron())
    after = {"train": accuracy(energy, moved.x, y), "unseen": accuracy(energy, unseen, truth)}
    loss = moved.loss.mean(1)
    same = all(torch.equal(p, q) for p, q in zip(energy.parameters(), theta))

    learned = LinearEnergy(2, 3).double()
    fit(learned, {"x": x, "y": y}, Perceptron(), Stochastic("sgd", lr=0.1, batch_size=None,
        max_epochs=STEPS, tol=None), random_state=key.fold("fit"))  # fmt: skip
    taught = accuracy(learned, unseen, truth)
    claims = [
        Claim.above("training loss before", float(loss[0]), 0.0),
        Claim.equal("training loss after the rows moved", float(loss[-1]), 0.0),
        Claim.equal("training accuracy after", after["train"], 1.0),
        Claim.equal("unseen accuracy after less before", after["unseen"] - before["unseen"], 0.0),
        Claim.equal("θ is the same, bit by bit", same, True),
        Claim.above("unseen accuracy with θ learned, against moved rows", taught, after["unseen"]),
    ]
    numbers = {"before": before, "after": after, "learned": taught,
               "loss": loss[:: STEPS // 20].tolist(),
               "distance moved": float((moved.x - x).norm(dim=1).mean())}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
        regions(left, energy, torch.cat([x, moved.x]), torch.cat([y, y]))
        way = (moved.x - x).numpy()
        far = (moved.x - x).norm(dim=1).numpy() > 1e-9
        left.quiver(*x.numpy()[far].T, *way[far].T, angles="xy", scale_units="xy", scale=1,
                    width=0.003, color="black", alpha=0.6)  # fmt: skip
        left.set(title="rows move into the region of their label", aspect="equal")
        right.semilogy(loss.clamp_min(1e-4), color=COLOURS[0])
        right.set(title=f"loss; unseen accuracy stays {after['unseen']:.3f}", xlabel="step")

    return Result(claims, numbers, draw, size=(9.0, 3.8))

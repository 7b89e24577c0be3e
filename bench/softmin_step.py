"""A SoftMin training step through the trainer against the same loop written by hand in torch."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark

CLASSES, RATE = 10, 0.1
EPOCHS = {64: 60, 1024: 30, 8192: 8}  # long enough that the steps, not the set-up, are measured


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import torch

    batch, features = size
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch * 32, features, generator=generator)
    y = torch.randint(CLASSES, (batch * 32,), generator=generator)
    return {"x": x, "y": y, "batch": batch}


def ours(data: dict[str, Any]) -> float:
    import torch
    from torch.nn.functional import cross_entropy

    from groundstate.energy import LinearEnergy
    from groundstate.learn import SoftMin, Stochastic, fit
    from groundstate.learn.train.stochastic import sgd

    energy = LinearEnergy(data["x"].shape[1], CLASSES)
    solver = Stochastic(
        optimizer=sgd, lr=RATE, batch_size=data["batch"], max_epochs=EPOCHS[data["batch"]], tol=None
    )
    rows = {"x": data["x"], "y": data["y"]}
    fit(energy, rows, SoftMin(), solver=solver, random_state=0)
    with torch.no_grad():
        return float(cross_entropy(-energy.table("y", x=data["x"]), data["y"]))


def by_hand(data: dict[str, Any]) -> float:
    import torch
    from torch.nn.functional import cross_entropy

    x, y, batch = data["x"], data["y"], data["batch"]
    linear = torch.nn.Linear(x.shape[1], CLASSES)
    optimizer = torch.optim.SGD(linear.parameters(), lr=RATE, fused=True)
    generator = torch.Generator().manual_seed(0)
    for _ in range(EPOCHS[batch]):
        for rows in torch.randperm(len(x), generator=generator).split(batch):
            loss = cross_entropy(linear(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return float(cross_entropy(linear(x), y))


SOFTMIN = Benchmark(
    name="softmin-step",
    title="Epochs of 32 SoftMin steps: trainer and hand-written loop",
    sizes={"64x10": (64, 10), "1024x128": (1024, 128), "8192x512": (8192, 512)},
    data=data,
    ours=ours,
    peers={"torch loop": by_hand},
    score=lambda data, loss: float(loss),
    score_name="mean cross-entropy",
    target=1 / 1.05,
)

"""Run everything that stands around the training loop on one device and compare with the CPU.

Usage: python bench/scripts/around_the_loop.py [cuda|cpu]
"""

from __future__ import annotations

import sys
import tempfile

import torch
from torch import Tensor, nn

from groundstate.energy import NetClassEnergy
from groundstate.learn import (
    EMA,
    Augmented,
    BestCheckpoint,
    Callback,
    Checkpoint,
    EarlyStopping,
    Follow,
    HistoryTable,
    LossTerms,
    Metrics,
    Nested,
    PathRecorder,
    Plateau,
    Player,
    Players,
    Probe,
    Regret,
    Rule,
    SoftMin,
    Stochastic,
    diagnose,
    find_lr,
    fit,
)
from groundstate.learn.rules.balancing import BALANCES
from groundstate.nn import Dropout, InputNoise, WeightNoise
from groundstate.nn.augment import Augment, Flip, Noise, Shift


def rows(device: str) -> dict[str, Tensor]:
    x = torch.randn(512, 16, generator=torch.Generator().manual_seed(0))
    return {"x": x.to(device), "y": (x[:, 0] * x[:, 1] > 0).long().to(device)}


def network(device: str, noisy: bool = False) -> NetClassEnergy:
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 2)]
    if noisy:
        layers[1:1] = [Dropout(0.2, mask_per_epoch=True), InputNoise(0.1)]
        layers[-1] = WeightNoise(layers[-1], 0.01)
    return NetClassEnergy(16, 2, nn.Sequential(*layers)).to(device)


def accuracy(energy: NetClassEnergy, data: dict[str, Tensor]) -> Tensor:
    return (energy.table("y", x=data["x"]).argmin(1) == data["y"]).double().mean()


def weight_size(energy: NetClassEnergy, batch: object, generator: object = None) -> Tensor:
    return 1e-4 * torch.stack([p.square().sum() for p in energy.parameters()]).sum()


def run(device: str, rule: Rule, noisy: bool = False, *callbacks: Callback) -> float:
    energy = network(device, noisy)
    solver = Stochastic(lr=0.01, batch_size=64, max_epochs=8, tol=None, schedule="warmup+cosine")
    fit(energy, rows(device), rule, solver, callbacks=callbacks, random_state=0, device=device)
    return float(accuracy(energy, rows(device)))


def main(device: str) -> None:
    for name in BALANCES:
        terms = {"data": SoftMin(), "size": weight_size}
        found = [run(d, LossTerms(terms, weights=name)) for d in ("cpu", device)]
        print(f"terms {name}: accuracy on the CPU {found[0]:.3f}, on {device} {found[1]:.3f}")
    critic, slow = nn.Linear(16, 1).to(device), nn.Linear(16, 1).to(device)

    def judge(energy: object, batch: dict[str, Tensor], generator: object = None) -> Tensor:
        return (critic(batch["x"])[:, 0] - batch["y"]).square().mean()

    players = Players(SoftMin(), {"critic": Player(judge, critic, 2)}, [Follow(slow, critic)])
    print(f"players: {run(device, players):.3f}")
    augment = Augment([Flip(), Shift(1, axes=1), Noise(0.1)], mixup=0.2)
    print(f"augmented, noisy: {run(device, Augmented(SoftMin(), augment), True):.3f}")
    held = rows(device)
    with tempfile.TemporaryDirectory() as folder:
        watching = [
            Metrics({"accuracy": accuracy}, held),
            EarlyStopping(held),
            BestCheckpoint(2, held),
            Plateau(0.5, 0),
            EMA(0.9),
            PathRecorder(4),
            HistoryTable(),
            Probe(2),
            Regret("final"),
            Checkpoint(folder, every_steps=5),
        ]
        print(f"all callbacks: {run(device, SoftMin(), True, *watching):.3f}")
    tasks = {k: v.view(32, 16, *v.shape[1:]) for k, v in rows(device).items()}
    history = fit(
        network(device), tasks, Nested(SoftMin(), 8, lr=0.1), Stochastic(max_epochs=5, tol=None)
    )
    print(f"nested: {history.objective[0]:.4f} to {history.objective[-1]:.4f}")
    curve = find_lr(network(device), rows(device), SoftMin(), random_state=0)
    print(f"learning rate: {curve.suggestion:.2g}, at most {curve.largest:.2g}")
    print(f"diagnosis: {diagnose(network(device), data=rows(device), rule=SoftMin(), lr=0.1)}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "cuda")

"""A transformer whose parts lie on two processes learns what it learns on one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from groundstate.compute.reduce import current, run_local
from groundstate.energy import SequenceEnergy
from groundstate.learn import Callback, NextToken, Stochastic, fit
from groundstate.learn.train.fsdp import local
from groundstate.nn import GPT


class Held(Callback):
    """Which part of the optimiser's moments this process holds."""

    def on_epoch(self, run: object) -> None:
        training = run.state.__self__  # type: ignore[attr-defined]
        held = sum(local(s["exp_avg"]).numel() for s in training.optimizer.state.values())
        self.share = held / sum(p.numel() for p in run.energy.parameters())  # type: ignore[attr-defined]


def learned(rank: int, tied: bool) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(1, 11, (40, 12), generator=generator)
    if current().world > 1:
        tokens = tokens[:23] if rank == 0 else tokens[23:]
    net = GPT(11, 12, 16, 2, 2, tied=tied, generator=torch.Generator().manual_seed(1)).double()
    energy, held = SequenceEnergy(net, 11, 12, bos=0), Held()
    solver = Stochastic("adamw", 3e-3, 16, 3, tol=None, clip_norm=1.0, shard="fsdp")
    history = fit(energy, {"y": tokens}, NextToken(12.0), solver, callbacks=[held], random_state=0)
    theta = torch.cat([p.detach().reshape(-1) for p in energy.parameters()])
    assert current().world == 1 or 0.35 < held.share < 0.65
    return [theta, torch.tensor(history.objective, dtype=torch.float64)]


def both(rank: int) -> list[list[Tensor]]:
    return [learned(rank, tied) for tied in (False, True)]


@pytest.mark.slow
def test_two_processes_equal_one() -> None:
    alone = both(0)
    for part in run_local(both, 2):
        for mine, whole in zip(part, alone, strict=True):
            for a, b in zip(mine, whole, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-9)

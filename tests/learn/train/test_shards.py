"""Two processes learn what one learns: weights, ragged parts, accumulation, penalties, decisions."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor, nn

from groundstate.compute.reduce import current, run_local
from groundstate.energy import LinearEnergy, NetClassEnergy
from groundstate.errors import Unsupported
from groundstate.learn import (
    EMA,
    L1,
    L2,
    Callback,
    Checkpoint,
    ElasticNet,
    Lp,
    Penalty,
    Rule,
    SoftMin,
    Stochastic,
    Terms,
    fit,
)
from groundstate.learn.train.fsdp import local

CUT = 37  # rows of the first process, of 101


def rows() -> tuple[dict[str, Tensor], Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(101, 4, generator=g, dtype=torch.float64)
    y = torch.randint(3, (101,), generator=g)
    return {"x": x, "y": y}, torch.rand(101, generator=g, dtype=torch.float64)


def part(values: Tensor) -> Tensor:
    reduce = current()
    if reduce.world == 1:
        return values
    return values[:CUT] if reduce.rank == 0 else values[CUT:]


class Scaled(Rule):
    """SoftMin times a learned factor: a rule with a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(
        self, energy: object, batch: object, *, generator: torch.Generator | None = None
    ) -> Terms:
        terms: Terms = SoftMin()(energy, batch, generator=generator)  # type: ignore[arg-type]
        loss = terms.loss * self.scale.exp() - self.scale
        return Terms(loss, lambda: (loss, loss))


class Local(Callback):
    """Wants to stop at an epoch that differs by process; process 0 decides."""

    def on_epoch(self, run: object) -> bool:
        return run.epoch >= (2 if current().rank == 0 else 4)  # type: ignore[attr-defined]


class Pieces:
    """A stream of its own on every process; the second has more batches."""

    def __init__(self) -> None:
        self.data = {k: part(v) for k, v in rows()[0].items()}

    def __iter__(self):
        n = len(self.data["y"])
        return ({k: v[i : i + 8] for k, v in self.data.items()} for i in range(0, n, 8))


def cases(rank: int) -> list[list[Tensor]]:
    data, weight = rows()
    mine = {k: part(v) for k, v in data.items()}
    out = []

    def learned(rule: Rule, penalty: Penalty | None = None, *, weighted: bool = False,
                callbacks: tuple[Callback, ...] = (), net: bool = False, **kw: object) -> None:  # fmt: skip
        generator = torch.Generator().manual_seed(0)
        e = NetClassEnergy(4, 3, (6,), generator=generator) if net else LinearEnergy(4, 3)
        solver = Stochastic(**{"lr": 0.05, "batch_size": 16, "max_epochs": 3, "tol": None, **kw})
        w = part(weight) if weighted else None
        history = fit(e.double(), mine, rule, solver, sample_weight=w, penalty=penalty,
                      callbacks=callbacks, random_state=0)  # fmt: skip
        theta = [p.detach().reshape(-1) for p in (*e.parameters(), *rule.parameters())]
        out.append([torch.cat(theta), torch.tensor(history.objective, dtype=torch.float64)])

    learned(SoftMin(), weighted=True)
    learned(SoftMin(), L2(3.0), net=True)
    learned(SoftMin(), L1(5.0), optimizer="sgd", weighted=True)
    learned(SoftMin(), L2(3.0), clip_norm=0.1, accumulate=3, weighted=True)
    learned(Scaled(), net=True)
    learned(SoftMin(), batch_size=2, max_epochs=1)  # batches of which a process has no row
    learned(SoftMin(), batch_size=None)
    learned(SoftMin(), max_epochs=9, callbacks=(Local(),))
    norm = nn.BatchNorm1d(4).double()
    e = NetClassEnergy(4, 3, nn.Sequential(norm, nn.Linear(4, 3).double()))
    with torch.no_grad():
        e.net[1].weight.fill_(0.1)
        e.net[1].bias.zero_()
    fit(e, mine, SoftMin(), Stochastic(batch_size=50, max_epochs=2, drop_last=True), random_state=0)
    e2 = LinearEnergy(4, 3).double()
    h = fit(e2, Pieces(), SoftMin(), Stochastic("sgd", lr=0.1, max_epochs=2, tol=None),
            random_state=0)  # fmt: skip
    out.append([norm.running_mean.clone(), e2.W.detach(), torch.tensor(len(h.objective))])
    try:
        fit(LinearEnergy(4, 3).double(), mine, SoftMin(), Stochastic(batch_size=1, max_epochs=1))
        refused = current().world == 1
    except ValueError as error:
        refused = "batch_size=1 is smaller than the 2 processes" in str(error)
    out.append([torch.tensor(refused)])
    return out


class Length(Penalty):
    """|θ|, which is no sum over entries."""

    def value(self, energy: nn.Module) -> Tensor:
        return torch.cat([p.reshape(-1) for p in energy.parameters()]).norm()


class First(Callback):
    """Gives back θ of the first epoch at the end, as early stopping may."""

    def on_epoch(self, run: object) -> None:
        if run.epoch == 1:  # type: ignore[attr-defined]
            self.kept = {k: v.clone() for k, v in run.energy.state_dict().items()}  # type: ignore[attr-defined]

    def on_end(self, run: object) -> None:
        run.energy.load_state_dict(self.kept)  # type: ignore[attr-defined]


class Moments(Callback):
    """How much of the optimiser's moments this process holds."""

    def on_epoch(self, run: object) -> None:
        training = run.state.__self__  # type: ignore[attr-defined]
        held = [local(s["exp_avg"]).numel() for s in training.optimizer.state.values()]
        self.share = sum(held) / sum(p.numel() for p in run.energy.parameters())  # type: ignore[attr-defined]


class Stop(Callback):
    def on_step(self, run: object) -> bool:
        return run.total_steps == 5  # type: ignore[attr-defined]


def spread(rank: int, folder: str) -> list[list[Tensor]]:
    """θ spread over the processes, and batch norms over all rows."""
    data, weight = rows()
    mine = {k: part(v) for k, v in data.items()}

    def learned(
        callbacks: tuple[Callback, ...] = (), penalty: Penalty | None = None, **kw: object
    ) -> list[Tensor]:
        e = NetClassEnergy(4, 3, (7, 5), generator=torch.Generator().manual_seed(0)).double()
        solver = Stochastic(**{"lr": 0.05, "batch_size": 16, "max_epochs": 3, "tol": None, **kw},
                            shard="fsdp")  # fmt: skip
        history = fit(e, mine, SoftMin(), solver, sample_weight=part(weight),
                      penalty=penalty or L2(2.0), callbacks=callbacks, random_state=0)  # fmt: skip
        theta = torch.cat([p.detach().reshape(-1) for p in e.parameters()])
        assert type(next(e.parameters())) is nn.Parameter
        return [theta, torch.tensor(history.objective, dtype=torch.float64)]

    out = [learned(), learned(average=0.5, optimizer="momentum")]
    learned((Stop(), Checkpoint(folder, every_steps=1)))
    out.append(learned((Checkpoint(folder),)))
    once = {"max_epochs": 1, "batch_size": 32}
    out.append(learned(penalty=L1(2.0), optimizer="sgd", **once))
    out.append(learned(penalty=L1(0.5) + L2(1.0), **once))
    out.append(learned(penalty=ElasticNet(1.0, 0.5), prox=False, **once))
    out.append(learned(penalty=Lp(1.0, 1.5), clip_norm=0.1, **once))
    out.append(learned(penalty=L2(3.0), clip_norm=0.1, accumulate=3, max_epochs=1))
    out.append(learned(max_epochs=1, batch_size=3))  # batches of which a process has no row
    mean, first = EMA(0.9, keep=False), First()
    out.append(learned((mean, first), max_epochs=2, batch_size=32))
    out.append([v.reshape(-1) for v in mean.values])
    moments = Moments()
    learned((moments,), **once)
    out.append([torch.tensor(0.3 < moments.share < 0.7 or current().world == 1)])
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3)).double()
    solver = Stochastic(lr=0.05, batch_size=16, max_epochs=3, drop_last=True, sync_norm=True)
    fit(NetClassEnergy(4, 3, net), mine, SoftMin(), solver, random_state=0)
    out.append([v.double().reshape(-1) for v in net.state_dict().values()])
    refused = []
    for e, penalty in ((LinearEnergy(4, 3), None), (NetClassEnergy(4, 3, (5,)), Length())):
        try:
            solver = Stochastic(shard="fsdp", max_epochs=1)
            fit(e.double(), mine, SoftMin(), solver, penalty=penalty)
            refused.append(current().world == 1)
        except Unsupported as error:
            refused.append(str(error).startswith("shard='fsdp'"))
    out.append([torch.tensor(refused)])
    return out


def everything(rank: int, folder: str) -> list[list[list[Tensor]]]:
    return [cases(rank), spread(rank, folder)]


def test_two_processes_equal_one(tmp_path: Path) -> None:
    """One start of the processes for all cases: starting them is what costs."""
    alone = everything(0, str(tmp_path / "alone"))
    first, second = run_local(everything, 2, str(tmp_path / "two"))
    compare(alone[0], first[0], second[0], local=(7, 8))
    (_, b, c) = (part[0][7] for part in (alone, first, second))
    assert len(b[1]) == len(c[1]) == 2 * math.ceil(101 / 16)  # process 0 decides when to stop
    (_, b, c) = (part[0][8] for part in (alone, first, second))
    assert torch.equal(b[0], c[0]) and torch.equal(b[1], c[1])  # statistics are those of process 0
    assert int(b[2]) == int(c[2]) == 2 * math.ceil((101 - CUT) / 8)  # the longer stream counts
    assert torch.equal(first[1][0][0], first[1][2][0])  # stopped and resumed
    compare(alone[1], first[1], second[1])


def compare(
    alone: list[list[Tensor]],
    first: list[list[Tensor]],
    second: list[list[Tensor]],
    local: tuple[int, ...] = (),
) -> None:
    for i, (a, b, c) in enumerate(zip(alone, first, second, strict=True)):
        if i in local:
            continue
        for whole, one, two in zip(a, b, c, strict=True):
            assert torch.equal(one, two), i
            torch.testing.assert_close(one, whole, rtol=1e-6, atol=1e-9)

"""Many small networks (10-32-32-3, batches of 32) trained as one program and one after another."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

SIZES, BATCH, ROWS, EPOCHS = (10, 32, 32, 3), 32, 1_024, 3


def data(members: int, seed: int) -> dict[str, Any]:
    import torch

    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(ROWS, SIZES[0], generator=generator)
    y = (x @ torch.randn(SIZES[0], SIZES[-1], generator=generator)).argmax(1)
    return {"x": x, "y": y, "members": members}


def _energies(data: dict[str, Any]) -> list[Any]:
    import torch

    from groundstate.energy import NetClassEnergy

    return [
        NetClassEnergy(
            SIZES[0], SIZES[-1], SIZES[1:-1], generator=torch.Generator().manual_seed(seed)
        )
        for seed in range(data["members"])
    ]


def _solver() -> Any:
    from groundstate.learn import Stochastic

    return Stochastic(lr=1e-3, batch_size=BATCH, max_epochs=EPOCHS, tol=None)


def _rows(data: dict[str, Any]) -> dict[str, Any]:
    return {"x": data["x"], "y": data["y"]}


def ours(data: dict[str, Any]) -> Any:
    from groundstate.learn import SoftMin, fit_population

    energies = _energies(data)
    fit_population(energies, _rows(data), SoftMin(), _solver(), random_state=0)
    return energies


def reference(data: dict[str, Any]) -> Any:
    from groundstate.learn import SoftMin, fit_population

    energies = _energies(data)
    solver = _solver()
    fit_population(energies, _rows(data), SoftMin(), solver, random_state=0, backend="reference")
    return energies


def one_after_another(data: dict[str, Any]) -> Any:
    from groundstate.learn import SoftMin, fit

    energies = _energies(data)
    for energy in energies:
        fit(energy, _rows(data), SoftMin(), _solver(), random_state=0)
    return energies


def torch_loops(data: dict[str, Any]) -> Any:
    """Bare loops with fused Adam on one order of the rows."""
    import torch
    from torch.nn.functional import cross_entropy

    energies = _energies(data)
    x, y = data["x"], data["y"]
    for energy in energies:
        optimizer = torch.optim.Adam(energy.net.parameters(), lr=1e-3, fused=True)
        generator = torch.Generator().manual_seed(0)
        for _ in range(EPOCHS):
            for rows in torch.randperm(ROWS, generator=generator).split(BATCH):
                optimizer.zero_grad(set_to_none=True)
                cross_entropy(energy.net(x[rows]), y[rows]).backward()
                optimizer.step()
    return energies


def score(data: dict[str, Any], energies: Any) -> float:
    import torch

    from groundstate.learn import SoftMin

    with torch.no_grad():
        losses = [SoftMin()(energy, _rows(data)).loss.mean() for energy in energies]
    return float(torch.stack(losses).mean())


POPULATION_SMALL = Benchmark(
    name="population-small",
    title="Networks 10-32-32-3 trained as one program, batches of 32",
    sizes={"16 members": 16, "64 members": 64, "256 members": 256},
    data=data,
    ours=ours,
    peers={
        "one after another": Peer(one_after_another),
        "torch loops": Peer(torch_loops),
        "vectorised by torch.func": Peer(reference),
    },
    score=score,
    score_name="mean training loss",
    target=8.0,
)

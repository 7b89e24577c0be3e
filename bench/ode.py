"""dopri5 for a batch of systems against torchdiffeq, at equal tolerances."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

TOLERANCE = {"rtol": 1e-6, "atol": 1e-8}


def prey(t: Any, y: Any) -> Any:
    """Lotka and Volterra."""
    import torch

    a, b = y[..., 0], y[..., 1]
    return torch.stack([a * (1 - b), b * (a - 1)], -1)


def pendulum(t: Any, y: Any) -> Any:
    import torch

    return torch.stack([y[..., 1], -torch.sin(y[..., 0])], -1)


FIELDS = {"prey": (prey, 0.3, 2.5), "pendulum": (pendulum, -2.0, 2.0)}


def data(size: tuple[str, int, int], seed: int) -> dict[str, Any]:
    import torch

    from groundstate import ode

    name, rows, times = size
    f, low, high = FIELDS[name]
    g = torch.Generator().manual_seed(seed)
    y0 = low + (high - low) * torch.rand(rows, 2, generator=g, dtype=torch.float64)
    t = torch.linspace(0, 10, times, dtype=torch.float64)
    exact = ode.integrate(f, y0, t, "dopri5", rtol=1e-11, atol=1e-13)
    return {"f": f, "y0": y0, "t": t, "exact": exact}


def ours(data: dict[str, Any]) -> Any:
    from groundstate import ode

    return ode.integrate(data["f"], data["y0"], data["t"], "dopri5", **TOLERANCE)


def one_clock(data: dict[str, Any]) -> Any:
    from groundstate import ode

    return ode.integrate(data["f"], data["y0"], data["t"], "dopri5", rows=False, **TOLERANCE)


def torchdiffeq(data: dict[str, Any]) -> Any:
    from torchdiffeq import odeint

    return odeint(data["f"], data["y0"], data["t"], method="dopri5", **TOLERANCE)


DOPRI5 = Benchmark(
    name="dopri5",
    title="ode.integrate(..., 'dopri5') for a batch of systems, each with its own steps",
    sizes={
        "prey, 1000 rows": ("prey", 1_000, 2),
        "prey, 10000 rows": ("prey", 10_000, 2),
        "pendulum, 10000 rows": ("pendulum", 10_000, 2),
        "pendulum, 10000 rows at 50 times": ("pendulum", 10_000, 50),
    },
    data=data,
    ours={"groundstate": ours, "groundstate, one clock": one_clock},
    peers={"torchdiffeq": Peer(torchdiffeq, "torchdiffeq")},
    score=lambda data, y: float((y - data["exact"]).abs().max()),
    score_name="largest error",
    target=1.0,
)

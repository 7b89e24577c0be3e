"""dopri5 for a batch of systems and a training step of a neural ODE, against torchdiffeq at equal
tolerances."""

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


def spirals(size: int, seed: int) -> dict[str, Any]:
    """A field of two layers, starts, and where a spiral carries them."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(2, 50), nn.Tanh(), nn.Linear(50, 2)).double()
    y0 = 4 * torch.rand(size, 2, dtype=torch.float64) - 2
    t = torch.linspace(0, 1, 10, dtype=torch.float64)
    turn = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]], dtype=torch.float64)
    aims = torch.stack([y0 @ torch.matrix_exp(s * turn) for s in t])
    return {"net": net, "f": lambda t, y: net(y), "y0": y0, "t": t, "aims": aims}


def _gradient(data: dict[str, Any], states: Any) -> Any:
    """The mean squared error, and its gradient in the weights of the field."""
    import torch

    loss = (states - data["aims"]).square().mean()
    gradients = torch.autograd.grad(loss, list(data["net"].parameters()))
    return float(loss.detach()), torch.cat([g.flatten() for g in gradients])


def step(data: dict[str, Any]) -> Any:
    from groundstate import ode

    how: Any = {"rows": False, **TOLERANCE}
    return _gradient(data, ode.integrate(data["f"], data["y0"], data["t"], "dopri5", **how))


def adjoint_step(data: dict[str, Any]) -> Any:
    from groundstate import ode

    weights = list(data["net"].parameters())
    how: Any = {"rows": False, "gradient": "adjoint", "params": weights, **TOLERANCE}
    return _gradient(data, ode.integrate(data["f"], data["y0"], data["t"], "dopri5", **how))


def step_torchdiffeq(data: dict[str, Any]) -> Any:
    return _gradient(data, torchdiffeq(data))


def adjoint_torchdiffeq(data: dict[str, Any]) -> Any:
    from torchdiffeq import odeint_adjoint

    weights = tuple(data["net"].parameters())
    states = odeint_adjoint(data["f"], data["y0"], data["t"], method="dopri5",
                            adjoint_params=weights, **TOLERANCE)  # fmt: skip
    return _gradient(data, states)


def _off(data: dict[str, Any], found: Any) -> float:
    """Relative distance to the gradient at tolerances of 1e-11."""
    from groundstate import ode

    y = ode.integrate(data["f"], data["y0"], data["t"], "dopri5", rtol=1e-11, atol=1e-13)
    exact = _gradient(data, y)[1]
    return float((found[1] - exact).norm() / exact.norm())


NEURAL_ODE = Benchmark(
    name="neural-ode",
    title="training step of a neural ODE: ten states on the way, gradient in the weights",
    sizes={"100 rows": 100, "1000 rows": 1_000, "5000 rows": 5_000},
    data=spirals,
    ours={"groundstate": step, "groundstate, adjoint": adjoint_step},
    peers={
        "torchdiffeq": Peer(step_torchdiffeq, "torchdiffeq"),
        "torchdiffeq, adjoint": Peer(adjoint_torchdiffeq, "torchdiffeq"),
    },
    score=_off,
    score_name="relative error of the gradient",
    target=1.0,
)

r"""A slope field that carries a state through observed times, :math:`\dot y = f_\theta(t, y)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.math.ode import integrate


class StateField(nn.Module):
    """A field that does not know the time, f(y), as f(t, y)."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        out: Tensor = self.net(y)
        return out


class TimeField(nn.Module):
    """A network of time and state together, f([t, y]), as f(t, y)."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        time = torch.as_tensor(t).to(y).expand(*y.shape[:-1], 1)
        out: Tensor = self.net(torch.cat([time, y], -1))
        return out


@registered(
    r"e(x, y) = \tfrac12\sum_k\|\varphi_{t_k}(y_0) - y_k\|^2",
    lambda: FlowEnergy(StateField(nn.Linear(2, 2)), 2, 1, method="euler"),
)
class FlowEnergy(Energy):
    r"""Windows of a trajectory: :math:`e(x, y) = \tfrac12\sum_{k=1}^w\|\varphi_{t_k}(y_0) - y_k\|^2`, where
    :math:`\varphi` follows :math:`\dot y = f_\theta(t, y)` from the first state.

    A row x is :math:`(t_0, \dots, t_w, y_0)`, y the states :math:`y_1, \dots, y_w` one after the other; NaN
    in y was not observed.

    Parameters
    ----------
    field : f of a time ``(B, 1)`` and states ``(B, d)``
    d : size of a state
    window : w
    method, steps, rtol, atol, adjoint : of the solver, as in ``groundstate.ode.integrate``

    Examples
    --------
    >>> e = FlowEnergy(StateField(nn.Identity()), 1, 1, method="euler")  # y' = y
    >>> e(x=torch.tensor([[0.0, 0.5, 1.0]]), y=torch.tensor([[1.5]])).tolist()
    [0.0]
    """

    bounded_below = True
    missing = frozenset({"y"})

    held = frozenset({"x"})  # times and first states are data

    def __init__(
        self, field: nn.Module, d: int, window: int, method: str = "dopri5", steps: int = 1,
        rtol: float = 1e-6, atol: float = 1e-8, adjoint: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(x=Real(window + 1 + d), y=Real(window * d))
        self.field, self.d, self.window = field, d, window
        self.method, self.steps, self.rtol, self.atol = method, steps, rtol, atol
        self.adjoint = adjoint

    def config(self) -> dict[str, Any]:
        return {"field": self.field, "d": self.d, "window": self.window, "method": self.method,
                "steps": self.steps, "rtol": self.rtol, "atol": self.atol, "adjoint": self.adjoint}  # fmt: skip

    def follow(self, t: Tensor, y0: Tensor) -> Tensor:
        """States ``(B, w, d)`` at the times t ``(B, 1 + w)`` of every row."""
        y, out = y0, []
        unit = torch.tensor([0.0, 1.0], dtype=y0.dtype, device=y0.device)
        kind: dict[str, Any] = {"gradient": "adjoint" if self.adjoint else "backprop"}
        if self.method in ("dopri5", "radau"):
            kind |= {"rtol": self.rtol, "atol": self.atol, "rows": True}
        else:
            kind["steps"] = self.steps
        theta = tuple(p for p in self.field.parameters() if p.requires_grad)
        for start, end in zip(t.unbind(1)[:-1], t.unbind(1)[1:]):
            # every row has its own times: each goes from 0 to 1 on a clock of its own
            first, width = start[:, None], (end - start)[:, None]
            moved = integrate(
                self._on_clock(first, width), y, unit, self.method, params=theta, **kind
            )
            y = moved[-1]
            out.append(y)
        return torch.stack(out, 1)

    def _on_clock(self, start: Tensor, width: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda s, y: width * self.field(start + s * width, y)

    @offers.argmin("y")
    def best(self, x: Tensor) -> Tensor:
        t, y0 = x[:, : self.window + 1], x[:, self.window + 1 :]
        return self.follow(t, y0).flatten(1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        seen = ~torch.isnan(y)
        gap = torch.where(seen, self.best(x) - torch.where(seen, y, 0.0), 0.0)
        return 0.5 * gap.square().sum(1)

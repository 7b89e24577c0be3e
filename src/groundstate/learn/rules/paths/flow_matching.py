r"""Learn a velocity by regression on paths from noise to data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.networks.normalizing_flow import NormalizingFlowEnergy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.registry import rules

COUPLINGS, PATHS, TIMES = ("independent", "ot"), ("linear", "vp"), ("uniform", "logit_normal")


@rules.register(
    formula=r"L = \|v_\theta(t, x_t) - \dot x_t\|^2,\ x_t = (1-t)x_0 + tx,\ x_0\sim N(0, I)",
    make=lambda energy: VelocityMatching(),
)
class VelocityMatching(Rule):
    r""":math:`L = \|v_\theta(t, x_t) - \dot x_t\|^2` with :math:`x_t = a_tx_0 + b_tx` and
    :math:`x_0\sim N(0, I)`. Lowers the energy of the data by carrying noise there, and raises it where the
    noise is carried away from: flow matching.

    "linear" paths have :math:`a = 1 - t, b = t`, so that the target is :math:`x - x_0`; "vp" ones keep the
    variance, :math:`a = \cos(\tfrac\pi2t), b = \sin(\tfrac\pi2t)`. The minimum over all fields is the mean
    of :math:`\dot x_t` given :math:`x_t`, whose flow carries noise to data.

    Parameters
    ----------
    coupling : "independent", or "ot": noise and rows of a batch are paired so that the squared distances
        are least, which straightens paths
    path : "linear" or "vp"
    time : "uniform", or "logit_normal": :math:`t = \mathrm{sigmoid}(u),\ u\sim N(0, 1)`, more in the middle
    label_dropout : share of the rows whose y is made unknown (zeros), as guidance needs

    Examples
    --------
    >>> energy = NormalizingFlowEnergy(1, "cnf")  # its field starts at zero
    >>> noise = torch.Generator().manual_seed(0)
    >>> rule = VelocityMatching()
    >>> loss = rule(energy, {"x": torch.full((4000, 1), 2.0)}, generator=noise).loss
    >>> round(loss.mean().item(), 1)  # E (2 - x0)^2
    5.0
    """

    over = "x"

    def __init__(
        self,
        coupling: str = "independent",
        path: str = "linear",
        time: str = "uniform",
        *,
        label_dropout: float = 0.1,
    ) -> None:
        super().__init__()
        for name, value, known in (
            ("coupling", coupling, COUPLINGS), ("path", path, PATHS), ("time", time, TIMES),
        ):  # fmt: skip
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
        if not 0 <= label_dropout < 1:
            raise ValueError(f"label_dropout must be in [0, 1), got {label_dropout}")
        self.coupling, self.path, self.time = coupling, path, time
        self.label_dropout = label_dropout

    @property
    def recordable(self) -> bool:
        """Whether nothing is read back: the best pairs of a batch are found by the host."""
        return self.coupling != "ot"

    def is_exact(self, energy: Energy, batch: Batch) -> bool:
        return False

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        if not isinstance(energy, NormalizingFlowEnergy) or energy.velocity is None:
            return "it has no velocity; use a NormalizingFlowEnergy of the flow 'cnf'"
        absent = [name for name in energy.spaces if name not in batch]
        return f"the batch holds no {absent[0]!r}" if absent else None

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        self.require(energy, batch)
        x, y = batch["x"], batch.get("y")
        x0 = batch.get("noise")  # pairs that belong together, as a flow of its own makes them
        if x0 is None:
            x0 = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
            if self.coupling == "ot":
                x0 = x0[best_pairs(x0, x)]
        t = self._times(x, generator)
        a, b, da, db = coefficients(self.path, t)
        at, target = a * x0 + b * x, da * x0 + db * x
        if y is not None and self.label_dropout and self.training:
            kept = torch.rand(len(x), 1, generator=generator, device=x.device) >= self.label_dropout
            y = y * kept.to(y.dtype)
        given = () if y is None else (y,)
        v: Tensor = energy.velocity(t, at, *given)  # type: ignore[operator]
        loss = (v - target).square().sum(1)

        def parts() -> tuple[Tensor, Tensor]:
            contrast = 2 * (v * target).sum(1)
            return loss + contrast, contrast

        return Terms(loss, parts, exact=False)

    def _times(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        size = (len(x), 1)
        if self.time == "logit_normal":
            return torch.randn(size, generator=generator, device=x.device, dtype=x.dtype).sigmoid()
        # one draw, then even spaces in a random order: the mean over t has less variance
        first = torch.rand((), generator=generator, device=x.device, dtype=x.dtype)
        even = (torch.arange(len(x), device=x.device, dtype=x.dtype) / len(x) + first) % 1
        order = torch.randperm(len(x), generator=generator, device=x.device)
        return even[order][:, None]


def coefficients(path: str, t: Tensor) -> tuple[Any, Any, Any, Any]:
    """a, b of :math:`x_t = ax_0 + bx_1` and their derivatives in t.

    >>> coefficients("linear", torch.tensor(0.25))
    (tensor(0.7500), tensor(0.2500), -1.0, 1.0)
    """
    if path == "linear":
        return 1 - t, t, -1.0, 1.0
    angle = 0.5 * math.pi * t
    cos, sin = angle.cos(), angle.sin()
    return cos, sin, -0.5 * math.pi * sin, 0.5 * math.pi * cos


@torch.no_grad()
def best_pairs(x0: Tensor, x1: Tensor) -> Tensor:
    """For every row of ``x1`` the row of ``x0`` it is paired with, at the least sum of squared distances.

    >>> best_pairs(torch.tensor([[0.0], [5.0]]), torch.tensor([[6.0], [1.0]])).tolist()
    [1, 0]
    """
    cost = torch.cdist(x1, x0).square()
    _, columns = linear_sum_assignment(np.asarray(cost.cpu(), dtype=np.float64))
    return torch.from_numpy(columns).to(x0.device)

"""Ordinary differential equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from tests.contracts.math_rows.base import Row
from torch import Tensor

from groundstate import ode


def spiral(t: Any, y: Any) -> Any:
    parts = [y[..., 1] - 0.3 * y[..., 0], -(y[..., 0] ** 3)]
    return torch.stack(parts, -1) if isinstance(y, Tensor) else np.stack(parts, -1)


def solved(method: str, **options: Any) -> Row:
    return Row(
        f"ode.integrate:{method}",
        lambda y0: ode.integrate(spiral, y0, np.linspace(0, 1, 3), method, **options)[-1],
        lambda rng: (rng.normal(size=2),),
        ("y0",),
        exact=False,  # the powers of NumPy and torch differ in the last bit
    )


ROWS = [
    *(solved(method, steps=4) for method in ode.FIXED),
    solved("dopri5"),
    Row(
        "ode.linear",
        lambda A, c: ode.linear(A, c, 0.7),
        lambda rng: (rng.normal(size=(3, 3)), rng.normal(size=3)),
        ("A", "c"),
    ),
]

r"""What an energy says of its free variables: best values, draws or the free energy.

Rows of x may be known in part: the unknown cells are free, :math:`\min_{x_u} e(x_u, x_k, y)`, and
the known ones :math:`x_k` come back as they were given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.energy import Energy
from groundstate.errors import Unsupported
from groundstate.infer import marginalise, minimise
from groundstate.infer import sample as draw

MODES = ("min", "marginal", "sample")


def open_cells(rows: Any) -> tuple[NDArray[Any], Tensor]:
    """Rows with zeros for NaN, and where those were."""
    try:
        x = np.asarray(rows, np.float64)
    except (TypeError, ValueError):
        raise Unsupported(
            "only arrays of numbers have cells that can be open (NaN); leave x out of free or out of "
            f"observed, got {type(rows).__name__}"
        ) from None
    absent = np.isnan(x)
    return np.where(absent, 0.0, x), torch.from_numpy(absent)


def answers(
    energy: Energy,
    names: tuple[str, ...],
    values: Mapping[str, Tensor],
    unknown: Tensor | None,
    mode: str,
    *,
    n: int,
    T: float,
    generator: torch.Generator,
) -> Any:
    """Free energies ``(B,)``, or for each free variable best values or draws.

    Parameters
    ----------
    unknown : where x is free, when it is also among the values; None when it is not
    """
    if mode not in MODES:
        raise ValueError(f"mode must be 'min', 'marginal' or 'sample', got {mode!r}")
    free: Any = names
    if unknown is not None:
        unknown = unknown.to(values["x"].device)
        whole = not bool(unknown.any())  # then no cell of x is left to infer
        rest = tuple(name for name in names if name != "x")
        free = rest if whole else {name: unknown if name == "x" else None for name in names}
    if mode == "marginal":
        return marginalise(energy, free, values, T=T).value if free else energy(**values)
    found: dict[str, Tensor] = {}
    if free and mode == "sample":
        found = dict(draw(energy, free, values, n=n, T=T, generator=generator).values)
    elif free:
        found = dict(minimise(energy, free, values, generator=generator).values)
    if unknown is not None:
        x = values["x"].expand(n, *values["x"].shape) if mode == "sample" else values["x"]
        found["x"] = torch.where(unknown, found["x"], x) if "x" in found else x
    return found

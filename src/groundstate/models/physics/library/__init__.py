"""Nine known problems with reference solutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from groundstate.models.physics.library import equations, references

if TYPE_CHECKING:
    from groundstate.models.physics.problem import Problem

PROBLEMS: dict[str, Callable[..., Problem]] = {
    name: getattr(equations, name)
    for name in (
        "burgers", "poisson2d", "heat", "wave", "allen_cahn", "helmholtz", "harmonic", "logistic",
        "lotka_volterra",
    )
}  # fmt: skip
REFERENCES: dict[str, Callable[[Any, NDArray[np.float64]], NDArray[np.float64]]] = {
    name: getattr(references, name) for name in PROBLEMS
}

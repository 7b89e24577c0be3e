r"""The way that inference takes: :math:`v_{t+1} = P(v_t - tH\nabla_v e)`, step by step.

What ``infer`` returns is where such a descent ends; here every step is kept, for a picture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.spaces import Real
from groundstate.errors import ShapeError, Unsupported
from groundstate.infer import Gradient, minimise
from groundstate.models.arrays import Home


@dataclass(frozen=True)
class InferencePath:
    """Steps of a descent, from its start to where it ends.

    Attributes
    ----------
    x : (n_steps + 1, n_features) array
    y : (n_steps + 1,) array, or None where y was not free
    energy : (n_steps + 1,) array, ``model.energy`` of each step
    converged : bool
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64] | None
    energy: NDArray[np.float64]
    converged: bool

    def __len__(self) -> int:
        return len(self.energy)

    def __repr__(self) -> str:
        first, last = self.energy[0], self.energy[-1]
        return f"InferencePath({len(self) - 1} steps, energy {first:.4g} to {last:.4g})"


class _OfRows(Energy):
    """An energy of x alone, given by a function of rows."""

    def __init__(self, d: int, of: Callable[[Tensor], Tensor], net: Energy) -> None:
        super().__init__(x=Real(d))
        self.of, self.net = of, net

    def forward(self, x: Tensor) -> Tensor:
        return self.of(x)


def inference_path(
    model: Any,
    x: Any,
    columns: Sequence[int],
    *,
    y: Any = None,
    free_y: bool = False,
    steps: str = "newton",
    lr: float = 0.05,
    max_iter: int = 100,
) -> InferencePath:
    r"""Descend :math:`e(x, y)` over some columns of a row (and y), and keep the way.

    Parameters
    ----------
    model : fitted estimator of a table
    x : one row, where the descent starts
    columns : which of its columns are free, the others stay
    y : label or value; marginalised where it is None; the start where it is free
    free_y : whether a real y is free too
    steps : "newton" (few long ones, by L-BFGS) or "adam" (many short ones, which show the way)
    lr : length of a short step, in the units of the columns
    max_iter : most steps

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import GaussianMixture
    >>> X = np.random.default_rng(0).normal(2.0, 1.0, (200, 2))
    >>> way = inference_path(GaussianMixture().fit(X), [5.0, 5.0], [0, 1])
    >>> bool(np.allclose(way.x[-1], X.mean(0), atol=1e-3)), bool(way.energy[-1] < way.energy[0])
    (True, True)
    """
    check_is_fitted(model, "energy_")
    row = np.asarray(x, np.float64).reshape(1, -1)
    if not columns and not free_y:
        raise ShapeError("nothing is free: name columns, or y")
    for j in columns:
        if not 0 <= j < row.shape[1]:
            raise ShapeError(f"column {j} is none of the {row.shape[1]} of the row")
    energy, given, init = _question(model, row, y, free_y)
    free: dict[str, Any] = {}
    if columns:
        mask = torch.zeros_like(given["x"], dtype=torch.bool)
        mask[:, list(columns)] = True
        free["x"], init["x"] = mask, given["x"]
    if free_y:
        free["y"] = None
    found = minimise(energy, free, given, method=_method(steps, lr, max_iter), init=init)
    assert found.path is not None
    n = len(next(iter(found.path.values())))
    rows = found.path["x"][:, 0] if "x" in found.path else given["x"].expand(n, -1)
    values = found.path["y"][:, 0].reshape(n) if free_y else None
    whole = {k: v.expand(n, *v.shape[1:]) for k, v in given.items()} | {"x": rows}
    if values is not None:
        whole["y"] = values.reshape(n, *energy.spaces["y"].shape)
    home = Home()
    if isinstance(energy, _OfRows):  # the density of rows differs from the energy by a constant
        e = model.energy(home.give(rows).reshape(n, *model.event_shape_), _repeated(y, n))
    else:
        with torch.no_grad():
            e = home.give(energy(**whole))
    return InferencePath(
        np.asarray(home.give(rows), np.float64),
        None if values is None else np.asarray(home.give(values), np.float64),
        np.asarray(e, np.float64),
        bool(found.converged[0]),
    )


def _question(
    model: Any, row: NDArray[np.float64], y: Any, free_y: bool
) -> tuple[Energy, dict[str, Tensor], dict[str, Tensor]]:
    """The energy, what is given and where to start, all on the device of θ."""
    device, dtype = model.energy_.placement()
    if hasattr(model, "log_prob"):  # a generator, whose density is that of rows as they are
        label = None if y is None else np.asarray([y])

        def of(x: Tensor) -> Tensor:
            log_p: Tensor = model.log_prob(x.reshape(len(x), *model.event_shape_), label)
            return -log_p

        rows = torch.from_numpy(row).to(device, dtype)
        return _OfRows(row.shape[1], of, model.energy_), {"x": rows}, {}
    rows, _ = model._rows(row)
    if rows.shape != row.shape:
        raise Unsupported(f"{type(model).__name__} codes its columns, so no way over them is shown")
    observed = model._observed({"y": None if y is None else np.asarray([y])})
    known = ("x", "y") if free_y or observed else ("x",)
    if free_y and not ("y" in model.energy_.spaces and model.energy_.spaces["y"].is_real):
        raise Unsupported(f"{type(model).__name__} has no real y that could be free")
    hidden = [name for name in model.energy_.spaces if name not in known]
    energy = model.energy_.marginal(*hidden) if hidden else model.energy_
    if free_y:
        return energy, {"x": rows}, observed
    return energy, {"x": rows, **observed}, {}


def _repeated(y: Any, n: int) -> Any:
    return None if y is None else np.repeat(np.asarray([y]), n)


def _method(steps: str, lr: float, max_iter: int) -> Gradient:
    if steps == "newton":
        return Gradient(max_iter=max_iter, path=True)
    if steps == "adam":
        return Gradient(
            max_iter=max_iter, path=True, optimizer=lambda free: torch.optim.Adam(free, lr=lr)
        )
    raise ValueError(f"steps must be 'newton' or 'adam', got {steps!r}")

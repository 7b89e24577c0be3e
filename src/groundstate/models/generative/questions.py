r"""Questions to a generator: any variable given the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from sklearn.utils.validation import check_is_fitted

from groundstate.compute.random import Key
from groundstate.compute.thread_policy import answering
from groundstate.models.base import EnergyEstimator
from groundstate.models.generative.completion import inferred_x


def infer(
    self: Any,
    observed: Mapping[str, Any],
    free: str | tuple[str, ...],
    mode: Literal["min", "marginal", "sample"] = "min",
    *,
    n: int = 1,
    T: float = 1.0,
    random_state: Any = None,
) -> Any:
    """Fix what is observed and minimise, marginalise or sample the rest.

    Parameters
    ----------
    observed : ``"x"`` rows, with NaN for the cells that are free; ``"y"`` labels or values;
        ``"z"`` codes
    free : "x", "y" or "z"
    mode : ``"min"`` (best values), ``"marginal"`` (free energy) or ``"sample"``
    n : draws, for ``mode="sample"``
    T : temperature

    Returns
    -------
    best values ``(B, ...)``, free energies ``(B,)`` or draws ``(n, B, ...)``
    """
    check_is_fitted(self, "energy_")
    names = (free,) if isinstance(free, str) else tuple(free)
    rows = observed.get("x")
    answered = mode == "sample" or (mode == "min" and rows is not None)
    if names == ("x",) and answered and observed.get("z") is None:
        return inferred_x(self, observed, mode, n, T, random_state)
    if names == ("y",) and self.condition_ is not None and rows is not None:
        return inferred_y(self, rows, mode, n, T, random_state)
    return EnergyEstimator.infer(self, observed, free, mode, n=n, T=T, random_state=random_state)


def inferred_y(self: Any, X: Any, mode: str, n: int, T: float, random_state: Any) -> Any:
    r""":math:`p(y \mid x_k) \propto p(y)\,p(x_k \mid y)` over what y was in training, of the known cells."""
    raw, home = self._raw(X, allow_nan=True)
    absent = torch.isnan(raw)
    seen = self.condition_
    assert seen is not None
    if mode == "marginal" or not bool(absent.any()):
        x, home = self._rows(X)
        contexts, logs = seen.all_contexts(x)
        with answering(self.energy_, x):
            each = [self._density(x, c.expand(len(x), -1)) for c in contexts]
        joint = logs + torch.stack(each, 1)  # (B, m)
    else:
        unknown = self.coding_.spread(absent)
        x = self.coding_.encode(torch.where(absent, 0.0, raw)).masked_fill(unknown, 0.0)
        contexts, logs = seen.all_contexts(x)
        generator = Key.of(random_state).fold("known").torch(x.device)
        joint = logs + self._log_known_by_y(x, unknown, contexts, generator)
    if mode == "marginal":
        return home.give(-T * torch.logsumexp(joint / T, 1))
    values = seen.classes
    if values is None:
        values = seen.contexts * seen.scale + seen.mean
        values = values[:, 0] if seen.flat else values
    if mode == "min":
        return home.give(values[joint.argmax(1).cpu().numpy()])
    generator = Key.of(random_state).torch(x.device)
    at = torch.multinomial((joint / T).softmax(1), n, True, generator=generator).T
    return home.give(values[at.cpu().numpy()])

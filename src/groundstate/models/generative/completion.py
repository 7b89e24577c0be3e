r"""Missing cells of a row, :math:`x_u \sim p(x_u \mid x_k)`: what is known stays, the rest is filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.models.generative.shapes import as_given

How = Literal["mean", "minimise", "sample"]
DRAWS = 100  # for a mean that is not known in closed form


def impute(
    self: Any,
    X: Any,
    how: How = "mean",
    n_draws: int = 1,
    *,
    y: Any = None,
    random_state: Any = None,
) -> Any:
    r"""Fill in NaN; what is known stays as it is, in the shape of X.

    A method of models with ``coding_`` and ``condition_`` that write ``_raw(X, allow_nan)``,
    ``_contexts(y, n)``, ``_blocks(x, ...)``, ``_fill(x, unknown, y, how, generator)``,
    ``_fill_mean(x, unknown, y, generator)``, ``_log_known_by_y(x, unknown, contexts, generator)`` and
    ``_takes_no_label``, see ``GenerativeEstimator``. Of a model that was fitted with y, y that is not given is
    unknown as well, :math:`p(y \mid x_k) \propto p(y)\,p(x_k \mid y)`.

    Parameters
    ----------
    X : rows with NaN where a value is missing
    how : the conditional "mean" (of categories the most frequent), the most probable values
        ("minimise"), or a random completion ("sample")
    n_draws : completions, for ``how="sample"``; more than one come stacked, ``(n_draws, n, ...)``
    y : labels or values the rows are conditioned on
    random_state : the seed
    """
    if how not in ("mean", "minimise", "sample"):
        raise ValueError(f"how must be 'mean', 'minimise' or 'sample', got {how!r}")
    if n_draws < 1:
        raise ValueError(f"n_draws must be at least 1, got {n_draws}")
    raw, home = self._raw(X, allow_nan=True)
    absent = torch.isnan(raw)
    contexts, key = self._contexts(y, len(raw)), Key.of(random_state)
    if contexts is None and self.condition_ is not None and self._takes_no_label:
        contexts = raw.new_zeros(len(raw), self.condition_.size)
    draws = []
    for d in range(n_draws if how == "sample" else 1):
        own = key.fold("draw", d)
        parts = [
            _completed(self, rows, gone, c, how, own.fold("block", i).torch(raw.device))
            for i, (rows, gone, c) in enumerate(self._blocks(raw, absent, contexts))
        ]
        draws.append(as_given(torch.cat(parts), self, X, home, absent))
    return draws[0] if len(draws) == 1 else _stacked(draws)


def _completed(
    model: Any, raw: Tensor, absent: Tensor, y: Tensor | None, how: str, generator: torch.Generator
) -> Tensor:
    """Rows of the table with their absent cells filled in."""
    open_rows = absent.any(1)
    if not bool(open_rows.any()):
        return raw
    own = None if y is None else y[open_rows]
    gone = absent[open_rows]
    kept = torch.where(gone, torch.zeros_like(raw[open_rows]), raw[open_rows])
    x, unknown = model.coding_.encode(kept), model.coding_.spread(gone)
    x = torch.where(unknown, torch.zeros_like(x), x)
    found = None
    if own is None and model.condition_ is not None:
        contexts, log_p = _values_of_y(model, x, unknown, generator)
        if how == "mean":
            if model.condition_.classes is not None and not bool((model.coding_.levels > 0).any()):
                found = _mean_over_y(model, x, unknown, contexts, log_p, generator)
            if found is None:
                at = torch.multinomial(log_p.exp(), DRAWS, True, generator=generator)
                own = contexts[at.flatten()]
        elif how == "minimise":
            own = contexts[log_p.argmax(1)]
        else:
            own = contexts[torch.multinomial(log_p.exp(), 1, generator=generator)[:, 0]]
    elif how == "mean":
        found = model._fill_mean(x, unknown, own, generator)
        own = own if own is None or found is not None else own.repeat_interleave(DRAWS, 0)
    if found is not None:
        values = model.coding_.decode(found)
    elif how == "mean":
        values = _mean_of_draws(model, x, unknown, own, generator)
    else:
        values = model.coding_.decode(model._fill(x, unknown, own, how, generator))
    out = raw.clone()
    out[open_rows] = torch.where(gone, values.to(raw.dtype), raw[open_rows])
    return out


def _values_of_y(
    model: Any, x: Tensor, unknown: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """What y was in training, ``(m, q)``, and the log probability of each given the known cells, ``(B, m)``."""
    contexts, prior = model.condition_.all_contexts(x)
    joint = prior + model._log_known_by_y(x, unknown, contexts, generator)
    possible = joint.isfinite().any(1, keepdim=True)  # of cells that no y explains nothing follows
    return contexts, torch.where(possible, joint, prior).log_softmax(1)


def _mean_over_y(
    model: Any,
    x: Tensor,
    unknown: Tensor,
    contexts: Tensor,
    log_p: Tensor,
    generator: torch.Generator,
) -> Tensor | None:
    """The means given each class, weighted; None where they have no closed form."""
    total = torch.zeros_like(x)
    for context, share in zip(contexts, log_p.exp().T, strict=True):
        mean = model._fill_mean(x, unknown, context.expand(len(x), -1), generator)
        if mean is None:
            return None
        total += share[:, None] * mean
    return total


def _mean_of_draws(
    model: Any, x: Tensor, unknown: Tensor, y: Tensor | None, generator: torch.Generator
) -> Tensor:
    """Means, of categories the most frequent, of draws of every row; y ``(B * DRAWS, q)``."""
    many = [v.repeat_interleave(DRAWS, 0) for v in (x, unknown)]
    drawn = model.coding_.decode(model._fill(many[0], many[1], y, "sample", generator))
    each = drawn.reshape(len(x), DRAWS, -1)
    category = torch.from_numpy(model.coding_.levels > 0).to(x.device)
    mean = each.mean(1)
    return torch.where(category, each.mode(1).values, mean) if category.any() else mean


def inferred_x(
    model: Any, observed: Mapping[str, Any], mode: str, n: int, T: float, random_state: Any
) -> Any:
    """Free cells of rows, or new rows where none are given: the best, or n draws ``(n, B, ...)``."""
    y, rows = observed.get("y"), observed.get("x")
    if rows is not None:
        how: How = "minimise" if mode == "min" else "sample"
        found = model.impute(rows, how, n, y=y, random_state=random_state)
        return found if mode == "min" or n > 1 else _stacked([found])
    m = 1 if y is None else len(np.atleast_1d(np.asarray(y)))
    many = None if y is None else np.repeat(np.asarray(y), n, axis=0)
    drawn = model.sample(n * m, many, T=T, random_state=random_state)
    return drawn.reshape(m, n, *model.event_shape_).swapaxes(0, 1)


def _stacked(draws: list[Any]) -> Any:
    """Completions of equal shape one behind the other, ``(n, ...)``."""
    if isinstance(draws[0], Tensor):
        return torch.stack(draws)
    return np.stack([np.asarray(d) for d in draws])

r"""Questions to a generator: missing cells, and any variable given the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.thread_policy import answering
from groundstate.models.base import EnergyEstimator
from groundstate.models.generative.shapes import as_given

How = Literal["mean", "minimise", "sample"]
DRAWS = 100  # for a mean that is not known in closed form


class Questions(EnergyEstimator):
    """What is asked of a fitted generator beside draws and densities."""

    coding_: Any
    condition_: Any
    event_shape_: tuple[int, ...]
    sample: Any
    _raw: Any
    _contexts: Any
    _blocks: Any
    _density: Any
    _fill: Any
    _fill_mean: Any

    # --- missing cells -------------------------------------------------------------------

    def impute(
        self,
        X: Any,
        how: How = "mean",
        n_draws: int = 1,
        *,
        y: Any = None,
        random_state: Any = None,
    ) -> Any:
        """Fill in NaN; what is known stays as it is, in the shape of X.

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
        if contexts is None and self.condition_ is not None:
            drawn = self.condition_.draw(len(raw), key.fold("y"))
            contexts = torch.from_numpy(drawn).to(raw)
        draws = []
        for d in range(n_draws if how == "sample" else 1):
            own = key.fold("draw", d)
            parts = [
                self._completed(rows, gone, c, how, own.fold("block", i).torch(raw.device))
                for i, (rows, gone, c) in enumerate(self._blocks(raw, absent, contexts))
            ]
            draws.append(as_given(torch.cat(parts), self, X, home, absent))
        return draws[0] if len(draws) == 1 else _stacked(draws)

    def _completed(
        self, raw: Tensor, absent: Tensor, y: Tensor | None, how: str, generator: torch.Generator
    ) -> Tensor:
        """Rows of the table with their absent cells filled in."""
        open_rows = absent.any(1)
        if not bool(open_rows.any()):
            return raw
        own = None if y is None else y[open_rows]
        gone = absent[open_rows]
        kept = torch.where(gone, torch.zeros_like(raw[open_rows]), raw[open_rows])
        x, unknown = self.coding_.encode(kept), self.coding_.spread(gone)
        x = torch.where(unknown, torch.zeros_like(x), x)
        found = self._fill_mean(x, unknown, own, generator) if how == "mean" else None
        if found is not None:
            values = self.coding_.decode(found)
        elif how == "mean":
            values = self._mean_of_draws(x, unknown, own, generator)
        else:
            values = self.coding_.decode(self._fill(x, unknown, own, how, generator))
        out = raw.clone()
        out[open_rows] = torch.where(gone, values.to(raw.dtype), raw[open_rows])
        return out

    def _mean_of_draws(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, generator: torch.Generator
    ) -> Tensor:
        many = [v.repeat_interleave(DRAWS, 0) for v in (x, unknown)]
        own = None if y is None else y.repeat_interleave(DRAWS, 0)
        drawn = self.coding_.decode(self._fill(many[0], many[1], own, "sample", generator))
        each = drawn.reshape(len(x), DRAWS, -1)
        category = torch.from_numpy(self.coding_.levels > 0).to(x.device)
        mean = each.mean(1)
        return torch.where(category, each.mode(1).values, mean) if category.any() else mean

    # --- questions -----------------------------------------------------------------------

    def infer(
        self,
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
        y, rows = observed.get("y"), observed.get("x")
        if names == ("x",) and mode != "marginal" and observed.get("z") is None:
            if rows is not None:
                how: How = "minimise" if mode == "min" else "sample"
                found = self.impute(rows, how, n, y=y, random_state=random_state)
                return found if mode == "min" or n > 1 else _stacked([found])
            if mode == "sample":
                m = 1 if y is None else len(np.atleast_1d(np.asarray(y)))
                many = None if y is None else np.repeat(np.asarray(y), n, axis=0)
                drawn = self.sample(n * m, many, T=T, random_state=random_state)
                return drawn.reshape(m, n, *self.event_shape_).swapaxes(0, 1)
        if names == ("y",) and self.condition_ is not None and rows is not None:
            return self._inferred_y(rows, mode, n, T, random_state)
        return super().infer(observed, free, mode, n=n, T=T, random_state=random_state)

    def _inferred_y(self, X: Any, mode: str, n: int, T: float, random_state: Any) -> Any:
        """:math:`p(y \\mid x) \\propto p(y)\\,p(x \\mid y)` over what y was in training."""
        x, home = self._rows(X)
        seen = self.condition_
        assert seen is not None
        contexts, logs = seen.all_contexts(x)
        with answering(self.energy_, x):
            joint = torch.stack(
                [
                    self._density(x, c.expand(len(x), -1)) + p
                    for c, p in zip(contexts, logs, strict=True)
                ],
                1,
            )  # (B, m)
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


def _stacked(draws: list[Any]) -> Any:
    if isinstance(draws[0], Tensor):
        return torch.stack(draws)
    return np.stack([np.asarray(d) for d in draws])

"""What densities by the chain rule share: draws in the order, and missing cells."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from groundstate.models.generative.network import NetworkGenerator


class ChainGenerator(NetworkGenerator):
    """A density :math:`\\prod_j p(x_{\\pi(j)} \\mid x_{\\pi(<j)})` around an energy with ``ancestral`` and
    ``complete``.

    Missing cells are drawn in the order, each given what stands before it, several times for each row; one
    of these completions is then taken by the probability of the known cells behind the missing ones. Where
    the missing cells come last all weights are equal and the draw is exact.
    """

    log_prob_kind = "exact"
    particles: ClassVar[int] = 64  # completions of a row, of which one is taken by its weight

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        energy: Any = self.energy_
        return energy.ancestral(n, T=T, generator=generator, y=y)["x"], None

    def _fill(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, how: str, generator: torch.Generator
    ) -> Tensor:
        draws, log_w = self._completions(x, unknown, y, generator, 1.0)
        if how == "minimise":
            sharp, _ = self._completions(x, unknown, y, generator, 0.05)
            draws = torch.cat([draws, sharp], 1)
            flat = draws.flatten(0, 1)
            own = None if y is None else y.repeat_interleave(draws.shape[1], 0)
            with torch.no_grad():
                best = -self.energy_(**({"x": flat} if own is None else {"x": flat, "y": own}))
            at = best.reshape(draws.shape[:2]).argmax(1)
        else:
            at = torch.multinomial(log_w.softmax(1), 1, generator=generator)[:, 0]
        return draws[torch.arange(len(x), device=x.device), at]

    def _fill_mean(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, generator: torch.Generator
    ) -> Tensor | None:
        draws, log_w = self._completions(x, unknown, y, generator, 1.0, 4 * self.particles)
        w = log_w.softmax(1)[..., None]
        mean = (w * draws).sum(1)
        for j, n in enumerate(self.levels_):
            if n:
                hot = nn.functional.one_hot(draws[..., j].round().long(), n).to(w.dtype)
                mean[:, j] = (w * hot).sum(1).argmax(1).to(mean.dtype)
        return torch.where(unknown, mean, x)

    def _log_known_by_y(
        self, x: Tensor, unknown: Tensor, contexts: Tensor, generator: torch.Generator
    ) -> Tensor:
        each = [
            self._completions(x, unknown, c.expand(len(x), -1), generator, 1.0)[1].logsumexp(1)
            for c in contexts
        ]
        return torch.stack(each, 1)

    def _completions(
        self,
        x: Tensor,
        unknown: Tensor,
        y: Tensor | None,
        generator: torch.Generator,
        T: float,
        many: int | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Completed rows ``(B, many, d)``, and the logs of their weights ``(B, many)``."""
        energy: Any = self.energy_
        many = self.particles if many is None else many
        rows, free = (v.repeat_interleave(many, 0) for v in (x, unknown))
        own = None if y is None else y.repeat_interleave(many, 0)
        found, log_w = energy.complete(rows, free, own, T=T, generator=generator)
        return found.reshape(len(x), many, -1), log_w.reshape(len(x), many)

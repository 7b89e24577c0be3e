r"""What a mixture over columns of any kind says of free columns given the known ones.

.. math:: p(x_u \mid x_k) = \sum_z\frac{\pi_zp(x_k \mid z)}{\sum_{z'}\pi_{z'}p(x_k \mid z')}\,p(x_u \mid x_k, z)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from groundstate.errors import Unsupported
from groundstate.math.distributions.gaussian.partly_known import PartlyKnownNormal
from groundstate.math.graphs.elimination import invert


class TableMixtureDistribution(Distribution):
    """The distribution of whole rows whose known columns do not move.

    Parameters
    ----------
    energy : TableMixtureEnergy
    value : ``(B, d)`` with the known columns in place; None: one row, nothing known
    mask : ``(B, d)`` bool, True where free; None: all are
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    support = constraints.real_vector

    def __init__(
        self, energy: Any, value: Tensor | None = None, mask: Tensor | None = None, T: float = 1.0
    ) -> None:
        if T != 1:
            raise Unsupported(f"a mixture at T={T} is none; ask at T=1 or use MCMC")
        self.energy = energy
        d = len(energy.levels)
        self.value = energy.logits.new_zeros(1, d) if value is None else value
        self.mask = torch.ones_like(self.value, dtype=torch.bool) if mask is None else mask
        super().__init__(torch.Size([len(self.value)]), torch.Size([d]), validate_args=False)

    def _joint(self) -> Tensor:
        """Log of the weight of every component and of the known columns in it, ``(B, k)``."""
        found: Tensor = self.energy.joint(self.value, self.mask)
        return found

    @property
    def log_known(self) -> Tensor:
        """log p of the known columns, ``(B,)``."""
        return self._joint().logsumexp(1)

    def log_prob(self, value: Tensor) -> Tensor:
        log_p: Tensor = -self.energy(x=value.reshape(-1, value.shape[-1]))
        return log_p.reshape(value.shape[:-1]) - self.log_known

    def draw(self, n: int, generator: torch.Generator, T: float = 1.0) -> Tensor:
        """Independent exact draws, ``(n, B, d)``."""
        with torch.no_grad():
            joint = self._joint() / T
            return torch.stack([self._drawn(joint, generator, T) for _ in range(n)])

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = torch.Size(sample_shape)
        generator = torch.Generator(self.value.device)
        generator.manual_seed(int(torch.randint(2**62, ())))
        return self.draw(shape.numel(), generator).reshape(*shape, *self.value.shape)

    def _drawn(self, joint: Tensor, generator: torch.Generator, T: float) -> Tensor:
        energy, out = self.energy, self.value.clone()

        def chosen(logits: Tensor) -> Tensor:
            u = torch.rand(len(logits), generator=generator, device=generator.device)
            return invert(logits, u.to(logits.device))

        z = chosen(joint)
        for j, table in zip(energy.discrete, energy.log_tables(), strict=True):
            level = chosen(table[z] / T).to(out)
            out[:, j] = torch.where(self.mask[:, j], level, out[:, j])
        if energy.real:
            around = self._numbers(z)
            drawn = around.draw(1, generator)[0]
            out[:, energy.real] = (around.mean + T**0.5 * (drawn - around.mean)).to(out)
        return out

    def _numbers(self, z: Tensor) -> PartlyKnownNormal:
        """The real columns given a component for each row."""
        real = self.energy.real
        found: PartlyKnownNormal = self.energy.normal.around(
            z, x=self.value[:, real], mask=self.mask[:, real]
        )
        return found

    def _numbers_of(self, z: int) -> Tensor:
        """Means of the real columns given one component for all rows, ``(B, r)``."""
        at = torch.full((len(self.value),), z, device=self.value.device)
        return self._numbers(at).mean

    @property
    def mode(self) -> Tensor:
        """The most probable of the completions that are best for one component each, ``(B, d)``."""
        energy = self.energy
        with torch.no_grad():
            best, out = torch.full_like(self.value[:, 0], torch.inf), self.value.clone()
            tables = energy.log_tables()
            for z in range(energy.k):
                row = self.value.clone()
                for j, table in zip(energy.discrete, tables, strict=True):
                    row[:, j] = torch.where(self.mask[:, j], table[z].argmax().to(row), row[:, j])
                if energy.real:
                    row[:, energy.real] = self._numbers_of(z)
                e = energy(x=row)
                out = torch.where((e < best)[:, None], row, out)
                best = torch.minimum(best, e)
        return out

    def marginals(self) -> list[Tensor]:
        """Probabilities of the levels of each column, ``(B, K)``; empty for a real one."""
        energy, r = self.energy, self._joint().softmax(1)
        out = [r.new_zeros(len(r), n) for n in energy.levels]
        for j, table in zip(energy.discrete, energy.log_tables(), strict=True):
            known = self.value[:, j].long().clamp(0, energy.levels[j] - 1)
            hot = torch.nn.functional.one_hot(known, energy.levels[j]).to(r)
            out[j] = torch.where(self.mask[:, j, None], r @ table.exp(), hot)
        return out

    @property
    def mean(self) -> Tensor:
        """Conditional means of real columns and of level numbers, known ones in place, ``(B, d)``."""
        energy = self.energy
        with torch.no_grad():
            out = self.value.clone()
            r = self._joint().softmax(1)
            for column, p in enumerate(self.marginals()):
                if p.shape[1]:
                    out[:, column] = p @ torch.arange(p.shape[1], device=p.device).to(p)
            if energy.real:
                means = torch.stack([self._numbers_of(z) for z in range(energy.k)], 1)
                out[:, energy.real] = torch.einsum("bk,bkr->br", r, means.to(r))
        return torch.where(self.mask, out, self.value)

r"""What a Gaussian kernel density says of free columns given the known ones.

.. math:: p(x_u \mid x_k) = \sum_i\frac{w_iK_k(x_k - x_{ik})}{\sum_jw_jK_k(x_k - x_{jk})}\,K_u(x_u - x_{iu})
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from groundstate.errors import Unsupported

CLIMBS = 8  # rows from which a mode is looked for
SHIFTS = 100  # steps uphill


class KernelDistribution(Distribution):
    """The distribution of whole rows whose known columns do not move.

    Parameters
    ----------
    energy : KernelDensityEnergy
    value : ``(B, d)`` with the known columns in place
    mask : ``(B, d)`` bool, True where free
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    support = constraints.real_vector

    def __init__(self, energy: Any, value: Tensor, mask: Tensor, T: float = 1.0) -> None:
        if T != 1:
            raise Unsupported(f"a kernel density at T={T} is none; ask at T=1 or use MCMC")
        if not energy.is_euclidean:
            raise Unsupported(f"columns measured by {energy.metric!r} have no conditionals")
        part = mask.any(1) & ~mask.all(1)
        if energy.kernel != "gaussian" and bool(part.any()):
            raise Unsupported(
                f"some columns given others are known in closed form for kernel='gaussian', got "
                f"{energy.kernel!r}"
            )
        self.energy, self.value, self.mask = energy, value, mask
        super().__init__(value.shape[:1], value.shape[1:], validate_args=False)

    def _patterns(self) -> list[tuple[Tensor, list[int], list[int]]]:
        """Rows that share their free columns: their numbers, free and known columns."""
        found, group = torch.unique(self.mask, dim=0, return_inverse=True)
        out = []
        for g, free in enumerate(found.tolist()):
            rows = (group == g).nonzero()[:, 0]
            for part in rows.split(max(1, 2**22 // max(1, len(self.energy.kept)))):
                columns = [j for j, f in enumerate(free) if f]
                out.append((part, columns, [j for j, f in enumerate(free) if not f]))
        return out

    def _log_shares(self, rows: Tensor, known: list[int]) -> Tensor:
        """Log share of every remembered row given the known columns, ``(b, n)``."""
        terms: Tensor = self.energy.log_terms(self.value[rows], known)
        return terms.log_softmax(1)

    @property
    def log_known(self) -> Tensor:
        """log p of the known columns, ``(B,)``."""
        out = self.value.new_zeros(len(self.value))
        for rows, free, known in self._patterns():
            if known:
                log_p = self.energy.log_density(self.value[rows], known if free else None)
                out = out.index_put((rows,), log_p)
        return out

    def log_prob(self, value: Tensor) -> Tensor:
        log_p: Tensor = -self.energy(x=value.reshape(-1, value.shape[-1]))
        return log_p.reshape(value.shape[:-1]) - self.log_known

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """Independent exact draws, ``(n, B, d)``."""
        out = self.value.expand(n, *self.value.shape).clone()
        with torch.no_grad():
            for rows, free, known in self._patterns():
                if not free:
                    continue
                ends = self._log_shares(rows, known).double().exp().cumsum(1)
                at = pick(ends, n, generator)  # (n, b)
                drawn = self.energy.around(at.reshape(-1), generator).reshape(n, len(rows), -1)
                out[:, rows[:, None], free] = drawn[..., free].to(out)
        return out

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = torch.Size(sample_shape)
        generator = torch.Generator(self.value.device)
        generator.manual_seed(int(torch.randint(2**62, ())))
        return self.draw(shape.numel(), generator).reshape(*shape, *self.value.shape)

    @property
    def mean(self) -> Tensor:
        """Conditional means of real columns, the most probable category of others, ``(B, d)``."""
        out = self.value.clone()
        with torch.no_grad():
            for rows, free, known in self._patterns():
                if free:
                    shares = self._log_shares(rows, known).exp()
                    out[rows[:, None], free] = self._centres(shares, free).to(out)
        return out

    def _centres(self, shares: Tensor, free: list[int]) -> Tensor:
        """Of shares ``(b, n)`` the mean of each free column, or its most probable category."""
        energy = self.energy
        columns = []
        for j in free:
            values = energy.kept[:, j].to(shares)
            if not (k := energy.levels[j]):
                columns.append(shares @ values)
                continue
            hot = torch.nn.functional.one_hot(values.round().long(), k).to(shares)
            columns.append((shares @ hot).argmax(1).to(shares))  # λ < (k-1)/k keeps the order
        return torch.stack(columns, 1)

    @property
    def mode(self) -> Tensor:
        """The highest point that mean shift reaches from the likeliest rows, ``(B, d)``."""
        out = self.value.clone()
        with torch.no_grad():
            for rows, free, known in self._patterns():
                if free:
                    out[rows[:, None], free] = self._climbed(rows, free, known)[:, free]
        return out

    def _climbed(self, rows: Tensor, free: list[int], known: list[int]) -> Tensor:
        energy = self.energy
        shares = self._log_shares(rows, known)
        top = shares.topk(min(CLIMBS, shares.shape[1]), 1).indices  # (b, c)
        many = top.shape[1]
        x = self.value[rows].repeat_interleave(many, 0)
        x[:, free] = energy.kept[top.reshape(-1)][:, free].to(x)
        for _ in range(SHIFTS):
            new = x.clone()
            new[:, free] = self._centres(energy.log_terms(x).softmax(1), free).to(x)
            done = torch.allclose(new, x, rtol=1e-7, atol=1e-9)
            x = new
            if done:
                break
        best = energy.log_density(x).reshape(-1, many).argmax(1)
        return x.reshape(len(rows), many, -1)[torch.arange(len(rows), device=x.device), best]


def pick(ends: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """Numbers drawn by cumulated weights ``(B, m)``, n for each row, ``(n, B)``."""
    u = torch.rand(len(ends), n, generator=generator, device=generator.device, dtype=torch.float64)
    u = u.to(ends.device) * ends[:, -1:]
    found = torch.searchsorted(ends.contiguous(), u.contiguous(), right=True)
    return found.clamp_max(ends.shape[1] - 1).T

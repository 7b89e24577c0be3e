r"""log Z of a restricted Boltzmann machine, annealed from both ends.

Between a machine without hidden units, whose normaliser is known, and the machine itself lies

.. math:: p_\beta^*(x) \propto e^{-(1-\beta)v_0(x) - \beta v(x)}
          \prod_j\bigl(1 + e^{\beta(W^\top\phi(x) + c)_j}\bigr),

and one sweep of Gibbs sampling in two blocks leaves every :math:`p_\beta` as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import softplus

from groundstate.compute.display import Displayed
from groundstate.energy.basic.bilinear import BilinearEnergy
from groundstate.energy.undirected.restricted import RestrictedEnergy
from groundstate.math.distributions.operations import draw, fresh

Machine = BilinearEnergy | RestrictedEnergy


@dataclass(frozen=True)
class LogPartition(Displayed):
    r"""log Z between two stochastic bounds.

    Attributes
    ----------
    value : the forward estimate
    stderr : its standard error, by the delta method
    lower : forward runs; :math:`E\,\log\hat Z \le \log Z`
    upper : reverse runs, which start at draws of the model; at least log Z on average where those
        draws are good
    log_weight : of the forward runs, ``(n,)``
    """

    value: float
    stderr: float
    lower: float
    upper: float
    log_weight: Tensor

    def _facts(self) -> dict[str, object]:
        return {
            "log Z": f"{self.value:.6g}",
            "stderr": f"{self.stderr:.2g}",
            "bounds": f"[{self.lower:.6g}, {self.upper:.6g}]",
        }


@torch.no_grad()
def annealed_log_partition(
    energy: Machine,
    base: Tensor | None = None,
    *,
    y: Tensor | None = None,
    n: int = 100,
    n_temps: int = 1000,
    settle: int = 10,
    generator: torch.Generator | None = None,
) -> LogPartition:
    r"""Annealed importance sampling of a restricted Boltzmann machine, forward and in reverse.

    Parameters
    ----------
    energy : BilinearEnergy or RestrictedEnergy
    base : ``(F,)``, visible biases of the machine to start from; those of independent columns with
        the data's base rates are best. None takes the machine's own
    y : ``(1, q)``, what is given, for a machine with y
    n : runs in each direction
    n_temps : steps of the path
    settle : Gibbs sweeps of the model between the end of a forward run and the start of a reverse one
    generator : source of randomness

    Examples
    --------
    >>> energy = BilinearEnergy(2, 2, scale=0.0)
    >>> found = annealed_log_partition(energy, generator=torch.Generator().manual_seed(0))
    >>> round(found.value, 4), round(4 * math.log(2), 4)  # nothing changes along the path
    (2.7726, 2.7726)
    """
    if n < 2 or n_temps < 1:
        raise ValueError(f"annealing needs n >= 2 and n_temps >= 1, got n={n}, n_temps={n_temps}")
    generator = fresh(generator)
    b, c = (v.detach().reshape(-1) for v in energy.biases(y))
    path = _Path(energy, b if base is None else base.to(b), b, c)
    betas = torch.linspace(0.0, 1.0, n_temps + 1, dtype=torch.float64).tolist()
    x = draw(energy.visible(path.base.expand(n, -1)), 1, generator)[0]
    forward = torch.zeros(n, device=b.device, dtype=torch.float64)
    for old, new in pairwise(betas):
        a = path.lift(x)
        forward += path.ratio(x, a, old, new)
        x = path.moved(a, new, generator)
    # reverse runs start at the ends of forward ones, taken by their weights, and settled
    chosen = torch.multinomial(torch.softmax(forward, 0), n, True, generator=generator)
    x = x[chosen]
    for _ in range(settle):
        x = path.moved(path.lift(x), 1.0, generator)
    back = torch.zeros_like(forward)
    for new, old in pairwise(reversed(betas)):
        a = path.lift(x)
        back += path.ratio(x, a, new, old)
        x = path.moved(a, old, generator)
    start = float(energy.log_volume(path.base)) + len(c) * math.log(2)
    lower = float(forward.logsumexp(0)) - math.log(n)
    upper = -(float(back.logsumexp(0)) - math.log(n))
    w = (forward - lower).exp()
    stderr = float(w.std()) / math.sqrt(n)
    return LogPartition(start + lower, stderr, start + lower, start + upper, start + forward)


@dataclass(frozen=True)
class _Path:
    """The machines between the base and the energy."""

    energy: Machine
    base: Tensor
    b: Tensor
    c: Tensor

    def lift(self, x: Tensor) -> Tensor:
        """Logits of z at β = 1, ``(n, l)``."""
        return torch.addmm(self.c, self.energy.features(x), self.energy.W)

    def ratio(self, x: Tensor, a: Tensor, old: float, new: float) -> Tensor:
        """log p*_new(x) − log p*_old(x), ``(n,)``."""
        gap = self.energy.log_visible(x, self.b) - self.energy.log_visible(x, self.base)
        soft = (softplus(new * a) - softplus(old * a)).sum(1)
        return ((new - old) * gap + soft).double()

    def moved(self, a: Tensor, beta: float, generator: torch.Generator) -> Tensor:
        """One sweep at β, from the logits a of the old x."""
        u = torch.rand(a.shape, generator=generator, device=a.device, dtype=a.dtype)
        z = (u < torch.sigmoid(beta * a)).to(a.dtype)
        inputs = (1 - beta) * self.base + beta * (self.b + z @ self.energy.W.T)
        return draw(self.energy.visible(inputs), 1, generator)[0]

r"""Markov kernels keep their target: transition matrices, exactly."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from groundstate.energy import BilinearEnergy, TableEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.infer import Gibbs, Metropolis, kernel_matrix, posterior
from groundstate.math.chains.markov import MarkovChain

F64 = torch.float64
WEIGHTS = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=F64)
JOINT = torch.tensor([[0.4, 0.1], [0.2, 0.3]], dtype=F64)
RING = ((0, 0.5, 0, 0.5), (0.25, 0.25, 0.5, 0), (0, 1 / 3, 1 / 6, 0.5), (0.125, 0, 0.375, 0.5))
SPECTRA = {
    "Metropolis": (1.0, 0.386235, 0.051735, -0.521303),
    "Gibbs, random": (1.0, 0.704124, 0.295876, 0.0),
    "Gibbs, layers": (1.0, 0.200096, 0.048580, 0.004654),
}


class Ring:
    """Propose one step to the left or right on a ring of n states."""

    def __init__(self, n: int) -> None:
        self.n = n

    def propose(self, v: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        """A neighbour of every state."""
        by = 2 * torch.randint(2, v.shape, generator=generator, device=generator.device) - 1
        return (v + by.to(v.device)) % self.n, None

    def outcomes(self, v: Tensor) -> Iterable[tuple[Tensor, Tensor, Tensor | None]]:
        """Both neighbours, with probability ½ each."""
        for by in (-1, 1):
            yield torch.full(v.shape, 0.5, dtype=F64, device=v.device), (v + by) % self.n, None


def layers() -> BilinearEnergy:
    """Two bits over two bits."""
    energy = BilinearEnergy(2, 2).double()
    with torch.no_grad():
        energy.W.copy_(torch.tensor([[1.0, -1.0], [0.5, 2.0]]))
        energy.b.copy_(torch.tensor([0.1, -0.2]))
        energy.c.copy_(torch.tensor([0.3, -0.4]))
    return energy


@experiment("ENE-X-kernels", theme="energy", title="Kernels keep the target")
def kernels(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A kernel with :math:`Pp = p` keeps its target p; detailed balance
    :math:`P_{ij}p_j = P_{ji}p_i` suffices and is not needed; convergence also needs reachability
    and no period. All matrices are exact, ``P[new, old]``, the rejection mass on the diagonal.

    Metropolis on a ring with target ∝ (1, 2, 3, 4); Gibbs on a 2 × 2 table, one variable at random
    or both in turn; block Gibbs on two layers of bits. The swap chain is Metropolis between two
    equal states: a unique stationary distribution that no start reaches, because its period is 2.
    The cycle 0 → 1 → 2 → 0 with probability .9 (else stays) keeps the uniform distribution without
    balance.
    """
    ring, table, bits = TableEnergy(-WEIGHTS.log()), TableEnergy(-JOINT.log()), layers()
    flat = TableEnergy(torch.zeros(2, dtype=F64))
    uniform = torch.full((3,), 1 / 3, dtype=F64)
    rotate = torch.eye(3, dtype=F64).roll(1, 0)  # state j moves to j + 1
    matrices = {
        "Metropolis": kernel_matrix(Metropolis(proposal=Ring(4), adapt=False), ring),
        "Gibbs, random": kernel_matrix(Gibbs(scan="random"), table),
        "Gibbs, in turn": kernel_matrix(Gibbs(), table),
        "Gibbs, layers": kernel_matrix(Gibbs(blocks=("z", "x")), bits, on="x"),
        "swap": kernel_matrix(Metropolis(adapt=False), flat),
        "3-cycle": 0.9 * rotate + 0.1 * torch.eye(3, dtype=F64),
    }
    with torch.no_grad():
        states = bits.spaces["x"].enumerate(dtype=F64)
        bits_distribution = posterior(bits.marginal("z"), "x").log_prob(states[:, None]).exp()[:, 0]
    targets = {
        "Metropolis": WEIGHTS / 10,
        "Gibbs, random": JOINT.flatten(),
        "Gibbs, in turn": JOINT.flatten(),
        "Gibbs, layers": bits_distribution,
        "swap": torch.tensor([0.5, 0.5], dtype=F64),
        "3-cycle": uniform,
    }
    chains = {name: MarkovChain(P) for name, P in matrices.items()}
    errors = {n: float((matrices[n] @ p - p).abs().max()) for n, p in targets.items()}
    spectra = {n: chain.eigenvalues for n, chain in chains.items()}
    balanced = {n: chains[n].is_reversible(p) for n, p in targets.items()}

    claims = [Claim.below(f"{n}: largest |Pp − p|", e, 1e-12) for n, e in errors.items()]
    wrong = float((matrices["Metropolis"].T - torch.tensor(RING, dtype=F64)).abs().max())
    claims.append(Claim.at_most("Metropolis: largest error of a matrix entry", wrong, 1e-12))
    moved = matrices["Metropolis"] - torch.diag(matrices["Metropolis"].diagonal())
    accept = float(moved.sum(0) @ targets["Metropolis"])  # no proposal stays
    claims.append(Claim.close("Metropolis: acceptance", accept, 0.7, tol=1e-12))
    for name, stated in SPECTRA.items():
        found = spectra[name].real.sort(descending=True).values
        gap = float((found - torch.tensor(stated, dtype=F64)).abs().max())
        text = f"{name}: largest error of the eigenvalues {', '.join(f'{v:g}' for v in stated)}"
        claims.append(Claim.at_most(text, gap, 1e-6))
    swap = chains["swap"]
    start = torch.tensor([1.0, 0.0], dtype=F64)
    marginal = swap.run(start, 101)
    claims += [
        Claim.equal("who satisfies detailed balance", sorted(n for n, b in balanced.items() if b),
                    ["Gibbs, layers", "Gibbs, random", "Metropolis", "swap"]),
        Claim.equal("swap: stationary distribution", [round(v, 12) for v in swap.stationary().tolist()],
                    [0.5, 0.5]),
        Claim.equal("swap: period", swap.period, 2),
        Claim.equal("swap: marginals after 100 and 101 steps", marginal[-2:].tolist(),
                    [[1.0, 0.0], [0.0, 1.0]]),
        Claim.equal("3-cycle: ergodic", chains["3-cycle"].is_ergodic, True),
    ]  # fmt: skip
    numbers = {
        "errors": errors,
        "acceptance": accept,
        "eigenvalues": {n: [[v.real, v.imag] for v in s.tolist()] for n, s in spectra.items()},
        "reversible": balanced,
    }

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2, len(matrices))
        for (above, below), (name, P) in zip(axes.T, matrices.items()):
            above.imshow(P.numpy(), cmap="Blues", vmin=0, vmax=1)
            for (i, j), value in _entries(P):
                colour = "white" if value > 0.5 else "black"
                above.text(j, i, f"{value:.2f}".lstrip("0"), ha="center", va="center",
                           fontsize=6, color=colour)  # fmt: skip
            above.set(title=name, xticks=[], yticks=[])
            angle = torch.linspace(0, 2 * torch.pi, 100)
            below.plot(angle.cos(), angle.sin(), color=COLOURS[5], linewidth=0.7)
            values = spectra[name]
            below.plot(values.real, values.imag, "o", color=COLOURS[0 if balanced[name] else 1])
            below.set(aspect="equal", xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
            below.set_xlabel("reversible" if balanced[name] else "not reversible")
        axes[0, 0].set_ylabel("new state")
        axes[1, 0].set_ylabel("eigenvalues")

    return Result(claims, numbers, draw, size=(11.0, 4.0))


def _entries(P: Tensor) -> list[tuple[tuple[int, int], float]]:
    rows = range(len(P))
    return [((i, j), float(P[i, j])) for i in rows for j in rows if float(P[i, j]) > 0]

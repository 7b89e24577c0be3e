r"""What a circuit says of free columns given the known ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from groundstate.errors import Unsupported
from groundstate.math.graphs.elimination import NEVER, invert


class CircuitDistribution(Distribution):
    """The distribution of whole rows whose known columns do not move.

    One pass up gives the probability of what is known; going down from the root, sums choose a child
    and leaves give values.

    Parameters
    ----------
    circuit : CircuitEnergy
    value : ``(B, d)`` with the known columns in place; None: one row, nothing known
    mask : ``(B, d)`` bool, True where free; None: all are
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    support = constraints.real_vector

    def __init__(
        self, circuit: Any, value: Tensor | None = None, mask: Tensor | None = None, T: float = 1.0
    ) -> None:
        if T != 1:
            raise Unsupported(
                f"the distribution of a circuit at T={T} is no circuit; ask at T=1 or use MCMC"
            )
        self.circuit = circuit
        d = len(circuit.levels)
        self.value = circuit.weights.new_zeros(1, d) if value is None else value
        self.mask = torch.ones_like(self.value, dtype=torch.bool) if mask is None else mask
        super().__init__(torch.Size([len(self.value)]), torch.Size([d]), validate_args=False)

    @property
    def log_known(self) -> Tensor:
        """log p of the known columns, ``(B,)``."""
        found: Tensor = self.circuit.log_marginal(self.value, self.mask)
        return found

    def log_prob(self, value: Tensor) -> Tensor:
        flat = value.reshape(-1, value.shape[-1])
        log_p: Tensor = -self.circuit(x=flat)
        return log_p.reshape(value.shape[:-1]) - self.log_known

    @property
    def mode(self) -> Tensor:
        """Values along the best choice at every sum, ``(B, d)``: the most probable completion where at
        most one child of each sum is possible for a row, and near it otherwise."""
        with torch.no_grad():
            return self._down(None)

    def draw(self, n: int, generator: torch.Generator, T: float = 1.0) -> Tensor:
        """Independent exact draws, ``(n, B, d)``."""
        with torch.no_grad():
            return torch.stack([self._down(generator, T) for _ in range(n)])

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = torch.Size(sample_shape)
        generator = torch.Generator(self.value.device)
        generator.manual_seed(int(torch.randint(2**62, ())))
        return self.draw(shape.numel(), generator).reshape(*shape, *self.value.shape)

    def _down(self, generator: torch.Generator | None, T: float = 1.0) -> Tensor:
        circuit, best = self.circuit, generator is None
        leaves = circuit.leaf_scores(self.value, self.mask, best)
        weights = circuit.log_weights()
        values = circuit.up(leaves, weights, best)
        b = len(values)
        active = torch.zeros_like(values, dtype=torch.bool)
        active[:, -1] = True
        left, end = list(weights), values.shape[1]
        for layer in reversed(circuit.layers):
            children = layer.children.to(values.device)
            own = active[:, end - len(children) : end]
            end -= len(children)
            if layer.edges is None:
                rows, nodes = own.nonzero(as_tuple=True)
                active[rows[:, None], children[nodes]] = True
                continue
            score = values[:, children] + left.pop()  # (B, nodes, children)
            if generator is None:
                which = score.argmax(2)
            else:
                u = torch.rand(b, len(children), generator=generator, device=generator.device)
                flat = (score / T).reshape(-1, score.shape[2])
                which = invert(flat, u.to(score.device).reshape(-1)).view(b, -1)
            rows, nodes = own.nonzero(as_tuple=True)
            active[rows, children[nodes, which[rows, nodes]]] = True
        return self._leaves(active[:, 1 : 1 + leaves.shape[1]], generator, T)

    def _leaves(self, active: Tensor, generator: torch.Generator | None, T: float) -> Tensor:
        """Values of the leaves that were reached, one for each column."""
        circuit, out = self.circuit, self.value.clone()
        k = len(circuit.discrete)
        nodes = circuit.nodes
        for j, n in enumerate([*circuit.discrete, *circuit.real]):
            column = nodes[n][1]
            rows = (active[:, j] & self.mask[:, column]).nonzero()[:, 0]
            if not len(rows):
                continue
            if j < k:
                logits = circuit.log_tables()[j].expand(len(rows), -1)
                if generator is None:
                    found = logits.argmax(1)
                else:
                    u = torch.rand(len(rows), generator=generator, device=generator.device)
                    found = invert(logits / T, u.to(out.device))
                out[rows, column] = found.to(out)
                continue
            spread = torch.zeros(len(rows), device=out.device, dtype=out.dtype)
            if generator is not None:
                noise = torch.randn(len(rows), generator=generator, device=generator.device)
                spread = noise.to(out) * (0.5 * circuit.log_var[j - k]).exp() * T**0.5
            out[rows, column] = circuit.mean[j - k] + spread
        return out

    def flows(self) -> Tensor:
        """Probability that each leaf is the one of its column given what is known, ``(B, leaves)``."""
        circuit = self.circuit
        with torch.enable_grad():
            leaves = circuit.leaf_scores(self.value, self.mask).detach().requires_grad_()
            weights = [w.detach() for w in circuit.log_weights()]
            root = circuit.up(leaves, weights)[:, -1]
            (flow,) = torch.autograd.grad(root.sum(), leaves)
        return torch.where((root < NEVER / 10)[:, None], 0.0, flow)

    def marginals(self) -> list[Tensor]:
        """Probabilities of the values of each discrete column, ``(B, K)``; empty for a real one."""
        circuit, flow = self.circuit, self.flows()
        out = [flow.new_zeros(len(flow), k) for k in circuit.levels]
        table = circuit.log_tables().exp()
        for j, n in enumerate(circuit.discrete):
            column = circuit.nodes[n][1]
            k = circuit.levels[column]
            out[column] = out[column] + flow[:, j, None] * table[j, :k]
        for column, k in enumerate(circuit.levels):
            if k:
                level = self.value[:, column].long().clamp(0, k - 1)
                hot = torch.nn.functional.one_hot(level, k).to(flow)
                out[column] = torch.where(self.mask[:, column, None], out[column], hot)
        return out

    @property
    def mean(self) -> Tensor:
        """Conditional means of real columns and of level numbers, known ones in place, ``(B, d)``."""
        circuit = self.circuit
        with torch.no_grad():
            flow = self.flows()
            out = torch.zeros_like(self.value)
            for column, p in enumerate(self.marginals()):
                if p.shape[1]:
                    out[:, column] = p @ torch.arange(p.shape[1], device=p.device).to(p)
            k = len(circuit.discrete)
            for j, n in enumerate(circuit.real):
                out[:, circuit.nodes[n][1]] += flow[:, k + j] * circuit.mean[j]
        return torch.where(self.mask, out, self.value)

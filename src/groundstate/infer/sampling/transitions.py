r"""Markov kernels on the variables of an energy, many chains at once.

A kernel is one transition :math:`v \to v'` that leaves :math:`p(v) \propto e^{-e(v)/T}` invariant.
It acts on a ``State``: values ``(C, *event)`` of C independent chains and what the kernel carries
along. A kernel is made of *moves*, each of which changes some of the variables; the finite moves
can list their outcomes, from which ``kernel_matrix`` builds the transition matrix exactly.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from groundstate.energy.base import Energy, batch_size
from groundstate.errors import Unsupported
from groundstate.infer.base import Method
from groundstate.infer.exact.grid import Grid, alphabet, unknown_of

Values = dict[str, Tensor]


@dataclass(frozen=True)
class Target:
    """The distribution that is sampled: an energy at a temperature with some variables held.

    Attributes
    ----------
    fixed : held values and context arguments, each ``(C, *event)``
    masks : for partly free variables, the coordinates that may move, ``(C, *event)`` bool
    """

    energy: Energy
    fixed: Mapping[str, Tensor] = field(default_factory=dict)
    T: float = 1.0
    masks: Mapping[str, Tensor] = field(default_factory=dict)
    partly: frozenset[str] = field(init=False, default=frozenset())  # known in part

    def __post_init__(self) -> None:
        if not self.T > 0:
            raise ValueError(
                f"Markov chains need a temperature above 0, got T={self.T}; T=0 is the minimum, "
                "use minimise"
            )
        object.__setattr__(self, "partly", frozenset(self.masks))
        spaces = {n: s for n, s in self.energy.spaces.items() if n not in self.fixed}
        masks = unknown_of(spaces, self.masks, self.fixed.get("lengths"))
        object.__setattr__(self, "masks", masks)

    @property
    def free(self) -> tuple[str, ...]:
        return tuple(name for name in self.energy.spaces if name not in self.fixed)

    @property
    def cold(self) -> float:
        """1/T."""
        return 0.0 if math.isinf(self.T) else 1.0 / self.T

    def __call__(self, values: Mapping[str, Tensor]) -> Tensor:
        return self.energy(**self.fixed, **values)

    def log_ratio(self, old: Tensor, new: Tensor) -> Tensor:
        """``log p(new) - log p(old)`` from energies; a forbidden new value has −inf."""
        return torch.where(torch.isposinf(new), -math.inf, (old - new) * self.cold)

    def slope(self, values: Mapping[str, Tensor], names: tuple[str, ...]) -> tuple[Tensor, Values]:
        """Energy ``(C,)`` and its gradient with respect to ``names``, zero where known."""
        with torch.enable_grad():
            at = {n: v.detach().requires_grad_() if n in names else v for n, v in values.items()}
            e = self(at)
            grads = torch.autograd.grad(e.sum(), [at[n] for n in names])
        found = dict(zip(names, grads, strict=True))
        for name in names:
            if name in self.masks:
                found[name] = found[name] * self.masks[name]
        return e.detach(), found


@dataclass
class State:
    """Where the chains are.

    Attributes
    ----------
    values : current values ``(C, *event)``
    energy : their energies ``(C,)``, None when the kernel does not need them
    accept : acceptance probability of the last step ``(C,)``, None when it is always 1
    memory : what the kernel carries along, such as gradients
    """

    values: Values
    energy: Tensor | None = None
    accept: Tensor | None = None
    memory: dict[str, Any] = field(default_factory=dict)
    parts: tuple[Tensor | None, ...] = ()  # acceptance of every move, when there are several

    @property
    def accepts(self) -> tuple[Tensor | None, ...]:
        """Acceptance of every move of the last step."""
        return self.parts or (self.accept,)

    @property
    def chains(self) -> int:
        return batch_size(self.values)


Outcome = tuple[Tensor, Values]  # probability (C,), values after the move


class Move(ABC):
    """A change of some variables that leaves the target invariant."""

    def noise(self, n: int, state: State, generator: torch.Generator) -> Sequence[Any]:
        """Randomness for ``n`` steps, drawn at once where that is possible."""
        return [generator] * n

    @abstractmethod
    def step(self, state: State, noise: Any) -> State:
        """One transition of every chain."""

    def outcomes(self, values: Values) -> Iterable[Outcome]:
        """Everything the move can do from ``values``, with probabilities that sum to one."""
        raise Unsupported(f"{type(self).__name__} cannot list its outcomes: they are a continuum")


class Kernel:
    """Moves in a fixed order (``systematic``) or one of them at random in each step (``random``).

    Parameters
    ----------
    target : Target
    moves : the moves, at least one
    scan : "systematic" or "random"
    """

    def __init__(
        self,
        target: Target,
        moves: Sequence[Move],
        scan: Literal["systematic", "random"] = "systematic",
    ) -> None:
        self.target, self.moves, self.scan = target, tuple(moves), scan

    def start(self, values: Mapping[str, Tensor]) -> State:
        """The state of chains at ``values`` ``(C, *event)``, without gradient."""
        missing = [n for n in self.target.free if n not in values]
        if missing:
            raise ValueError(f"start values for {', '.join(map(repr, missing))} are missing")
        return State({n: values[n].detach() for n in self.target.free})

    def noise(self, n: int, state: State, generator: torch.Generator) -> Iterator[Any]:
        """Randomness for ``n`` steps."""
        if not self.moves:
            return iter([()] * n)
        if len(self.moves) == 1:
            return iter(self.moves[0].noise(n, state, generator))
        if self.scan == "random":
            device = generator.device
            picks = torch.randint(len(self.moves), (n,), generator=generator, device=device)
            return iter([(k, self.moves[k].noise(1, state, generator)[0]) for k in picks.tolist()])
        return zip(*(move.noise(n, state, generator) for move in self.moves), strict=True)

    def step(self, state: State, noise: Any) -> State:
        """One transition of every chain."""
        if torch.is_grad_enabled():
            with torch.no_grad():
                return self.step(state, noise)
        if len(self.moves) == 1:
            return self.moves[0].step(state, noise)
        if self.scan == "random":
            k, own = noise
            return self.moves[k].step(state, own)
        accepts = []
        for move, own in zip(self.moves, noise, strict=True):
            state = move.step(state, own)
            accepts.append(state.accept)
        known = [a for a in accepts if a is not None]
        if known:  # moves that always accept count one
            total = torch.stack(known).sum(0) + (len(accepts) - len(known))
            state.accept = total / len(accepts)
        state.parts = tuple(accepts)
        return state

    def run(
        self, values: Mapping[str, Tensor], k: int, generator: torch.Generator | None = None
    ) -> Values:
        """The values after ``k`` steps from ``values``, detached: for contrastive divergence."""
        state = self.start(values)
        for noise in self.noise(k, state, fresh(generator, self.target, state.values)):
            state = self.step(state, noise)
        return state.values


def fresh(
    generator: torch.Generator | None, target: Target, values: Mapping[str, Tensor] | None = None
) -> torch.Generator:
    """A generator on the target's device: this one, one that it seeds, or fresh entropy."""
    device = target.energy.placement({**target.fixed, **(values or {})})[0]
    if generator is None:
        generator = torch.Generator(device)
        generator.seed()
    elif generator.device.type != device.type:
        seed = torch.randint(2**62, (), generator=generator, device=generator.device)
        generator = torch.Generator(device).manual_seed(int(seed))
    return generator


@torch.no_grad()
def kernel_matrix(
    kernel: Kernel | Any,
    energy: Energy | None = None,
    *,
    fixed: Mapping[str, Tensor] | None = None,
    T: float = 1.0,
    on: str | None = None,
) -> Tensor:
    r"""The transition matrix of a finite kernel, exactly: ``P[new, old]``, columns sum to one.

    States are the joint values of the free variables in the order of ``space.enumerate()``, the
    first variable most significant.

    Parameters
    ----------
    kernel : Kernel or sampling method
        A kernel with finite free variables and at most one row of held values, or a method such as
        ``Gibbs()`` whose kernel for ``energy``, ``fixed`` and ``T`` is taken.
    on : str, optional
        The kernel seen by this variable alone, where it is a Markov chain by itself.

    Examples
    --------
    >>> from groundstate.energy import TableEnergy
    >>> from groundstate.infer import Gibbs
    >>> joint = torch.tensor([[0.4, 0.1], [0.2, 0.3]])
    >>> P = kernel_matrix(Gibbs(scan="random"), TableEnergy(-joint.log()))
    >>> P.sum(0).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    if not isinstance(kernel, Kernel):
        if energy is None:
            raise ValueError(f"kernel_matrix({type(kernel).__name__}(...), energy) needs an energy")
        kernel = kernel.kernel(energy, fixed, T)
    target = kernel.target
    spaces = {n: target.energy.spaces[n] for n in target.free}
    if any(alphabet(s) is None for s in spaces.values()):
        raise Unsupported(
            f"kernel_matrix needs finite variables, got {', '.join(map(repr, spaces.values()))}"
        )
    device, dtype = target.energy.placement(target.fixed)
    grid = Grid(spaces, device=device, dtype=dtype)
    values = grid.shared(torch.arange(grid.size, device=device))
    fixed = {}
    for name, v in target.fixed.items():
        if v.shape[0] != 1:
            raise ValueError(f"kernel_matrix takes one row of held values, got {v.shape[0]}")
        fixed[name] = v.expand(grid.size, *v.shape[1:])
    masks = {n: target.masks[n].expand(grid.size, *spaces[n].shape) for n in target.partly}
    wide = Target(target.energy, fixed, target.T, masks)
    moves = [_rebound(move, wide) for move in kernel.moves]
    total = torch.zeros(grid.size, grid.size, device=device, dtype=dtype)
    product = torch.eye(grid.size, device=device, dtype=dtype)
    for move in moves:
        p = _one(move, values, grid)
        product = p @ product
        total += p / len(moves)
    p = total if kernel.scan == "random" and len(moves) > 1 else product
    return p if on is None else _lump(p, grid, values, on)


def _rebound(move: Move, target: Target) -> Move:
    clone = object.__new__(type(move))
    clone.__dict__.update(move.__dict__, target=target)
    return clone


def _one(move: Move, values: Values, grid: Grid) -> Tensor:
    p = torch.zeros(grid.size, grid.size, device=grid.device, dtype=grid.dtype)
    old = torch.arange(grid.size, device=grid.device)
    for probability, after in move.outcomes(dict(values)):
        p.index_put_((grid.codes(after), old), probability.to(p.dtype), accumulate=True)
    return p


def _lump(p: Tensor, grid: Grid, values: Values, on: str) -> Tensor:
    if on not in grid.spaces:
        raise ValueError(f"{on!r} is not a free variable; there are {', '.join(grid.spaces)}")
    alone = Grid({on: grid.spaces[on]}, device=grid.device, dtype=grid.dtype)
    code = alone.codes({on: values[on]})  # (K,)
    into = torch.zeros(alone.size, grid.size, device=p.device, dtype=p.dtype)
    into.index_add_(0, code, p)  # (k, K): sums over the other variables after the step
    lumped = torch.zeros(alone.size, alone.size, device=p.device, dtype=p.dtype)
    lumped[:, code] = into
    if not torch.allclose(lumped[:, code], into, atol=1e-6):
        raise ValueError(
            f"{on!r} alone is not a Markov chain under this kernel: its next value depends on the "
            "others; put its block last"
        )
    return lumped


class Sampler(Method):
    """Base of the Markov-chain methods: a kernel, run until its draws follow the distribution."""

    operations: ClassVar[frozenset[str]] = frozenset({"sample"})

    @abstractmethod
    def _kernel(self, target: Target) -> Kernel:
        """The transition that leaves the distribution of ``target`` as it is."""

    def kernel(
        self,
        energy: Energy,
        fixed: Mapping[str, Tensor] | None = None,
        T: float = 1.0,
        *,
        masks: Mapping[str, Tensor] | None = None,
    ) -> Kernel:
        """The transition on everything that is not ``fixed``, with the settings as they are."""
        return self._kernel(Target(energy, fixed or {}, T, masks or {}))

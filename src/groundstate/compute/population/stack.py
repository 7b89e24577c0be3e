r"""The population axis: P models of one shape as one tensor program.

Parameters of all members lie in one matrix :math:`\Theta \in \mathbb{R}^{P \times D}`, member p in
row p. One step computes all losses :math:`L_p(\theta_p)` at once and

.. math:: \nabla_\Theta \sum_p L_p(\theta_p) = (\nabla L_1(\theta_1), \dots, \nabla L_P(\theta_P)),

because no member's loss sees another's parameters.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from groundstate.compute.foreign.torch import foreach_copy_
from groundstate.compute.random import Key, seeded
from groundstate.errors import ShapeError, Unsupported

Tensors: TypeAlias = dict[str, Tensor]
Loss: TypeAlias = Callable[[Tensors, Tensors, Any, Any], Tensor]

_ALIGN = 32  # entries; parameters begin at multiples, so that vector loads and cuBLAS are happy


def stack(modules: Sequence[nn.Module]) -> tuple[Tensors, Tensors]:
    """Parameters and buffers of modules of one shape, stacked along a new leading axis P."""
    if not modules:
        raise ShapeError("a population of no modules has no shape; pass at least one.")

    def stacked(parts: list[Mapping[str, Tensor]]) -> Tensors:
        kinds = [(name, t.shape, t.dtype) for name, t in parts[0].items()]
        for p, part in enumerate(parts):
            if [(name, t.shape, t.dtype) for name, t in part.items()] == kinds:
                continue
            for name in {**parts[0], **part}:
                a, b = parts[0].get(name), part.get(name)
                if a is None or b is None or a.shape != b.shape or a.dtype != b.dtype:
                    shapes = [None if t is None else tuple(t.shape) for t in (a, b)]
                    raise ShapeError(
                        f"members 0 and {p} differ in {name!r}: {shapes[0]} and {shapes[1]}; "
                        "a population needs modules of one shape."
                    )
        with torch.no_grad():
            return {name: torch.stack([part[name] for part in parts]) for name in parts[0]}

    parameters = stacked([dict(m.named_parameters()) for m in modules])
    return parameters, stacked([dict(m.named_buffers()) for m in modules])


class Population:
    r"""P modules of one shape with their parameters in one matrix.

    Parameters
    ----------
    modules : sequence of nn.Module
        The members; they are copied.
    device : torch.device or str, optional

    Attributes
    ----------
    flat : Tensor, (P, D)
        All parameters; ``params`` are views of it.
    params : dict of Tensor, (P, ...)
    buffers : dict of Tensor, (P, ...)

    Examples
    --------
    >>> import torch
    >>> population = Population.build(lambda: torch.nn.Linear(3, 2), Key.of(0).split(4))
    >>> population(torch.ones(5, 3)).shape
    torch.Size([4, 5, 2])
    """

    def __init__(
        self, modules: Sequence[nn.Module], device: torch.device | str | None = None
    ) -> None:
        params, buffers = stack(modules)
        if len({t.dtype for t in params.values()}) > 1:
            raise Unsupported(
                "a population needs parameters of one dtype; call .to(torch.float32) on its "
                "modules first."
            )
        self.size = len(modules)
        self.skeleton = copy.deepcopy(modules[0]).to("meta")
        self.places: dict[str, tuple[int, torch.Size]] = {}
        width = 0
        for name, tensor in params.items():
            self.places[name] = width, tensor.shape[1:]
            width += -(-tensor[0].numel() // _ALIGN) * _ALIGN
        first = next(iter(params.values()))
        where = first.device if device is None else torch.device(device)
        self.flat = torch.zeros(self.size, width, dtype=first.dtype, device=where)
        self.buffers = {name: tensor.to(where) for name, tensor in buffers.items()}
        self.params = {
            name: view.detach().requires_grad_() for name, view in self.views(self.flat).items()
        }
        for name, tensor in params.items():
            self.params[name].data.copy_(tensor)

    @classmethod
    def build(
        cls,
        make: Callable[[], nn.Module],
        keys: Sequence[Key],
        device: torch.device | str | None = None,
    ) -> Population:
        """Members made one by one, each from its own key, as it would be made alone."""
        modules = []
        for key in keys:
            with seeded(key):
                modules.append(make())
        return cls(modules, device)

    def views(self, flat: Tensor) -> Tensors:
        """A (P, D) matrix as named tensors (P, ...) that share its memory."""
        return {
            name: flat[:, a : a + shape.numel()].view(-1, *shape)
            for name, (a, shape) in self.places.items()
        }

    def __len__(self) -> int:
        return self.size

    def part(self, members: slice) -> Population:
        """Some of the members; their parameters and buffers are these, not copies."""
        one = copy.copy(self)
        one.flat = self.flat[members]
        one.size = len(one.flat)
        one.buffers = {name: tensor[members] for name, tensor in self.buffers.items()}
        one.params = {n: v.detach().requires_grad_() for n, v in one.views(one.flat).items()}
        return one

    def call(self, params: Tensors, buffers: Tensors, *inputs: Any) -> Any:
        """One member's module with the given parameters; for use inside a loss."""
        return functional_call(self.skeleton, {**params, **buffers}, inputs)

    def __call__(self, *inputs: Tensor, shared: bool = True) -> Any:
        """Outputs of all members, (P, ...), on shared inputs or on inputs (P, ...) of their own."""
        axis = None if shared else 0
        run = vmap(self.call, in_dims=(0, 0) + (axis,) * len(inputs), randomness="different")
        with torch.no_grad():
            return run(dict(self.params), self.buffers, *inputs)

    def losses(self, loss: Loss, batch: Any, weight: Tensor | None, shared: bool = True) -> Tensor:
        r"""The loss of each member.  # (P,)

        Parameters
        ----------
        loss : callable(params, buffers, batch, weight) -> scalar
            One member's loss; it calls the module with `call`.
        batch : tensor or tuple of tensors
            Rows seen by all, (B, ...), or by each, (P, B, ...) with ``shared=False``.
        weight : Tensor, (B,), (P, B) or None
            Row weights; one row of them per member when there are two axes.
        """
        by_member = None if weight is None or weight.ndim == 1 else 0
        dims = (0, 0, None if shared else 0, by_member)
        run = vmap(loss, in_dims=dims, randomness="different")
        out: Tensor = run(self.params, self.buffers, batch, weight)
        return out

    def gradient(self, losses: Tensor, out: Tensor) -> None:
        """Write the gradient of every member's loss into a (P, D) matrix."""
        given = torch.autograd.grad(
            losses.sum(), list(self.params.values()), materialize_grads=True
        )
        foreach_copy_(list(self.views(out).values()), list(given))

    def member(self, p: int) -> nn.Module:
        """Member p as a module of its own."""
        module = copy.deepcopy(self.skeleton).to_empty(device=self.flat.device)
        state = {**self.params, **self.buffers}
        with torch.no_grad():
            for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                tensor.copy_(state[name][p])
        return module

    def unstack(self) -> list[nn.Module]:
        """All members as modules of their own."""
        return [self.member(p) for p in range(self.size)]

    @torch.no_grad()
    def write_back(self, modules: Sequence[nn.Module], prefix: str = "") -> None:
        """Give modules, which members have under a prefix, the parameters and buffers of the members.

        They keep memory of their own, on the device of the population.
        """
        state = {**self.params, **self.buffers}
        values = {name: tensor.detach().unbind() for name, tensor in state.items()}
        targets: list[Tensor] = []
        sources: list[Tensor] = []
        for i, module in enumerate(modules):
            for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                own = values[prefix + name][i]
                if tensor.device == own.device:
                    targets.append(tensor)
                    sources.append(own)
                else:
                    tensor.data = own.clone()
        if targets:
            foreach_copy_(targets, sources)

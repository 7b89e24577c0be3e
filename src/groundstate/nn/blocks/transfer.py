r"""Transfer: the body of a trained network under a new head."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Literal

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError, Unsupported

Freeze = Literal["body", "none"] | int


class Transferred(nn.Module):
    r"""A copied body and a new head; frozen layers keep their bits.

    Parameters of frozen layers have no gradient, and their batch norms stay in evaluation mode, so
    that neither weights nor running means move.

    Parameters
    ----------
    net : the network, its head replaced
    head : name of the head in it
    frozen : names of the frozen layers
    lr_scale : factor on the learning rate of the body; the layer below counts once more where
        ``decay`` is below 1
    decay : factor from layer to layer, from the head down

    Attributes
    ----------
    frozen : list of str
    """

    def __init__(
        self,
        net: nn.Module,
        head: str,
        frozen: list[str] | tuple[str, ...] = (),
        lr_scale: float = 1.0,
        decay: float = 1.0,
    ) -> None:
        super().__init__()
        self.net, self.head, self.lr_scale, self.decay = net, head, float(lr_scale), float(decay)
        self.frozen: list[str] = []
        self.freeze(list(frozen))

    def config(self) -> dict[str, Any]:
        return {
            "net": self.net, "head": self.head, "frozen": self.frozen, "lr_scale": self.lr_scale,
            "decay": self.decay,
        }  # fmt: skip

    def freeze(self, names: list[str]) -> None:
        """Freeze exactly these layers."""
        self.frozen = list(names)
        for name, layer in layers_of(self.net):
            for p in layer.parameters(recurse=False):
                p.requires_grad_(name not in self.frozen)
        self.train(self.training)

    def unfreeze(self, layers: int = 1) -> list[str]:
        """Let the topmost frozen layers learn again; the names of those still frozen."""
        self.freeze(self.frozen[: max(0, len(self.frozen) - layers)])
        return self.frozen

    def train(self, mode: bool = True) -> Transferred:
        super().train(mode)
        for name in self.frozen:
            self.net.get_submodule(name).eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.net(x)
        return result

    def learning_rate_scales(self) -> Iterator[tuple[Tensor, float]]:
        """Every parameter with its factor on the learning rate; the head has 1."""
        body = [(name, layer) for name, layer in layers_of(self.net) if name != self.head]
        for depth, (_, layer) in enumerate(reversed(body)):
            for p in layer.parameters(recurse=False):
                yield p, self.lr_scale * self.decay**depth


def layers_of(net: nn.Module) -> list[tuple[str, nn.Module]]:
    """Layers that own parameters, with their names, in order.

    >>> [name for name, _ in layers_of(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)))]
    ['0', '2']
    """
    return [
        (name, module)
        for name, module in net.named_modules()
        if next(module.parameters(recurse=False), None) is not None
    ]


def transfer(
    source: nn.Module,
    head: nn.Module | int,
    freeze: Freeze = "body",
    lr_scale: float = 1.0,
    *,
    decay: float = 1.0,
    example: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> Transferred:
    r"""Copy a trained network and put a new head on it.

    Parameters
    ----------
    source : trained network, or a fitted estimator's ``module_``; its last linear layer is the head
    head : the new head, or its number of outputs
    freeze : "body" trains the head alone, "none" everything, a number k freezes the first k layers
    lr_scale : factor on the learning rate of the body
    decay : further factor from layer to layer, from the head down
    example : rows of the new task; an input that the body does not take is refused with advice
    generator : source of the new head's weights; None is a fixed seed

    Returns
    -------
    Transferred

    Examples
    --------
    >>> source = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> net = transfer(source, 2)
    >>> net(torch.zeros(5, 4)).shape, net.frozen
    (torch.Size([5, 2]), ['0'])
    """
    if isinstance(source, Transferred):
        source = source.net
    net = deepcopy(source)
    linear = [name for name, layer in layers_of(net) if isinstance(layer, nn.Linear)]
    if not linear or not linear[-1]:
        raise Unsupported(
            "transfer needs a body under its last linear layer; this network has none to keep"
        )
    name = linear[-1]
    old = net.get_submodule(name)
    assert isinstance(old, nn.Linear)
    if isinstance(head, int):
        head = _fresh(old, head, generator)
    net.set_submodule(name, head)
    changed = getattr(net, "head_changed", None)
    if callable(changed) and isinstance(head, nn.Linear):
        changed(head.out_features)
    for p in net.parameters():
        p.requires_grad_(True)
    body = [
        layer for layer, _ in layers_of(net) if layer != name and not layer.startswith(name + ".")
    ]
    if freeze not in ("body", "none") and not (
        isinstance(freeze, int) and 0 <= freeze <= len(body)
    ):
        raise ValueError(
            f"freeze must be 'body', 'none' or 0 to {len(body)} layers, got {freeze!r}"
        )
    frozen = body if freeze == "body" else [] if freeze == "none" else body[: int(freeze)]
    made = Transferred(net, name, frozen, lr_scale, decay)
    if example is not None:
        _try(made, example)
    return made


def _fresh(old: nn.Linear, outputs: int, generator: torch.Generator | None) -> nn.Linear:
    head: nn.Linear = nn.utils.skip_init(
        nn.Linear, old.in_features, outputs, dtype=old.weight.dtype, device=old.weight.device
    )
    bound = (6.0 / (old.in_features + outputs)) ** 0.5
    with torch.no_grad():
        drawn = torch.rand(
            outputs, old.in_features, generator=generator or torch.Generator().manual_seed(0)
        )
        head.weight.copy_(bound * (2 * drawn - 1))
        head.bias.zero_()
    return head


def _try(net: Transferred, example: Tensor) -> None:
    was = net.training
    try:
        with torch.no_grad():
            net.eval()(example[:1])
    except (RuntimeError, ValueError) as error:
        raise ShapeError(
            f"the source network does not take inputs of shape {tuple(example.shape[1:])}: "
            f"{str(error).splitlines()[0]}; transfer keeps the first layers, so bring the new rows "
            "into the form of the old ones (same columns, resized images) or train a new network"
        ) from None
    finally:
        net.train(was)

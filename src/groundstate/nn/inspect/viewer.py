r"""Looking inside a convolutional network: its filters, its maps, and what excites a unit most."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.inspect.meta import run

_CONV = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def filters(net: nn.Module, layer: nn.Module | str | None = None) -> Tensor:
    """The filters of a convolution, ``(C_out, C_in, *kernel)``; by default of the first.

    >>> filters(nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU())).shape
    torch.Size([6, 1, 5, 5])
    """
    where = _found(net, layer)
    if not isinstance(where, _CONV):
        raise Unsupported(f"{layer!r} is no convolution but {type(where).__name__}")
    return where.weight.detach().clone()


def feature_maps(net: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """What every layer with maps makes of images, by name, in the order of execution.

    >>> net = nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2))
    >>> {name: tuple(m.shape) for name, m in feature_maps(net, torch.zeros(2, 1, 28, 28)).items()}
    {'0': (2, 6, 24, 24), '1': (2, 6, 24, 24), '2': (2, 6, 12, 12)}
    """
    seen: dict[str, Tensor] = {}
    handles = []
    for name, part in net.named_modules():
        if not any(True for _ in part.children()):

            def keep(m: nn.Module, given: object, out: object, name: str = name) -> None:
                if isinstance(out, Tensor) and out.ndim > 2:
                    seen[name] = out.detach().clone()

            handles.append(part.register_forward_hook(keep))
    try:
        run(net, x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


def maximise_activation(
    net: nn.Module,
    layer: nn.Module | str,
    unit: int,
    shape: Sequence[int],
    *,
    steps: int = 200,
    lr: float = 0.1,
    low: float = 0.0,
    high: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""An input that excites a unit most, :math:`\arg\max_x h_k(x)` over the box [low, high].

    Inference over x: the energy is :math:`e(x) = -h_k(x)`, with :math:`h_k` the mean of map k over
    places (or the unit itself of a dense layer), lowered by Adam from mid-range noise; pixels are
    clipped to the box after every step, and the best of all steps is given.

    Parameters
    ----------
    net : in evaluation mode while it runs
    layer : a module of the network, or its name
    unit : channel or feature
    shape : of one input
    steps, lr : of the ascent
    low, high : range of pixels
    generator : of the start; None is a fixed seed

    Returns
    -------
    Tensor, ``(1, *shape)``

    Examples
    --------
    >>> net = nn.Conv2d(1, 1, 1, bias=False)
    >>> _ = nn.init.ones_(net.weight)
    >>> maximise_activation(net, net, 0, (1, 2, 2), steps=20).flatten().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    where = _found(net, layer)
    generator = generator or torch.Generator().manual_seed(0)
    like = next(iter(net.parameters()), torch.zeros(()))
    noise = torch.rand(1, *shape, generator=generator).to(like)
    x = (low + (high - low) * (0.4 + 0.2 * noise)).requires_grad_()
    seen: list[Tensor] = []
    handle = where.register_forward_hook(lambda m, a, out: seen.append(out))
    optimiser = torch.optim.Adam([x], lr=lr * (high - low))
    best, most = x.detach().clone(), -torch.inf
    try:
        with torch.enable_grad():
            for _ in range(steps + 1):
                seen.clear()
                run(net, x)
                h = seen[-1]
                if not 0 <= unit < h.shape[1]:
                    raise ShapeError(f"unit={unit} is none of the {h.shape[1]} of layer {layer!r}")
                value = h[:, unit].mean()
                if float(value.detach()) > most:
                    best, most = x.detach().clone(), float(value.detach())
                (slope,) = torch.autograd.grad(-value, x)
                x.grad = slope
                optimiser.step()
                with torch.no_grad():
                    x.clamp_(low, high)
    finally:
        handle.remove()
    return best


def _found(net: nn.Module, layer: nn.Module | str | None) -> nn.Module:
    if isinstance(layer, str):
        return net.get_submodule(layer)
    if layer is not None:
        return layer
    first = next((m for m in net.modules() if isinstance(m, _CONV)), None)
    if first is None:
        raise Unsupported("the network has no convolution; name the layer with layer=")
    return first

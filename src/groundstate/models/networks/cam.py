r"""Class activation maps: where in its input a network sees the evidence for a class.

With feature maps :math:`A_k` of a layer, ``(K, H, W)``,

.. math:: \mathrm{CAM}_c = \sum_k W_{ck}A_k, \qquad
          \mathrm{GradCAM}_c = \mathrm{ReLU}\Bigl(\sum_k w_kA_k\Bigr),\quad
          w_k = \frac1z\sum_{ij}\frac{\partial s_c}{\partial A_{kij}},

with the score :math:`s_c` before the softmax and z the number of places of a map. On a network that
ends in global average pooling and a linear layer the gradients sum to :math:`W_{ck}`, so Grad-CAM is
the positive part of CAM divided by z.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from groundstate.errors import ShapeError, Unsupported

_POOLS = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)
_PASSES = (nn.Flatten, nn.Identity, nn.Dropout)


def cam(model: Any, X: Any, c: int, *, upsample: bool = False) -> Tensor:
    r""":math:`\mathrm{CAM}_c = \sum_k W_{ck}A_k` of a network that ends in GAP and a linear layer.

    Parameters
    ----------
    model : module, or a fitted estimator around one
    X : inputs of the module, ``(B, ...)``
    c : class number
    upsample : to the size of the input, by (bi)linear interpolation

    Returns
    -------
    Tensor, ``(B, H, W)``; its mean over places is the score less the bias

    Examples
    --------
    >>> net = nn.Sequential(nn.Identity(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 1, bias=False))
    >>> _ = net[3].weight.data.copy_(torch.tensor([[0.5, -1.0]]))
    >>> A = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [0.0, 1.0]]]])
    >>> cam(net, A, 0).tolist(), grad_cam(net, A, 0, net[0]).tolist()
    ([[[0.5, 0.0], [1.5, 1.0]]], [[[0.125, 0.0], [0.375, 0.25]]])
    """
    net, x = net_and_rows(model, X)
    pool, last = _gap_and_linear(net)
    _check_class(c, last.out_features)
    seen: list[Tensor] = []
    handle = pool.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.no_grad():
        try:
            _evaluated(net, x)
        finally:
            handle.remove()
        maps = seen[0]  # (B, K, ...)
        found = torch.einsum("k,bk...->b...", last.weight[c].to(maps), maps)
    return _sized(found, x) if upsample else found


def grad_cam(
    model: Any,
    X: Any,
    c: int | Tensor,
    layer: nn.Module | str | None = None,
    *,
    upsample: bool = False,
) -> Tensor:
    r""":math:`\mathrm{ReLU}(\sum_k w_kA_k)` with :math:`w_k` the mean gradient of the score of class c.

    Parameters
    ----------
    model : module, or a fitted estimator around one
    X : inputs of the module, ``(B, ...)``
    c : class number, or one for each input ``(B,)``
    layer : whose feature maps ``(B, K, ...)`` are weighed: a module of the network, its name, or
        None for the last convolution
    upsample : to the size of the input, by (bi)linear interpolation

    Returns
    -------
    Tensor, ``(B, H, W)``
    """
    net, x = net_and_rows(model, X)
    where = _layer(net, layer)
    seen: list[Tensor] = []

    def keep(_: nn.Module, given: Any, out: Tensor) -> Tensor:
        leaf = out.detach().requires_grad_()
        seen.append(leaf)
        return leaf

    handle = where.register_forward_hook(keep)
    try:
        with torch.enable_grad():
            score = _evaluated(net, x)
            if not seen or seen[0].ndim < 3:
                raise Unsupported(
                    "grad_cam needs a layer with maps (B, K, places...); name one with layer="
                )
            each = torch.as_tensor(c, device=score.device).expand(len(score))
            for end in each.aminmax() if len(each) else ():
                _check_class(int(end), score.shape[1])
            chosen = score.gather(1, each[:, None])
            (slope,) = torch.autograd.grad(chosen.sum(), seen[0])
    finally:
        handle.remove()
    w = slope.flatten(2).mean(2)  # (B, K)
    found = torch.einsum("bk,bk...->b...", w, seen[0].detach()).clamp_min(0)
    return _sized(found, x) if upsample else found


def map_layer(net: nn.Module, x: Tensor, least: int = 4) -> nn.Module:
    """The last module that gives maps with ``least`` places or more along both sides; where the input
    is smaller, the last with maps at all.

    >>> net = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.MaxPool2d(4), nn.Conv2d(2, 2, 1))
    >>> map_layer(net, torch.zeros(1, 1, 8, 8)) is net[0]
    True
    """
    seen: list[tuple[int, nn.Module]] = []
    handles = []
    for part in net.modules():
        if part is net:
            continue

        def keep(m: nn.Module, given: Any, out: Any) -> None:
            if isinstance(out, Tensor) and out.ndim == 4:
                seen.append((min(out.shape[2:]), m))

        handles.append(part.register_forward_hook(keep))
    try:
        with torch.no_grad():
            _evaluated(net, x)
    finally:
        for handle in handles:
            handle.remove()
    if not seen:
        raise Unsupported("the network has no maps; name the layer by layer=")
    wide = [m for side, m in seen if side >= least]
    return wide[-1] if wide else seen[-1][1]


def overlay(image: Tensor, heat: Tensor, strength: float = 0.5) -> Tensor:
    """Maps ``(B, H, W)`` over grey or coloured images ``(B, C, H, W)``, as colours in [0, 1].

    The map is stretched to [0, 1] in every image and shown in red; ``(B, 3, H, W)``.
    """
    flat = heat.flatten(1)
    low, high = flat.amin(1), flat.amax(1)
    span = (high - low).clamp_min(torch.finfo(heat.dtype).tiny)
    h = ((heat - low.view(-1, 1, 1)) / span.view(-1, 1, 1))[:, None]
    base = image.expand(-1, 3, -1, -1) if image.shape[1] == 1 else image
    low, high = base.flatten(1).amin(1), base.flatten(1).amax(1)
    span = (high - low).clamp_min(torch.finfo(base.dtype).tiny)
    base = (base - low.view(-1, 1, 1, 1)) / span.view(-1, 1, 1, 1)
    red = base.new_tensor([1.0, 0.0, 0.0]).view(1, 3, 1, 1)
    return base * (1 - strength * h) + red * strength * h


def net_of(model: Any) -> nn.Module:
    """The network of a fitted estimator, or the module itself."""
    if isinstance(model, nn.Module):
        return model
    net = getattr(getattr(model, "energy_", None), "net", None)
    if not isinstance(net, nn.Module):
        raise Unsupported(
            f"looking inside needs a torch module or a fitted estimator around one, got "
            f"{type(model).__name__}"
        )
    return net


def net_and_rows(model: Any, X: Any) -> tuple[nn.Module, Tensor]:
    """A network and its input, of a module or of a fitted estimator around one."""
    net = net_of(model)
    return net, torch.as_tensor(X) if net is model else model._rows(X)[0]


def _evaluated(net: nn.Module, x: Tensor) -> Tensor:
    was = {module: module.training for module in net.modules()}
    try:
        score: Tensor = net.eval()(x)
    finally:
        for module, training in was.items():
            module.training = training
    return score


def _gap_and_linear(net: nn.Module) -> tuple[nn.Module, nn.Linear]:
    """The pooling and the linear layer at the end of a network; an error names ``grad_cam``."""
    leaves = [m for m in net.modules() if not list(m.children()) and not isinstance(m, _PASSES)]
    ends = len(leaves) > 1 and isinstance(leaves[-1], nn.Linear) and isinstance(leaves[-2], _POOLS)
    if not ends or leaves[-2].output_size not in (1, (1,), (1, 1), (1, 1, 1)):
        raise Unsupported(
            "cam needs a network that ends in global average pooling (AdaptiveAvgPool to 1) and one "
            "linear layer; use grad_cam, which works for every network"
        )
    last = leaves[-1]
    assert isinstance(last, nn.Linear)
    return leaves[-2], last


def _layer(net: nn.Module, layer: nn.Module | str | None) -> nn.Module:
    if isinstance(layer, nn.Module):
        return layer
    if isinstance(layer, str):
        return net.get_submodule(layer)
    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
    found = [m for m in net.modules() if isinstance(m, kinds)]
    if not found:
        raise Unsupported("the network has no convolution; name the layer with maps by layer=")
    return found[-1]


def _check_class(c: int, k: int) -> None:
    if not 0 <= c < k:
        raise ShapeError(f"c={c} is no class of a network with {k} scores; use 0 to {k - 1}")


def _sized(maps: Tensor, x: Tensor) -> Tensor:
    size = x.shape[-(maps.ndim - 1) :] if x.ndim > 2 else None
    if size is None:
        raise ShapeError("upsample=True needs inputs that have places, such as (B, 1, H, W)")
    kinds = {1: "linear", 2: "bilinear", 3: "trilinear"}
    kind = kinds[maps.ndim - 1]
    return interpolate(maps[:, None], size=tuple(size), mode=kind, align_corners=False)[:, 0]

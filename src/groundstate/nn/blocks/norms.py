r"""Normalisation layers by name, and population statistics computed exactly after training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from groundstate.compute.foreign.torch import BatchNorm
from groundstate.errors import DataError, Unsupported

KINDS = ("batch", "layer", "instance", "group")
_BATCH = (nn.BatchNorm1d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_INSTANCE = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)


def norm(
    kind: str, features: int, positions: int = 0, *, groups: int = 1, **options: Any
) -> nn.Module:
    r"""A normalisation layer, :math:`\gamma\,(x-m)/\sqrt{v+\varepsilon}+\beta`, by name.

    The kinds differ in the axes over which mean m and biased variance v are taken, for x of shape
    ``(B, C, positions...)``:

    ========== ============================================= ==========================
    batch      batch and positions, per channel              running estimates in eval
    layer      everything of one example                     same in train and eval
    instance   positions, per example and channel            same in train and eval
    group      positions and C/``groups`` channels           same in train and eval
    ========== ============================================= ==========================

    Parameters
    ----------
    kind : one of the above
    features : C
    positions : number of position axes: 0 for rows ``(B, C)``, 1 sequences, 2 images, 3 volumes
    groups : groups of channels, for "group"
    options : for the torch layer (``eps``, ``momentum``, ...)

    Returns
    -------
    The layer of torch: BatchNorm, LayerNorm, InstanceNorm (with :math:`\gamma,\beta`) or GroupNorm;
    "layer" with positions is ``GroupNorm(1, C)``.

    Examples
    --------
    >>> norm("layer", 3, elementwise_affine=False)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[-1.2247,  0.0000,  1.2247]])
    >>> norm("batch", 64, 2)
    BatchNorm2d(64, ...)
    """
    if kind not in KINDS:
        raise Unsupported(f"norm {kind!r} is not known; use one of {', '.join(KINDS)}")
    if positions not in range(4):
        raise ValueError(f"positions counts position axes, 0 to 3, got {positions}")
    if kind == "batch":
        return _BATCH[positions](features, **options)
    if kind == "layer":
        if positions:
            return nn.GroupNorm(1, features, **options)
        return nn.LayerNorm(features, **options)
    if kind == "group":
        if groups < 1 or features % groups:
            raise ValueError(f"{features} channels do not make {groups} equal groups")
        return nn.GroupNorm(groups, features, **options)
    if not positions:
        raise Unsupported(
            "instance norm of rows (B, C) sees one value per channel, which always becomes 0; "
            "use norm 'layer' or 'batch', or positions >= 1"
        )
    return _INSTANCE[positions - 1](features, **{"affine": True, **options})


@torch.no_grad()
def refit_norm(net: nn.Module, loader: Tensor | Iterable[Any]) -> nn.Module:
    r"""Replace running estimates of batch norm layers by the moments of all rows, in place.

    .. math:: \mu_c = \frac1n\sum x_c,\qquad \sigma^2_c = \frac1{n-1}\sum (x_c-\mu_c)^2

    over every row and position that reaches the layer while the layers before it use *their* new
    statistics: one pass over the data per batch norm layer. Momentum, order and size of the
    batches leave no trace; moments are summed in float64.

    Parameters
    ----------
    net : changed in place and returned, its mode as before
    loader : a tensor of inputs, or batches: tensors, or tuples whose first entry is the input

    Examples
    --------
    >>> layer = nn.BatchNorm1d(1)
    >>> _ = refit_norm(layer, torch.tensor([[1.0], [2.0], [3.0], [4.0]]))
    >>> layer.running_mean.item(), round(layer.running_var.item(), 6)
    (2.5, 1.666667)
    """
    layers = [m for m in net.modules() if isinstance(m, BatchNorm) and m.track_running_stats]
    modes = {module: module.training for module in net.modules()}
    batches = _batches(loader)
    net.eval()
    try:
        for layer in layers:
            _refit(net, layer, batches)
    finally:
        for module, training in modes.items():
            module.training = training
    return net


def _batches(loader: Tensor | Iterable[Any]) -> Iterable[Any]:
    if isinstance(loader, Tensor):
        return [loader]
    return loader if hasattr(loader, "__len__") else list(loader)  # read once per layer


def _refit(net: nn.Module, layer: BatchNorm, batches: Iterable[Any]) -> None:
    seen: list[tuple[int, Tensor, Tensor]] = []

    def keep(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        x = args[0].double().transpose(0, 1).flatten(1)  # (C, rows and positions)
        mean = x.mean(1)
        seen.append((x.shape[1], mean, (x - mean[:, None]).square().sum(1)))

    handle = layer.register_forward_pre_hook(keep)
    try:
        for batch in batches:
            first = batch[0] if isinstance(batch, Sequence) else batch
            net(cast(Tensor, first))
    finally:
        handle.remove()
    n = sum(count for count, _, _ in seen)
    if n < 2:
        raise DataError(f"refit_norm needs at least two values per channel, got {n}")
    share = [count / n for count, _, _ in seen]
    mean = torch.stack([s * m for s, (_, m, _) in zip(share, seen)]).sum(0)
    within = torch.stack([q for _, _, q in seen]).sum(0)
    between = torch.stack([c * (m - mean).square() for c, m, _ in seen]).sum(0)
    assert layer.running_mean is not None and layer.running_var is not None
    layer.running_mean.copy_(mean)
    layer.running_var.copy_((within + between) / (n - 1))

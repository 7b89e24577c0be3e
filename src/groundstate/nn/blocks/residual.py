r"""Residual blocks :math:`h + f(h)`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.blocks.activations import activation as make_activation
from groundstate.nn.blocks.contract import blocks, rows_of
from groundstate.nn.blocks.dropout import Dropout
from groundstate.nn.blocks.initialise import init_, linear
from groundstate.nn.blocks.norms import norm as make_norm

SCALES = (1, "depth", "zero")
ORDERS = ("pre", "post")
MERGES = ("add", "concat")
_CONV = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


@blocks.register(
    make=lambda: Residual(dense_branch(3, 4, "tanh"), "auto"), batch=rows_of(3), formula=r"Ph+sf(h)"
)
class Residual(nn.Module):
    r""":math:`h \mapsto P h + s\,f(h)`, with P the identity unless shapes differ; joined channels
    :math:`[Ph, sf(h)]` with ``merge="concat"``.

    K blocks in a row are a sum over :math:`2^K` paths (``unravel``); the Jacobian of one is
    :math:`I + J_f`.

    Parameters
    ----------
    branch : f
    shortcut : P: None (shapes must agree), "auto" (a trainable linear map or 1×1 convolution without
        bias where they differ, with the stride of the branch), or a module
    scale : s: a number, "depth" for :math:`1/\sqrt K`, or "zero" to start with the last layer of
        the branch at 0, so that the block starts as P
    merge : "add", or "concat" along axis 1 (a dense connection, for which shapes may differ there)
    drop_path : in training, the probability with which a row goes without its branch; what remains
        is divided by 1 − p
    depth : K, the number of blocks in the row, for ``scale="depth"``
    generator : source of the initial weights of P

    Examples
    --------
    >>> block = Residual(nn.Linear(3, 3), scale="zero")
    >>> h = torch.tensor([[1.0, 2.0, 3.0]])
    >>> torch.equal(block(h), h)
    True
    """

    def __init__(
        self,
        branch: nn.Module,
        shortcut: str | nn.Module | None = None,
        scale: float | str = 1,
        *,
        merge: str = "add",
        drop_path: float = 0.0,
        depth: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self._given = (shortcut,)  # a tuple: not a submodule a second time
        self.branch, self.scale, self.depth = branch, scale, depth
        if merge not in MERGES:
            raise ValueError(f"merge is one of {', '.join(MERGES)}, got {merge!r}")
        if not 0 <= drop_path < 1:
            raise ValueError(f"drop_path is a probability in [0, 1), got {drop_path}")
        self.merge, self.drop_path = merge, float(drop_path)
        self.factor = 1.0
        if scale == "depth":
            if depth is None or depth < 1:
                raise ValueError(f"scale='depth' needs depth, the number of blocks, got {depth}")
            self.factor = 1 / math.sqrt(depth)
        elif scale == "zero":
            _zero_last(branch)
        elif isinstance(scale, str):
            raise Unsupported(f"scale {scale!r} is not known; use a number, 'depth' or 'zero'")
        else:
            self.factor = float(scale)
        self.project = _projection(branch, shortcut, generator)

    def config(self) -> dict[str, Any]:
        return {"branch": self.branch, "shortcut": self._given[0], "scale": self.scale,
                "merge": self.merge, "drop_path": self.drop_path, "depth": self.depth}  # fmt: skip

    @staticmethod
    def upgrade_config(config: dict[str, Any]) -> dict[str, Any]:
        """An earlier name of the shortcut."""
        return {"shortcut" if k == "project" else k: v for k, v in config.items()}

    def forward(self, h: Tensor) -> Tensor:
        f: Tensor = self.branch(h)
        skip: Tensor = h if self.project is None else self.project(h)
        if self.factor != 1:
            f = self.factor * f
        if self.drop_path and self.training:
            keep = torch.rand(len(f), *(1,) * (f.ndim - 1), device=f.device) >= self.drop_path
            f = f * keep / (1 - self.drop_path)
        if self.merge == "concat":
            return torch.cat([skip, f], 1)
        if f.shape != skip.shape:
            raise ShapeError(
                f"the branch of Residual returned {tuple(f.shape)} where the skip has "
                f"{tuple(skip.shape)}; give shortcut='auto' or a branch that keeps the shape"
            )
        return skip + f

    def extra_repr(self) -> str:
        return f"scale={self.scale!r}"


@dataclass(frozen=True)
class Path:
    """One way through a row of blocks: the branches it takes; its length is their number."""

    branches: tuple[int, ...]

    @property
    def length(self) -> int:
        return len(self.branches)


def unravel(net: nn.Module) -> list[Path]:
    r"""The :math:`2^K` paths through K residual blocks in a row, short ones first.

    Every block is passed by its skip or through its branch: :math:`\binom K\ell` paths have length
    :math:`\ell`, half of all are no longer than K/2.

    Parameters
    ----------
    net : a network with ``Residual`` blocks, in the order of its modules; at most 16 of them

    Examples
    --------
    >>> net = nn.Sequential(*(Residual(nn.Linear(2, 2)) for _ in range(3)))
    >>> [path.branches for path in unravel(net)]
    [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    """
    k = sum(isinstance(module, Residual) for module in net.modules())
    if not 1 <= k <= 16:
        raise Unsupported(f"paths are listed for 1 to 16 residual blocks, the network has {k}")
    return [Path(c) for size in range(k + 1) for c in combinations(range(k), size)]


def dense_branch(
    in_features: int,
    out_features: int,
    activation: str | nn.Module = "relu",
    norm: str | None = None,
    *,
    order: str = "pre",
    bias: bool = True,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """The branch of a dense residual block: norm → activation → linear, or with order="post"
    linear → norm → activation, which adds no negative numbers under ReLU.

    >>> dense_branch(4, 4, norm="layer")
    Sequential(
      (0): LayerNorm((4,), ...)
      (1): ReLU()
      (2): Linear(in_features=4, out_features=4, bias=True)
    )
    """
    if order not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(ORDERS)}, got {order!r}")
    width = in_features if order == "pre" else out_features
    inner: list[nn.Module] = [] if norm is None else [make_norm(norm, width)]
    inner.append(make_activation(activation))
    layer = linear(in_features, out_features, bias)
    made = nn.Sequential(*inner, layer) if order == "pre" else nn.Sequential(layer, *inner)
    if dropout:
        made.append(Dropout(dropout))
    init_(made, "he" if order == "pre" else "auto", generator)
    return made


def _zero_last(branch: nn.Module) -> None:
    weighted = [m for m in branch.modules() if isinstance(getattr(m, "weight", None), Tensor)]
    if not weighted:
        raise Unsupported("scale='zero' needs a branch with a layer that has weights")
    with torch.no_grad():
        for parameter in weighted[-1].parameters(recurse=False):
            parameter.zero_()


def _projection(
    branch: nn.Module, shortcut: str | nn.Module | None, generator: torch.Generator | None
) -> nn.Module | None:
    if shortcut is None or isinstance(shortcut, nn.Module):
        return shortcut
    if shortcut != "auto":
        raise Unsupported(f"shortcut {shortcut!r} is not known; use None, 'auto' or a module")
    convs = [m for m in branch.modules() if isinstance(m, _CONV)]
    if convs:
        return _pointwise(convs, generator)
    dense = [m for m in branch.modules() if isinstance(m, nn.Linear)]
    if not dense:
        raise Unsupported(
            "shortcut='auto' reads widths from linear or convolution layers, the branch has none"
        )
    d_in, d_out = dense[0].in_features, dense[-1].out_features
    if d_in == d_out:
        return None
    return init_(linear(d_in, d_out, bias=False), "lecun", generator)


def _pointwise(
    convs: list[nn.Conv1d | nn.Conv2d | nn.Conv3d], generator: torch.Generator | None
) -> nn.Module | None:
    """A 1×1 convolution with the stride of the branch, where channels or sides change."""
    before, after = convs[0].in_channels, convs[-1].out_channels
    stride = tuple(math.prod(s) for s in zip(*(m.stride for m in convs)))
    if before == after and set(stride) == {1}:
        return None
    kind: Any = type(convs[0])
    with torch.random.fork_rng(devices=[]):  # drawn again below
        made = kind(before, after, 1, stride, bias=False)
    return init_(made, "lecun", generator)

r"""Residual blocks :math:`h + f(h)`."""

from __future__ import annotations

import math
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


@blocks.register(
    make=lambda: Residual(dense_branch(3, 4, "tanh"), "auto"), batch=rows_of(3), formula=r"Ph+sf(h)"
)
class Residual(nn.Module):
    r""":math:`h \mapsto P h + s\,f(h)`, with P the identity unless widths differ.

    K blocks in a row are a sum over :math:`2^K` paths; the Jacobian of one is :math:`I + J_f`.

    Parameters
    ----------
    branch : f
    project : None (widths must agree), "auto" (a trainable linear map without bias where widths
        differ), or a module P
    scale : s: a number, "depth" for :math:`1/\sqrt K`, or "zero" to start with the last layer of
        the branch at 0, so that the block starts as P
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
        project: str | nn.Module | None = None,
        scale: float | str = 1,
        *,
        depth: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self._given = (project,)  # a tuple: not a submodule a second time
        self.branch, self.scale, self.depth = branch, scale, depth
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
        self.project = _projection(branch, project, generator)

    def config(self) -> dict[str, Any]:
        return {"branch": self.branch, "project": self._given[0], "scale": self.scale,
                "depth": self.depth}  # fmt: skip

    def forward(self, h: Tensor) -> Tensor:
        f: Tensor = self.branch(h)
        skip: Tensor = h if self.project is None else self.project(h)
        if f.shape != skip.shape:
            raise ShapeError(
                f"the branch of Residual returned {tuple(f.shape)} where the skip has "
                f"{tuple(skip.shape)}; give project='auto' or a branch that keeps the shape"
            )
        return skip + f if self.factor == 1 else skip + self.factor * f

    def extra_repr(self) -> str:
        return f"scale={self.scale!r}"


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
    branch: nn.Module, project: str | nn.Module | None, generator: torch.Generator | None
) -> nn.Module | None:
    if project is None or isinstance(project, nn.Module):
        return project
    if project != "auto":
        raise Unsupported(f"project {project!r} is not known; use None, 'auto' or a module")
    dense = [m for m in branch.modules() if isinstance(m, nn.Linear)]
    if not dense:
        raise Unsupported("project='auto' reads widths from linear layers, the branch has none")
    d_in, d_out = dense[0].in_features, dense[-1].out_features
    if d_in == d_out:
        return None
    return init_(linear(d_in, d_out, bias=False), "lecun", generator)

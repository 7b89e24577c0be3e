r"""Four graph convolutions with the names and weights of PyTorch Geometric's."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.errors import ShapeError
from groundstate.nn.blocks.initialise import init_, linear
from groundstate.nn.graph.edges import Edges


class GCNConv(nn.Module):
    r"""Neighbours averaged by degree, :math:`\tilde D^{-1/2}(A+I)\tilde D^{-1/2}XW + b`.

    Parameters
    ----------
    in_channels, out_channels : sizes
    bias : whether there is b
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> edges = Edges.of(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)
    >>> GCNConv(4, 2)(torch.ones(3, 4), edges).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        bias: bool = True,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.lin = linear(in_channels, out_channels, bias=False)
        init_(self, "xavier", generator)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None

    def forward(self, x: Tensor, edges: Edges, edge_weight: Tensor | None = None) -> Tensor:
        """``(N, in)`` to ``(N, out)``; weights ``(E,)`` stand in the order of ``edges``, and an edge from a
        node to itself keeps its own in the place of 1."""
        _sized(x, self.in_channels, self)
        looped, old = edges.looped
        if edge_weight is None:
            norm = looped.once(f"norm {x.dtype}", lambda: _norm(looped, (old > -2).to(x.dtype)))
        else:
            given = torch.cat((edge_weight, edge_weight.new_zeros(1)))[old.clamp(min=-1)]
            own = looped.from_target(_loops(edges, edge_weight))
            norm = _norm(looped, torch.where(old == -1, own, given))
        out = looped.propagate(self.lin(x), norm)
        return out if self.bias is None else out + self.bias


class SAGEConv(nn.Module):
    r"""A node and the mean of its neighbours, :math:`W_r x_v + W_l\,\mathrm{mean}_{u\to v}x_u + b`.

    Parameters as ``GCNConv``.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        bias: bool = True,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.bias = in_channels, out_channels, bias
        self.lin_l = linear(in_channels, out_channels, bias)
        self.lin_r = linear(in_channels, out_channels, bias=False)
        init_(self, "xavier", generator)

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        _sized(x, self.in_channels, self)
        size = edges.degree.clamp(min=1).to(x.dtype)[:, None]
        out: Tensor = self.lin_l(edges.propagate(x) / size) + self.lin_r(x)
        return out


class GATConv(nn.Module):
    r"""Attention to neighbours and oneself.

    .. math:: \alpha_{uv} = \operatorname{softmax}_{u\to v}\,\mathrm{LeakyReLU}_{.2}\bigl(
              a_s^\top Wx_u + a_t^\top Wx_v\bigr),\qquad y_v = \sum_u\alpha_{uv}Wx_u + b

    Parameters
    ----------
    in_channels, out_channels : sizes; heads stand side by side, ``heads · out_channels``
    heads : number of attentions
    concat : False takes the mean of the heads
    negative_slope : of the LeakyReLU
    bias : whether there is b
    generator : source of the initial weights; None is a fixed seed
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        bias: bool = True,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        generator = generator or torch.Generator().manual_seed(0)
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.concat, self.negative_slope = concat, negative_slope
        self.lin = linear(in_channels, heads * out_channels, bias=False)
        init_(self.lin, "xavier", generator)
        bound = math.sqrt(6 / (heads + out_channels))
        for name in ("att_src", "att_dst"):
            draw = torch.rand(1, heads, out_channels, generator=generator)
            self.register_parameter(name, nn.Parameter((2 * draw - 1) * bound))
        out = heads * out_channels if concat else out_channels
        self.bias = nn.Parameter(torch.zeros(out)) if bias else None

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        _sized(x, self.in_channels, self)
        looped, old = edges.looped
        h = self.lin(x).unflatten(-1, (self.heads, self.out_channels))  # (N, heads, out)
        source, target = (h * self.att_src).sum(-1), (h * self.att_dst).sum(-1)
        score = looped.from_source(source) + looped.from_target(target)
        score = F.leaky_relu(score, self.negative_slope).masked_fill(
            (old == -2)[:, None], -math.inf
        )
        weight = looped.softmax(score)  # (E, heads)
        by_head = h.transpose(0, 1).contiguous()
        heads = [looped.propagate(v, w) for v, w in zip(by_head, weight.T.contiguous())]
        out = torch.cat(heads, 1) if self.concat else torch.stack(heads).mean(0)
        return out if self.bias is None else out + self.bias


class GINConv(nn.Module):
    r"""A network of a node plus the sum of its neighbours,
    :math:`\mathrm{MLP}((1+\varepsilon)x_v + \sum_{u\to v}x_u)`.

    With an injective network it tells apart the graphs that the Weisfeiler-Leman test tells apart.

    Parameters
    ----------
    nn : the network
    eps : :math:`\varepsilon`
    train_eps : whether it is learned
    """

    def __init__(self, nn: nn.Module, eps: float = 0.0, train_eps: bool = False) -> None:
        super().__init__()
        self.nn, self.train_eps = nn, train_eps
        value = torch.full((1,), float(eps))
        if train_eps:
            self.eps = torch.nn.Parameter(value)
        else:
            self.register_buffer("eps", value)

    def config(self) -> dict[str, object]:
        return {"nn": self.nn, "eps": self.eps.item(), "train_eps": self.train_eps}

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        out: Tensor = self.nn((1 + self.eps) * x + edges.propagate(x))
        return out


def _loops(edges: Edges, weight: Tensor) -> Tensor:
    """Of each node the weight of the edge to itself: its own where it has one, else 1.  # (N,)"""
    loop = (edges.source == edges.target).to(weight.dtype)
    return edges.aggregate(loop * weight).where(edges.aggregate(loop) > 0, 1.0)


def _norm(edges: Edges, weight: Tensor) -> Tensor:
    r""":math:`w_{uv}/\sqrt{d_u d_v}` of every edge, d the weights that come to a node.  # (E,)"""
    degree = edges.aggregate(weight)
    scale = degree.clamp(min=0).rsqrt().where(degree > 0, 0.0)
    return edges.from_source(scale) * weight * edges.from_target(scale)


def _sized(x: Tensor, channels: int, layer: nn.Module) -> None:
    if x.ndim != 2 or x.shape[1] != channels:
        raise ShapeError(
            f"{type(layer).__name__} takes node features (nodes, {channels}), got {tuple(x.shape)}"
        )

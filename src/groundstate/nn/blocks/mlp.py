r"""Fully connected networks, :math:`z_j = W_j a_{j-1} + b_j,\ a_j = \sigma_j(z_j)`."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.blocks.activations import ACTIVATIONS, Maxout
from groundstate.nn.blocks.activations import activation as make_activation
from groundstate.nn.blocks.contract import blocks, rows_of
from groundstate.nn.blocks.dropout import Dropout
from groundstate.nn.blocks.initialise import init_, linear
from groundstate.nn.blocks.norms import norm as make_norm
from groundstate.nn.blocks.residual import Residual, dense_branch

Kind = str | nn.Module


@blocks.register(
    make=lambda: MLP(3, (5, 4), 2, "tanh"),
    batch=rows_of(3),
    formula=r"a_j=\sigma_j(W_ja_{j-1}+b_j)",
)
class MLP(nn.Module):
    r"""A network of dense layers, rows in and rows out.

    .. math:: z_j = a_{j-1}W_j^\top + b_j,\qquad a_j = \sigma_j(z_j),\qquad j = 1,\dots,K+1,

    with :math:`a_0 = x` and a linear last layer unless ``out_activation`` is given. No hidden
    layer, ``hidden_layer_sizes=()``, is a generalised linear model. In the symbols of layer-wise
    notation :math:`\Omega_{j-1} = W_j`, :math:`\beta_{j-1} = b_j`; an input with an appended 1
    has its bias as the last column of W.

    Parameters
    ----------
    in_features : D_0
    hidden_layer_sizes : D_1 … D_K
    out_features : D_{K+1}
    activation : name from ``ACTIVATIONS`` or a module, one for all hidden layers or a list
    out_activation : of the last layer; None is linear
    bias : whether layers have b; a layer that batch norm follows has none
    norm : None, "batch", "layer" or "group": normalise z, or a with ``norm_position="post"``
    dropout : probability of dropping each hidden unit in training
    residual : first layer, then K − 1 blocks :math:`h + f(h)` of norm → activation → linear, a
        projection where widths differ, and norm → activation before the last layer
    init : scheme of ``init_``
    norm_position : "pre" or "post" the activation
    generator : source of the initial weights; None is a fixed seed

    Attributes
    ----------
    depth : K, the number of hidden layers
    widths : (D_1, …, D_K)
    capacity : number of hidden units
    n_parameters : number of trainable numbers
    layers : the layers in order, a ``torch.nn.Sequential``

    Examples
    --------
    >>> net = MLP(3, (4, 2, 3), 2)
    >>> net(torch.zeros(5, 3)).shape, net.depth, net.capacity, net.n_parameters
    (torch.Size([5, 2]), 3, 9, 43)
    """

    def __init__(
        self,
        in_features: int,
        hidden_layer_sizes: Sequence[int] = (100,),
        out_features: int = 1,
        activation: Kind | Sequence[Kind] = "relu",
        out_activation: Kind | None = None,
        bias: bool = True,
        norm: str | None = None,
        dropout: float = 0.0,
        residual: bool = False,
        init: str = "auto",
        *,
        norm_position: str = "pre",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.widths = tuple(hidden_layer_sizes)
        self._kinds = (activation, out_activation)  # a tuple: templates are no submodules
        self.bias, self.norm, self.dropout = bias, norm, float(dropout)
        self.residual, self.init, self.norm_position = residual, init, norm_position
        _check_sizes(in_features, self.widths, out_features)
        if norm_position not in ("pre", "post"):
            raise ValueError(f"norm_position must be 'pre' or 'post', got {norm_position!r}")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout is a probability in [0, 1), got {dropout}")
        kinds = _per_layer(activation, len(self.widths))
        blocks = self._residual(kinds) if residual and kinds else self._plain(kinds)
        if out_activation is not None:
            blocks.append(_made(out_activation))
        self.layers = nn.Sequential(*blocks)
        init_(self, init, generator)

    def _plain(self, kinds: Sequence[Kind]) -> list[nn.Module]:
        batch = self.norm == "batch" and self.norm_position == "pre"
        blocks: list[nn.Module] = []
        before = self.in_features
        for width, kind in zip(self.widths, kinds):
            made = _made(kind)
            pieces = made.k if isinstance(made, Maxout) else 1
            blocks.append(linear(before, width * pieces, self.bias and not batch))
            if self.norm is not None and self.norm_position == "pre":
                blocks.append(make_norm(self.norm, width * pieces))
            blocks.append(made)
            if self.norm is not None and self.norm_position == "post":
                blocks.append(make_norm(self.norm, width))
            if self.dropout:
                blocks.append(Dropout(self.dropout))
            before = width
        return [*blocks, linear(before, self.out_features, self.bias)]

    def _residual(self, kinds: Sequence[Kind]) -> list[nn.Module]:
        if any(isinstance(_made(kind), Maxout) for kind in kinds):
            raise Unsupported("residual=True adds layers of equal width, which maxout changes")
        blocks: list[nn.Module] = [linear(self.in_features, self.widths[0], self.bias)]
        before = self.widths[0]
        for width, kind in zip(self.widths[1:], kinds):
            branch = dense_branch(
                before, width, deepcopy(kind), self.norm, bias=self.bias, dropout=self.dropout
            )
            blocks.append(Residual(branch, "auto"))
            before = width
        if self.norm is not None:
            blocks.append(make_norm(self.norm, before))
        blocks.append(_made(kinds[-1]))
        if self.dropout:
            blocks.append(Dropout(self.dropout))
        return [*blocks, linear(before, self.out_features, self.bias)]

    @property
    def activation(self) -> Kind | Sequence[Kind]:
        """As given."""
        return self._kinds[0]

    @property
    def out_activation(self) -> Kind | None:
        """As given."""
        return self._kinds[1]

    @property
    def depth(self) -> int:
        """K, the number of hidden layers."""
        return len(self.widths)

    @property
    def capacity(self) -> int:
        """Number of hidden units."""
        return sum(self.widths)

    @property
    def n_parameters(self) -> int:
        """Number of trainable numbers."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Widths from input to output."""
        return (self.in_features, *self.widths, self.out_features)

    def config(self) -> dict[str, Any]:
        kinds = self.activation
        return {
            "in_features": self.in_features,
            "hidden_layer_sizes": list(self.widths),
            "out_features": self.out_features,
            "activation": kinds if isinstance(kinds, str | nn.Module) else list(kinds),
            "out_activation": self.out_activation,
            "bias": self.bias,
            "norm": self.norm,
            "dropout": self.dropout,
            "residual": self.residual,
            "init": self.init,
            "norm_position": self.norm_position,
        }

    @staticmethod
    def upgrade_config(config: dict[str, Any]) -> dict[str, Any]:
        """Arguments as files hold them to present ones; early files hold ``sizes``."""
        if "sizes" not in config:
            return config
        first, *hidden, last = config["sizes"]
        return {
            "in_features": first, "hidden_layer_sizes": hidden, "out_features": last,
            "activation": config["activation"], "init": "lecun",
        }  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-1:] != (self.in_features,):
            raise ShapeError(
                f"this MLP maps (B, {self.in_features}) to (B, {self.out_features}), "
                f"got an input of shape {tuple(x.shape)}"
            )
        result: Tensor = self.layers(x)
        return result


def network(
    net: Sequence[int] | nn.Module,
    d_in: int,
    d_out: int,
    generator: torch.Generator | None = None,
    activation: Kind = "tanh",
) -> nn.Module:
    """``net`` itself when it is a module, else an ``MLP`` with these hidden sizes, variance
    1/fan-in.
    """
    if isinstance(net, nn.Module):
        return net
    return MLP(d_in, tuple(net), d_out, activation, init="lecun", generator=generator)


def _made(kind: Kind) -> nn.Module:
    return make_activation(deepcopy(kind))  # a given module serves once per layer


def _per_layer(activation: Kind | Sequence[Kind], depth: int) -> list[Kind]:
    if isinstance(activation, str | nn.Module):
        make_activation(activation)  # an unknown name is an error without hidden layers too
        return [activation] * depth
    kinds = list(activation)
    if len(kinds) != depth:
        raise ValueError(
            f"activation lists one entry per hidden layer: {depth} layers, {len(kinds)} entries"
        )
    return kinds


def _check_sizes(d_in: object, hidden: tuple[object, ...], d_out: object) -> None:
    if isinstance(d_in, Sequence):
        raise TypeError(
            f"MLP takes in_features, hidden_layer_sizes, out_features, got a sequence {d_in} "
            "first; write MLP(2, (8,), 3) for 2 inputs, 8 hidden units and 3 outputs"
        )
    for size in (d_in, *hidden, d_out):
        if not isinstance(size, int) or size < 1:
            raise ValueError(
                f"sizes of an MLP are positive integers, got in_features={d_in}, "
                f"hidden_layer_sizes={hidden}, out_features={d_out}"
            )


__all__ = ["ACTIVATIONS", "MLP", "network"]

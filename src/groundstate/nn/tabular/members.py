r"""Layers of many members that share one matrix: BatchEnsemble."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError
from groundstate.nn.blocks.contract import blocks, rows_of


@blocks.register(
    make=lambda: SharedLinear(3, 2, 4),
    batch=rows_of(4, 3),
    formula=r"s_m\odot W(r_m\odot x_m)/\sqrt{D}+b_m",
)
class SharedLinear(nn.Module):
    r"""A dense layer of M members with one matrix,
    :math:`y_m = s_m \odot \tfrac{1}{\sqrt D}W(r_m \odot x_m) + b_m`, ``(B, M, D)`` to ``(B, M, H)``.

    The matrix of member m is :math:`W \odot s_m r_m^\top`, of which only the two vectors and the
    bias are its own. W starts at N(0, 1): with the factor :math:`1/\sqrt D` (the neural-tangent
    parametrisation) one learning rate fits layers of all widths. ``signs`` starts r at ±1, which
    sets the members apart; for the first layer of a network r is the learned scale of each input.

    Parameters
    ----------
    in_features, out_features : D and H
    members : M
    signs : whether r starts at random signs; else at ones
    chunks : sizes of neighbouring inputs with the same sign, such as the embedding of one column
    generator : of the first values

    Examples
    --------
    >>> SharedLinear(3, 5, members=4)(torch.zeros(2, 4, 3)).shape
    torch.Size([2, 4, 5])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        members: int,
        *,
        signs: bool = False,
        chunks: Sequence[int] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features, self.members = in_features, out_features, members
        self.weight = nn.Parameter(torch.randn(out_features, in_features, generator=generator))
        first = torch.ones(members, in_features)
        if signs:
            sizes = torch.tensor([1] * in_features if chunks is None else list(chunks))
            drawn = torch.randint(2, (members, len(sizes)), generator=generator)
            first = (2.0 * drawn - 1).repeat_interleave(sizes, 1)
        self.r = nn.Parameter(first)
        self.s = nn.Parameter(torch.ones(members, out_features))
        self.bias = nn.Parameter(torch.zeros(members, out_features))

    def config(self) -> dict[str, Any]:
        return {
            "in_features": self.in_features, "out_features": self.out_features,
            "members": self.members,
        }  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-1] != self.in_features or x.shape[-2] not in (1, self.members):
            raise ShapeError(
                f"SharedLinear takes (B, {self.members}, {self.in_features}), got {tuple(x.shape)}"
            )
        y = nn.functional.linear(x * self.r, self.weight / math.sqrt(self.in_features))
        return torch.addcmul(self.bias, y, self.s)


@blocks.register(
    make=lambda: MemberLinear(3, 2, 4), batch=rows_of(4, 3), formula=r"W_mx_m/\sqrt{D}+b_m"
)
class MemberLinear(nn.Module):
    r"""Heads of M members, :math:`y_m = \tfrac{1}{\sqrt D}W_m x_m + b_m`, ``(B, M, D)`` to ``(B, M, H)``.

    Parameters
    ----------
    in_features, out_features : D and H
    members : M
    generator : of the first values
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        members: int,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features, self.members = in_features, out_features, members
        self.weight = nn.Parameter(
            torch.randn(members, in_features, out_features, generator=generator)
        )
        self.bias = nn.Parameter(torch.zeros(members, out_features))

    def config(self) -> dict[str, Any]:
        return {
            "in_features": self.in_features, "out_features": self.out_features,
            "members": self.members,
        }  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        y = torch.bmm(x.transpose(0, 1), self.weight / math.sqrt(self.in_features))
        return y.transpose(0, 1) + self.bias

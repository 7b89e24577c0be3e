r"""Maps that leave some coordinates and move the others by them,
:math:`z_a = x_a,\ z_b = g(x_b;\varphi(x_a))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError
from groundstate.nn.blocks.mlp import MLP
from groundstate.nn.flows.transform import Transform
from groundstate.nn.flows.univariate import univariate


class Coupling(Transform):
    r"""Half of the coordinates decides how the other half moves, :math:`z_a = x_a`,
    :math:`z_b = g(x_b;\varphi(x_a))`; for "affine" :math:`z_b = x_b\odot e^{s(x_a)} + t(x_a)` with
    :math:`s = 3\tanh(\hat s/3)` and log-determinant :math:`\sum s`.

    Both directions are one pass. The identity at the start.

    Parameters
    ----------
    features : d, at least 2
    univariate : "affine" (RealNVP), "shift" (NICE) or "spline"
    context : numbers that the network sees besides :math:`x_a`
    hidden_layer_sizes, activation : of the network; or ``net``, any module from the kept coordinates
        (and the context) to the parameters
    mask : which coordinates stay, ``(d,)`` of booleans; every second one unless given
    bins, bound : of splines
    net : module
    generator : source of the initial weights

    Examples
    --------
    >>> f = Coupling(2)
    >>> f(torch.tensor([[1.0, 2.0]]))[0].tolist()
    [[1.0, 2.0]]
    """

    stays: Tensor
    moves: Tensor
    back: Tensor

    def __init__(
        self,
        features: int,
        univariate: str = "affine",
        context: int = 0,
        hidden_layer_sizes: Sequence[int] = (64, 64),
        activation: str = "relu",
        mask: Sequence[bool] | None = None,
        bins: int = 8,
        bound: float = 5.0,
        net: nn.Module | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if features < 2:
            raise ShapeError(
                f"a coupling needs at least 2 features, one to stay and one to move, got {features}; "
                "use an autoregressive flow ('maf' or 'nsf'), which takes one feature too"
            )
        self.features, self.context = features, context
        self.univariate, self.bins, self.bound = univariate, bins, bound
        self.map = _family(univariate, bins, bound)
        chosen = [i % 2 == 0 for i in range(features)] if mask is None else [bool(m) for m in mask]
        if len(chosen) != features or all(chosen) or not any(chosen):
            raise ShapeError(
                f"mask says for each of {features} features whether it stays, some do and some do "
                f"not; got {chosen}"
            )
        self.mask = tuple(chosen)
        stays = [i for i, m in enumerate(chosen) if m]
        moves = [i for i, m in enumerate(chosen) if not m]
        both = stays + moves
        for name, index in (
            ("stays", stays),
            ("moves", moves),
            ("back", [both.index(i) for i in range(features)]),
        ):
            self.register_buffer(name, torch.tensor(index), persistent=False)
        self.hidden_layer_sizes, self.activation = tuple(hidden_layer_sizes), activation
        self.own = net is not None
        self.net = net or zeroed(
            MLP(
                len(stays) + context, self.hidden_layer_sizes, len(moves) * self.map.size, activation,
                init="torch", generator=generator,
            )
        )  # fmt: skip

    def config(self) -> dict[str, Any]:
        return {
            "features": self.features, "univariate": self.univariate, "context": self.context,
            "hidden_layer_sizes": list(self.hidden_layer_sizes), "activation": self.activation,
            "mask": list(self.mask), "bins": self.bins, "bound": self.bound,
            "net": self.net if self.own else None,
        }  # fmt: skip

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        kept = x.index_select(-1, self.stays)
        moved, log_slope = self.map.forward(
            x.index_select(-1, self.moves), self._phi(kept, context)
        )
        return self._joined(kept, moved, log_slope)

    def inverse(self, z: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        kept = z.index_select(-1, self.stays)
        moved, log_slope = self.map.inverse(
            z.index_select(-1, self.moves), self._phi(kept, context)
        )
        return self._joined(kept, moved, log_slope)

    def _phi(self, kept: Tensor, context: Tensor | None) -> Tensor:
        seen = kept if context is None else torch.cat((kept, context), -1)
        phi: Tensor = self.net(seen)
        return phi.unflatten(-1, (-1, self.map.size))

    def _joined(
        self, kept: Tensor, moved: Tensor, log_slope: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        both = torch.cat((kept, moved), -1).index_select(-1, self.back)
        return both, kept.new_zeros(kept.shape[:-1]) if log_slope is None else log_slope.sum(-1)


_family = univariate  # the parameter of the class has the same name


def zeroed(net: MLP) -> MLP:
    """A network whose last layer is zero: what it parametrises starts as the identity."""
    last = [layer for layer in net.layers if isinstance(layer, nn.Linear)][-1]
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return net

r"""Maps whose Jacobian is triangular, :math:`z_i = g(x_i;\varphi_i(x_{<i}))`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from groundstate.nn.flows.masked import MaskedMLP
from groundstate.nn.flows.transform import Transform
from groundstate.nn.flows.univariate import univariate


class Autoregressive(Transform):
    r"""Each coordinate by a map of one number, whose parameters a masked network gives from the
    coordinates before it, :math:`z_i = g(x_i;\varphi_i(x_{<i}))`.

    ``forward`` is one pass; ``inverse`` finds one coordinate after the other, each hidden unit of the
    network once, so that its work is one pass too, in d steps. The identity at the start.

    Parameters
    ----------
    features : d
    univariate : "affine" (MAF), "spline" (neural spline flow) or "shift"
    context : numbers that all parameters may depend on
    hidden_layer_sizes, activation : of the network
    order : of the coordinates
    bins, bound : of splines
    generator : source of the initial weights

    Examples
    --------
    >>> f = Autoregressive(3, "spline", hidden_layer_sizes=(16,))
    >>> x = torch.tensor([[0.1, -0.4, 2.0]])
    >>> z, ladj = f(x)
    >>> bool(torch.allclose(z, x, atol=1e-5)), bool(torch.allclose(f.inverse(z)[0], x, atol=1e-5))
    (True, True)
    """

    def __init__(
        self,
        features: int,
        univariate: str = "affine",
        context: int = 0,
        hidden_layer_sizes: Sequence[int] = (64, 64),
        activation: str = "relu",
        order: Sequence[int] | None = None,
        bins: int = 8,
        bound: float = 5.0,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.features, self.context = features, context
        self.univariate, self.bins, self.bound = univariate, bins, bound
        self.map = _family(univariate, bins, bound)
        self.net = MaskedMLP(
            features, self.map.size, hidden_layer_sizes, activation, context, order,
            generator=generator,
        )  # fmt: skip

    def config(self) -> dict[str, Any]:
        net = self.net
        return {
            "features": self.features, "univariate": self.univariate, "context": self.context,
            "hidden_layer_sizes": list(net.hidden_layer_sizes), "activation": net.activation,
            "order": list(net.order), "bins": self.bins, "bound": self.bound,
        }  # fmt: skip

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        phi = self.net(x, context).unflatten(-1, (self.features, self.map.size))
        z, log_slope = self.map.forward(x, phi)
        return z, x.new_zeros(x.shape[:-1]) if log_slope is None else log_slope.sum(-1)

    def inverse(self, z: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        steps = self.net.stepper(len(z), context)
        columns: list[Tensor | None] = [None] * self.features
        ladj, value = z.new_zeros(len(z)), None
        for i in self.net.order:
            value, log_slope = self.map.inverse(z[:, i], steps.next(value))
            columns[i] = value
            ladj = ladj if log_slope is None else ladj + log_slope
        return torch.stack(columns, -1), ladj  # type: ignore[arg-type]


_family = univariate  # the parameter of the class has the same name

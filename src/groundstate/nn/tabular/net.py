r"""A network of many members for the columns of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from groundstate.nn.blocks.activations import ACTIVATIONS
from groundstate.nn.blocks.contract import blocks, rows_of
from groundstate.nn.tabular.members import MemberLinear, SharedLinear
from groundstate.nn.tabular.numbers import PeriodicEmbedding, RobustScale
from groundstate.nn.text.words import WordFeatures


class LerpActivation(nn.Module):
    r""":math:`a = (1 - \alpha)z + \alpha\,\sigma(z)` with one learned α for each unit, 1 at first."""

    def __init__(self, units: int, activation: str) -> None:
        super().__init__()
        self.units, self.activation = units, activation
        self.sigma = ACTIVATIONS[activation]()
        self.alpha = nn.Parameter(torch.ones(units))

    def config(self) -> dict[str, Any]:
        return {"units": self.units, "activation": self.activation}

    def learning_rate_scales(self) -> list[tuple[nn.Parameter, float]]:
        """A tenth of the rate of the layers."""
        return [(self.alpha, 0.1)]

    def forward(self, z: Tensor) -> Tensor:
        return torch.lerp(z, self.sigma(z), self.alpha)


@blocks.register(
    make=lambda: TabularNet(3, (4,), 2, members=3, numbers=(0, 2)),
    batch=rows_of(3),
    formula=r"\tfrac1M\sum_m f_m(x)",
)
class TabularNet(nn.Module):
    r"""M members that share most of their parameters read the columns of a table.

    .. math:: h^0 = \text{embed}(\text{scale}(x)),\quad
        h_m^{l+1} = \sigma(s_m^l\odot W^l(r_m^l\odot h_m^l) + b_m^l),\quad f_m(x) = V_m h_m^L + c_m .

    Columns of numbers are scaled by their quantiles, clipped smoothly and embedded by waves; other
    columns, of two values, go on as they are, and columns that a ``reader`` has become its features.
    The answer is the mean of the members' outputs, or for
    ``mean="probabilities"`` the logarithm of the mean of their softmax. Outputs are in units of
    ``gain`` around ``shift``, so that weights of order 1 suit a target of any scale.

    Parameters
    ----------
    features : columns
    hidden : units of every hidden layer
    outputs : of every member
    members : M
    numbers : places of the columns that are embedded; None is all that the reader leaves
    frequencies, size, sigma : of the embedding; ``frequencies=0`` leaves it out
    activation : name of ``groundstate.nn.blocks.activations.ACTIVATIONS``
    dropout : probability of leaving out each hidden unit in a training step
    mean : "outputs" or "probabilities"
    reader : module of columns that are no numbers, such as ``groundstate.nn.text.words.TextColumns``: from
        all columns to ``out_features``, of which it reads ``columns``
    generator : of the first values

    Attributes
    ----------
    scale : RobustScale
    shift, gain : buffers ``(outputs,)``

    Examples
    --------
    >>> net = TabularNet(5, (16,), 3, members=4, mean="probabilities")
    >>> x = torch.randn(7, 5)
    >>> net(x).shape, net.each(x).shape, torch.allclose(net(x).exp().sum(1), torch.ones(7))
    (torch.Size([7, 3]), torch.Size([7, 4, 3]), True)
    """

    shift: Tensor
    gain: Tensor

    def __init__(
        self,
        features: int,
        hidden: Sequence[int],
        outputs: int,
        *,
        members: int = 8,
        numbers: Sequence[int] | None = None,
        frequencies: int = 16,
        size: int = 4,
        sigma: float = 0.1,
        activation: str = "silu",
        dropout: float = 0.0,
        mean: Literal["outputs", "probabilities"] = "outputs",
        reader: Any = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.features, self.hidden, self.outputs = features, tuple(hidden), outputs
        self.reader = reader
        read = set() if reader is None else set(reader.columns)
        self.rest = tuple(i for i in range(features) if i not in read)
        self.numbers = self.rest if numbers is None else tuple(numbers)
        self.members, self.frequencies, self.size = members, frequencies, size
        self.sigma, self.activation, self.dropout, self.mean = sigma, activation, dropout, mean
        self.scale = RobustScale(len(self.rest))
        waves = frequencies > 0 and len(self.numbers) > 0
        self.embed = (
            PeriodicEmbedding(len(self.numbers), frequencies, size, sigma, generator=generator)
            if waves
            else None
        )
        waving = set(self.numbers) if waves else set()
        self._waves = [at for at, i in enumerate(self.rest) if i in waving]
        self.others = tuple(at for at, i in enumerate(self.rest) if i not in waving)
        chunks = [*[size] * len(self._waves), *[1] * len(self.others)]
        chunks += [1] * (0 if reader is None else reader.out_features)
        width = sum(chunks)
        layers: list[nn.Module] = []
        for at, units in enumerate(self.hidden):
            layers += [
                SharedLinear(
                    width, units, members, signs=at == 0, chunks=chunks if at == 0 else None,
                    generator=generator,
                ),
                LerpActivation(units, activation),
                nn.Dropout(dropout),
            ]  # fmt: skip
            width = units
        self.body = nn.Sequential(*layers)
        self.head = MemberLinear(width, outputs, members, generator=generator)
        self.register_buffer("shift", torch.zeros(outputs))
        self.register_buffer("gain", torch.ones(outputs))

    def config(self) -> dict[str, Any]:
        return {
            "features": self.features, "hidden": list(self.hidden), "outputs": self.outputs,
            "members": self.members, "numbers": list(self.numbers),
            "frequencies": self.frequencies, "size": self.size, "sigma": self.sigma,
            "activation": self.activation, "dropout": self.dropout, "mean": self.mean,
            "reader": self.reader,
        }  # fmt: skip

    def single(self) -> None:
        """Weights in single precision; scales of columns and outputs keep theirs."""
        for part in (self.embed, self.reader, self.body, self.head):
            if part is not None:
                part.float()

    def undecayed(self) -> list[nn.Parameter]:
        """Parameters that weight decay would harm: all but the matrices."""
        layers = [
            m for m in self.modules() if isinstance(m, SharedLinear | MemberLinear | WordFeatures)
        ]
        kept = {id(layer.weight) for layer in layers}
        return [p for p in self.parameters() if id(p) not in kept]

    def each(self, x: Tensor) -> Tensor:
        """Outputs of every member in the network's own units, ``(B, M, outputs)``.

        Columns are scaled in the precision they come in, the rest is in that of the weights.
        """
        columns = x if self.reader is None else x[:, list(self.rest)]
        own = self.scale(columns).to(self.head.weight.dtype)
        parts = [] if self.embed is None else [self.embed(own[:, self._waves])]
        parts += [own[:, list(self.others)]] if self.others else []
        parts += [] if self.reader is None else [self.reader(x)]
        x = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
        h = x[:, None].expand(-1, self.members, -1)
        found: Tensor = self.head(self.body(h))
        return found

    def forward(self, x: Tensor) -> Tensor:
        f = self.each(x)  # (B, M, K)
        if self.mean == "outputs":
            return self.shift + self.gain * f.mean(1)
        return torch.logsumexp(torch.log_softmax(f, -1), 1) - math.log(self.members)

r"""A denoiser of rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.nn.blocks.activations import activation as make_activation
from groundstate.nn.denoise.time import LevelEmbedding


class MLPDenoiser(nn.Module):
    r""":math:`h_{l+1} = (1 + a_l)\odot\phi(W_l h_l + b_l) + c_l` with scales :math:`a_l` and shifts
    :math:`c_l` from the embedded noise level and label; the head starts at 0 and sees the row too.

    Parameters
    ----------
    d : size of a row
    q : size of the context y, 0 without
    hidden : units of the layers
    activation : of the layers
    outputs : per coordinate: 1, or 2 where variances are learned
    embedding : size of the embedding of level and label
    n_steps : number T of levels

    Examples
    --------
    >>> net = MLPDenoiser(2, q=3, hidden=(8,))
    >>> net(torch.ones(4, 2), torch.tensor([1, 2, 3, 4]), torch.zeros(4, 3)).abs().max().item()
    0.0
    """

    def __init__(
        self,
        d: int,
        q: int = 0,
        hidden: Sequence[int] = (128, 64),
        activation: str = "silu",
        outputs: int = 1,
        embedding: int = 64,
        n_steps: int = 1000,
    ) -> None:
        super().__init__()
        self._settings = {"d": d, "q": q, "hidden": list(hidden), "activation": activation,
                          "outputs": outputs, "embedding": embedding, "n_steps": n_steps}  # fmt: skip
        self.embed = LevelEmbedding(embedding, q, n_steps)
        sizes = [d, *hidden]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, hidden, strict=False))
        self.films = nn.ModuleList(nn.Linear(embedding, 2 * b) for b in hidden)
        self.act = make_activation(activation)
        self.head = nn.Linear(sizes[-1] + d, outputs * d)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def config(self) -> dict[str, Any]:
        return dict(self._settings)

    def forward(self, x: Tensor, t: Tensor, y: Tensor | None = None) -> Tensor:
        if y is None and len(t) > 1 and t.stride(0) == 0:  # one level for all rows, as in sampling
            t = t[:1]
        cond = self.act(self.embed(t, y))
        h = x
        for layer, film in zip(self.layers, self.films):
            scale, shift = film(cond).chunk(2, 1)
            h = self.act(layer(h)) * (1 + scale) + shift
        out: Tensor = self.head(torch.cat([h, x], 1))
        return out

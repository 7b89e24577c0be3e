r"""Finite distributions listed value by value, as torch distributions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution

from groundstate.energy.spaces import Space
from groundstate.infer.exact.grid import Grid


class ListedDistribution(Distribution):
    r"""The Boltzmann distribution of finite variables, listed: :math:`p_k \propto e^{-e_k/T}`.

    One variable is sampled and scored as a tensor, several as a mapping of tensors.

    Parameters
    ----------
    spaces : the free variables and their finite spaces
    logits : :math:`-e_k/T` in the order of the spaces' values, first variable most significant,
        ``(B, K)``

    Examples
    --------
    >>> from groundstate.energy import Binary
    >>> distribution = ListedDistribution({"x": Binary(2)}, torch.tensor([[0.0, 0.0, 0.0, 1.0]]))
    >>> distribution.mode.tolist(), [round(p, 3) for p in distribution.mean[0].tolist()]
    ([[1.0, 1.0]], [0.65, 0.65])
    """

    has_rsample = False

    def __init__(self, spaces: Mapping[str, Space], logits: Tensor) -> None:
        self.index = Categorical(logits=logits, validate_args=False)
        self.grid = Grid(spaces, device=logits.device, dtype=logits.dtype)
        event = self._single.shape if len(spaces) == 1 else ()
        super().__init__(logits.shape[:1], torch.Size(event), validate_args=False)

    @property
    def _single(self) -> Space:
        return next(iter(self.grid.spaces.values()))

    @property
    def probs(self) -> Tensor:
        """Probabilities of all listed values, ``(B, K)``."""
        return self.index.probs

    def _values(self, index: Tensor) -> Any:
        values = {
            name: v.reshape(*index.shape, *self.grid.spaces[name].shape)
            for name, v in self.grid.shared(index.reshape(-1)).items()
        }
        return next(iter(values.values())) if len(values) == 1 else values

    @property
    def mode(self) -> Any:
        return self._values(self.index.logits.argmax(-1))

    @property
    def mean(self) -> Any:
        """Mean of the values as numbers; of indices for a ``Finite`` variable, rarely wanted."""
        every = self.grid.shared(torch.arange(self.grid.size, device=self.probs.device))
        means = {
            name: torch.einsum("bk,k...->b...", self.probs, v.to(self.probs.dtype))
            for name, v in every.items()
        }
        return next(iter(means.values())) if len(means) == 1 else means

    def sample(self, sample_shape: Any = ()) -> Any:
        return self._values(self.index.sample(torch.Size(sample_shape)))

    def log_prob(self, value: Any) -> Tensor:
        values = value if isinstance(value, Mapping) else {next(iter(self.grid.spaces)): value}
        return self.index.log_prob(self.grid.codes(values))

    def entropy(self) -> Tensor:
        return self.index.entropy()

"""What estimators around flows share: exact densities, draws from the base, and the base as a code."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from groundstate.energy.networks.normalizing_flow import NormalizingFlowEnergy
from groundstate.models.generative.latent import LatentCode
from groundstate.models.generative.network import NetworkGenerator
from groundstate.nn.flows import Flow


class FlowGenerator(LatentCode, NetworkGenerator):
    r"""Base of the estimators whose energy is a flow, :math:`e = -\log p`.

    The code of a row is its point :math:`z = f(x)` of the base, and decoding is exact.

    Attributes
    ----------
    energy_ : NormalizingFlowEnergy
    """

    category_code: ClassVar[str] = "dequantise"
    precision: str = "32"  # log-determinants are sums of logarithms
    energy_: NormalizingFlowEnergy

    @property
    def flow_(self) -> Flow:
        """The fitted flow, a torch module that maps coded rows to the base."""
        return self.energy_.flow

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        return self.energy_.draw(n, y, T, generator)

    def _encode(self, x: Tensor, y: Tensor | None) -> Tensor:
        z: Tensor = self.flow_(x, y)[0]
        return z

    def _decode(self, z: Tensor, y: Tensor | None) -> Tensor:
        return self.flow_.inverse(z, y)[0]

    @property
    def _code_size(self) -> int:
        return self.energy_.features

    def _network_of(self, given: Any) -> Flow:
        """A flow that a user gave, copied."""
        from copy import deepcopy

        if not isinstance(given, Flow):
            raise TypeError(
                f"flow is a name or a groundstate.nn.flows.Flow, got {type(given).__name__}"
            )
        return deepcopy(given)

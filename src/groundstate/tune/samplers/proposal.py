r"""The Boltzmann proposal: which setting to try next, as an energy over settings.

.. math::
    q(\lambda) \propto p_0(\lambda)\,
    \exp\Bigl(\beta\,\frac{\mathrm{EI}(\lambda)}{\max \mathrm{EI}} - \alpha\, d(\lambda,
    \lambda_{\mathrm{best}})\Bigr)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.errors import DataError

if TYPE_CHECKING:
    from groundstate.energy.base import Energy

Floats = NDArray[np.float64]


class Proposal:
    r"""Draws of settings from a finite list of candidates by their expected improvement:

    .. math:: q_i \propto p_{0i} \exp\bigl(\beta\,\mathrm{EI}_i/\max_j \mathrm{EI}_j - \alpha d_i\bigr)

    β = 0 draws from the prior, β = ∞ takes the largest EI, α > 0 stays near the best so far.

    Parameters
    ----------
    log_ei : (m,)
        Logarithm of the expected improvement of each candidate.
    beta, alpha : float
    distance : (m,), optional
        Distance to the best so far in the unit cube, divided by the root of its dimension.
    prior : (m,), optional
        Weights :math:`p_0` of the candidates; equal unless given.
    ei_scale : ``"max"`` divides by the largest EI, ``"raw"`` takes EI as it is

    Examples
    --------
    >>> import numpy as np
    >>> proposal = Proposal(np.log([0.2, 0.1, 0.4]), beta=2.0)
    >>> proposal.probabilities().round(3).tolist()
    [0.231, 0.14, 0.629]
    >>> Proposal(np.log([0.2, 0.1, 0.4]), beta=np.inf).draw(0)
    2
    """

    def __init__(
        self,
        log_ei: Any,
        beta: float = 30.0,
        alpha: float = 0.0,
        distance: Any = None,
        prior: Any = None,
        ei_scale: Literal["max", "raw"] = "max",
    ) -> None:
        self.log_ei = np.asarray(log_ei, np.float64)
        if beta < 0 or alpha < 0 or math.isnan(beta) or not math.isfinite(alpha):
            raise DataError(
                f"beta is at least 0 (inf takes the largest EI) and alpha finite and at least 0, "
                f"got beta={beta}, alpha={alpha}"
            )
        if ei_scale not in ("max", "raw"):
            raise DataError(f"ei_scale is 'max' or 'raw', got {ei_scale!r}")
        if not len(self.log_ei):
            raise DataError("there are no candidates to draw from; pass at least one log_ei")
        self.beta, self.alpha, self.ei_scale = beta, alpha, ei_scale
        self.distance = np.zeros(len(self.log_ei)) if distance is None else np.asarray(distance)
        with np.errstate(divide="ignore"):
            self.log_prior = 0.0 if prior is None else np.log(np.asarray(prior, np.float64))

    def logits(self) -> Floats:
        """Unnormalised log probabilities, for finite beta.  # (m,)"""
        top = self.log_ei.max()
        if self.ei_scale == "raw" or not np.isfinite(top):
            gain = np.exp(self.log_ei)
        else:
            gain = np.exp(self.log_ei - top)
        pull = self.beta * gain if self.beta else np.zeros(len(gain))
        return np.asarray(self.log_prior + pull - self.alpha * self.distance)

    def probabilities(self) -> Floats:
        """Of every candidate.  # (m,)"""
        if math.isinf(self.beta):
            single = np.zeros(len(self.log_ei))
            single[self._largest()] = 1.0
            return single
        logits = self.logits()
        weights = np.exp(logits - logits.max())
        return np.asarray(weights / weights.sum())

    def _largest(self) -> int:
        return int(np.argmax(self.log_ei))

    def draw(self, key: Key | int) -> int:
        """Number of one drawn candidate."""
        if math.isinf(self.beta):
            return self._largest()
        return int(self.propose(1, key)[0])

    def propose(self, k: int, key: Key | int = 0) -> NDArray[np.intp]:
        """Numbers of k candidates, drawn independently.  # (k,)"""
        total = np.cumsum(self.probabilities())
        at = np.searchsorted(total, Key.of(key).uniform(k) * total[-1], side="right")
        return np.minimum(at, len(total) - 1)

    def energy(self) -> Energy:
        """The same as an energy over a finite y; ``groundstate.infer`` minimises or samples it."""
        from groundstate.tune.samplers.proposal_energy import ProposalEnergy

        return ProposalEnergy(self.logits())

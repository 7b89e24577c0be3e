"""What members of one kind may differ in, and how far they are apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.compose.committee import CommitteeClassEnergy
from groundstate.errors import Unsupported
from groundstate.learn.solvers.committee import FitMembers
from groundstate.models import settings
from groundstate.models.ensembles.committees import CommitteeModel
from groundstate.models.ensembles.member import member
from groundstate.models.networks.model import NetworkModel
from groundstate.models.traits import Traits

VARIES = ("init", "order", "bootstrap")


class VariedCommittee(CommitteeModel):
    """Members that differ in their initial weights, in the order of the rows, or in the rows.

    Parameters
    ----------
    vary : sequence of str
        What members differ in: "init", the initial weights, and "order", the order of the rows and
        other choices on the way (only networks can part the two); "bootstrap", rows drawn with
        replacement.
    random_state : int
        From which every member gets a seed of its own.

    Attributes
    ----------
    estimators_ : list of fitted members
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "vary": ["array-like"],
    }

    traits = Traits(scaled_target=True, space={"n_estimators": settings.Whole(3, 30, log=True)})

    vary: Sequence[str]
    n_estimators: int
    random_state: Any

    def _solver(self, X: Tensor, y: Tensor, weight: Tensor | None) -> FitMembers:
        vary = set(self.vary)
        if not vary or not vary <= set(VARIES):
            raise ValueError(f"vary holds {list(self.vary)}; name some of {', '.join(VARIES)}")
        bootstrap, seeds = "bootstrap" in vary, vary & {"init", "order"}
        if len(seeds) == 2:
            plain = super()._solver(X, y, weight)
            return FitMembers(plain.members, bootstrap=bootstrap, threads=plain.threads)
        (base, *_) = self._bases()
        if seeds and not isinstance(base, NetworkModel):
            raise Unsupported(
                f"{type(base).__name__} has one seed for all its choices, so vary={list(self.vary)} "
                "cannot part them; name 'init' and 'order' together, or 'bootstrap' alone"
            )
        key = Key.of(self.random_state).fold("vary")
        k = None if y.is_floating_point() else len(self.classes_)
        each = []
        for t in range(self.n_estimators):
            own = clone(base)
            if "random_state" in own.get_params():
                fixed, free = key.low % 2**31, key.fold("member", t).low % 2**31
                pair = (free if "init" in seeds else fixed, free if "order" in seeds else fixed)
                own.set_params(random_state=pair if isinstance(own, NetworkModel) else fixed)
            each.append(member(own, k, seeds=False))
        return FitMembers(tuple(each), bootstrap=bootstrap, threads=self._threads())

    def predict_members(self, X: Any) -> Any:
        """What every member says: values ``(n_members, n_samples[, n_targets])``, or probabilities
        ``(n_members, n_samples, n_classes)``.
        """
        x, home = self._rows(X)
        energy = self.energy_
        with torch.no_grad():
            if isinstance(energy, CommitteeClassEnergy):
                predictions = [
                    energy.member_log_distribution(m, x).exp() for m in range(len(energy.members))
                ]
                return home.give(torch.stack(predictions))
            values = torch.stack([energy.member_value(m, x) for m in range(len(energy.members))])
        return home.give(values[..., 0] if getattr(self, "_flat_target", False) else values)

    def predict_spread(self, X: Any) -> Any:
        r"""Variance of the members around their mean, ``(n_samples[, n_targets or n_classes])``.

        For squared error the loss of the mean is the mean loss less this spread:
        :math:`(\bar f - y)^2 = \overline{(f_m - y)^2} - \overline{(f_m - \bar f)^2}`.
        """
        predictions = self.predict_members(X)
        if isinstance(predictions, Tensor):
            return predictions.var(0, unbiased=False)
        return np.var(predictions, axis=0)

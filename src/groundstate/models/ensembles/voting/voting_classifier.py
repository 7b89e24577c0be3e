"""The vote or average of different classifiers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.models import settings
from groundstate.models.bayes.gaussian_nb import GaussianNB
from groundstate.models.ensembles.forests.random_forest_classifier import RandomForestClassifier
from groundstate.models.ensembles.voting.votes import Voting
from groundstate.models.roles import EnergyClassifier
from groundstate.models.traits import Traits
from groundstate.models.trees.decision_tree_classifier import DecisionTreeClassifier
from groundstate.registry import models


def _soft(estimator: Any) -> bool:
    if estimator.voting == "hard":
        raise AttributeError("probabilities are not available when voting='hard'")
    return True


@models.register(
    family="ensembles", task="classification", role="classifier", max_rows=2_000, auto=False
)
class VotingClassifier(Voting, EnergyClassifier):
    r"""Classifiers of different kinds on the same rows, averaged or counted.

    .. math::
        e(x, y) = -\log \sum_m a_m p_m(y \mid x), \qquad \sum_m a_m = 1 .

    With ``voting="hard"`` a member is certain of its class, and :math:`e^{-e}` is the share of votes.

    Parameters
    ----------
    voting : {"hard", "soft"}, default="hard"
        Count votes, or average probabilities.
    flatten_transform : bool, default=True
        Shape of ``transform`` with soft voting: ``(n_samples, n_members * n_classes)``, or
        ``(n_members, n_samples, n_classes)``.

    Attributes
    ----------
    estimators_ : list of members, fitted to class numbers
    energy_ : CommitteeClassEnergy

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import GaussianNB, LogisticRegression, VotingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> parts = [("lines", LogisticRegression()), ("bayes", GaussianNB())]
    >>> model = VotingClassifier(parts, voting="soft", weights=[2, 1]).fit(X, y)
    >>> model.predict_proba(X[:1]).round(1).tolist()
    [[1.0, 0.0, 0.0]]
    """

    traits = Traits(space={"voting": settings.Choice("hard", "soft")})

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "voting": [StrOptions({"hard", "soft"})],
        "weights": ["array-like", None],
        "flatten_transform": ["boolean"],
    }

    def __init__(
        self,
        estimators: Any = None,
        *,
        voting: str = "hard",
        weights: Any = None,
        n_jobs: int | None = None,
        flatten_transform: bool = True,
        verbose: bool = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _defaults(self) -> list[tuple[str, Any]]:
        return [
            ("tree", DecisionTreeClassifier(random_state=0)),
            ("bayes", GaussianNB()),
            ("forest", RandomForestClassifier(20, random_state=0)),
        ]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _hard(self) -> bool:  # type: ignore[override]
        return self.voting == "hard"

    @property
    def le_(self) -> LabelEncoder:
        """Labels to class numbers."""
        encoder = LabelEncoder()
        encoder.classes_ = self.classes_
        return encoder

    @available_if(_soft)
    def predict_proba(self, X: Any) -> Any:
        """Averaged class probabilities, ``(n_samples, n_classes)``."""
        return super().predict_proba(X)

    @available_if(_soft)
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the averaged class probabilities, ``(n_samples, n_classes)``."""
        return super().predict_log_proba(X)

    def transform(self, X: Any) -> Any:
        """Votes as class numbers ``(n_samples, n_members)``, or probabilities of the members."""
        x, home = self._rows(X)
        distributions = torch.stack(
            [self.energy_.member_log_distribution(m, x) for m in range(len(self))]
        )
        if self._hard:
            return home.give(distributions.argmax(2).T.contiguous())
        distributions = distributions.exp()  # (members, B, classes)
        if not self.flatten_transform:
            return home.give(distributions)
        return home.give(distributions.movedim(0, 1).flatten(1))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of ``transform``."""
        names = super().get_feature_names_out()
        if self._hard:
            return names
        return np.array([f"{name}{c}" for name in names for c in range(len(self.classes_))], object)

"""One classifier under many seeds."""

from __future__ import annotations

from typing import Any, ClassVar

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.models.ensembles.seeds.varied import VariedCommittee
from groundstate.models.roles import EnergyClassifier
from groundstate.models.trees.decision_tree_classifier import DecisionTreeClassifier
from groundstate.registry import models


@models.register(
    family="ensembles", task="classification", role="classifier", max_rows=2_000, auto=False
)
class SeedEnsembleClassifier(VariedCommittee, EnergyClassifier):
    r"""The average of one model fitted to the same rows with different seeds.

    .. math::
        e(x, y) = -\log \frac1M\sum_{m=1}^M p_m(y \mid x) .

    What is averaged away is the part of the error that comes from the random choices of the
    fit itself: starting weights, mini-batches, columns tried. A model without ``random_state`` gives
    members that are all the same. Networks of one shape are trained side by side, as one program.
    ``predict_spread`` says how far the members are apart.

    Parameters
    ----------
    estimator : classifier of any kind, default=None
        A decision tree that tries a random part of the columns per node unless given.
    voting : "soft" or "hard", default="soft"
        Average the probabilities, or count the votes.

    Attributes
    ----------
    energy_ : CommitteeClassEnergy

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import SeedEnsembleClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SeedEnsembleClassifier(random_state=0).fit(X, y)
    >>> len(model.estimators_), model.score(X, y)
    (10, 1.0)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "voting": [StrOptions({"soft", "hard"})],
    }

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        vary: Any = ("init", "order"),
        voting: str = "soft",
        n_jobs: int | None = None,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    @property
    def _hard(self) -> bool:  # type: ignore[override]
        return self.voting == "hard"

    def _kinds(self) -> list[Any]:
        default = DecisionTreeClassifier(max_features="sqrt")
        return [default if self.estimator is None else self.estimator]

    def _bases(self) -> list[Any]:
        return self._kinds() * self.n_estimators

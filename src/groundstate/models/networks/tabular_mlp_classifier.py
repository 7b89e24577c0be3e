"""Classification by a network for tables."""

from __future__ import annotations

from typing import Any

from groundstate.models.networks.tabular import TabularClassifier
from groundstate.registry import models


@models.register(
    family="networks", task="classification", role="classifier", max_rows=200_000, auto=False,
    shortlist=9, shortlist_rows=50_000,
)  # fmt: skip
class TabularMLPClassifier(TabularClassifier):
    r"""Labels by a network made for tables, of M members that share most of their parameters.

    .. math::
        e(x, y) = -\log\frac1M\sum_{m=1}^M\operatorname{softmax}(f_m(x))_y .

    Numbers are scaled by their quartiles, clipped smoothly and embedded by waves (RealMLP's
    recipe); every member has scales and biases of its own around shared matrices and learns by its
    own loss (TabM's BatchEnsemble). Training keeps the epoch with the best held-out log loss.

    Parameters
    ----------
    label_smoothing : float
        ε: the target is :math:`1 - \varepsilon` of the label and ε spread over all.
    n_iter_no_change : int or inf
        Epochs without a better held-out log loss that end training.

    Attributes
    ----------
    energy_ : NetworkClassEnergy
        ``energy_.net`` is a ``groundstate.nn.tabular.TabularNet``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import TabularMLPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TabularMLPClassifier(max_iter=40, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95, model.predict_proba(X).shape
    (True, (150, 3))
    """

    def __init__(
        self,
        hidden_layer_sizes: Any = (128, 128),
        n_members: int = 8,
        *,
        n_frequencies: int = 16,
        embedding_size: int = 4,
        frequency_scale: float = 0.05,
        activation: str = "silu",
        dropout: float = 0.1,
        weight_decay: float = 0.1,
        label_smoothing: float = 0.0,
        learning_rate_init: float = 0.01,
        schedule: Any = "coslog4",
        batch_size: Any = "auto",
        max_iter: int = 100,
        early_stopping: bool = True,
        validation_fraction: float = 0.15,
        n_iter_no_change: float = 40,
        tol: float = 0.0,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: Any = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

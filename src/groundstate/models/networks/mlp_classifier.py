"""A multilayer perceptron that classifies."""

from __future__ import annotations

from typing import Any

from groundstate.models.networks.answers import NetworkClassifier
from groundstate.models.networks.mlp import (
    MLP_TRAITS,
    biases_of_layers,
    n_layers,
    n_outputs,
    out_activation,
    perceptron,
    weights_of_layers,
)
from groundstate.registry import models


@models.register(
    family="networks",
    task="classification",
    role="classifier",
    max_rows=200_000,
    auto=False,
    shortlist=5,
    shortlist_rows=200_000,
)
class MLPClassifier(NetworkClassifier):
    r"""Labels by a multilayer perceptron.

    .. math::
        e(x, y) = -f_\theta(x)_y, \qquad h_{l+1} = \sigma(W_l h_l + b_l), \qquad
        p(y \mid x) = \operatorname{softmax}(f_\theta(x))_y .

    Learning lowers the cross-entropy plus :math:`\tfrac\alpha2\|W\|^2`. Two classes have one output,
    the log-odds. A target of several columns of zeros and ones is several labels per row, each with a
    probability of its own. Scale the inputs: columns of very different size learn badly.

    Parameters
    ----------
    loss : str or a learning rule, default="log_loss"
        "log_loss" (or "cross_entropy"), "brier", "squared_onehot", "hinge", "focal", "dice",
        "smoothed_cross_entropy", or a rule such as ``groundstate.learn.Margin()``. The decision is
        the label of the largest score; all but "hinge" and "squared_onehot" estimate
        probabilities.

    Attributes
    ----------
    energy_ : NetworkClassEnergy, or NetworkEnergy for several labels
    coefs_, intercepts_ : lists of arrays, (in, out) and (out,)
    n_layers_, n_outputs_ : int
    out_activation_ : str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import MLPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MLPClassifier((20,), solver="lbfgs", max_iter=500, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95, [W.shape for W in model.coefs_]
    (True, [(4, 20), (20, 3)])
    """

    traits = MLP_TRAITS
    _network = perceptron
    coefs_ = weights_of_layers()
    intercepts_ = biases_of_layers()
    n_layers_ = property(n_layers)
    n_outputs_ = property(n_outputs)
    out_activation_ = property(out_activation)

    def __init__(
        self,
        hidden_layer_sizes: Any = (100,),
        activation: str = "relu",
        *,
        solver: str = "adam",
        alpha: float = 0.0001,
        batch_size: Any = "auto",
        learning_rate: str = "constant",
        learning_rate_init: float = 0.001,
        power_t: float = 0.5,
        max_iter: int = 200,
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: Any = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: float = 10,
        max_fun: int = 15000,
        loss: Any = "log_loss",
        dropout: float = 0.0,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

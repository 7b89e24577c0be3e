"""A classifier of texts by the tokens they hold."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.reduce import current
from groundstate.data.text.tokenizer import Tokenizer
from groundstate.energy.base import Energy
from groundstate.energy.basic.net_class import NetClassEnergy
from groundstate.energy.spaces import TokenSequence
from groundstate.models.learned import Learned
from groundstate.models.rows.classifier import RowClassifier
from groundstate.nn.blocks.bags import BagOfTokens
from groundstate.registry import models


@models.register(family="text", task="classification", role="classifier", auto=False, shortlist=2)
class BagOfTokensClassifier(RowClassifier):
    r"""Labels of texts by the mean vote of their tokens.

    .. math:: e(x, y) = -\frac1T\sum_{t=1}^{T} W_{x_t, y} - b_y, \qquad
              p(y \mid x) = \operatorname{softmax}(-e)_y

    X is a list, array or column of strings. The vocabulary is learned from the rows of positive
    weight; all other tokens are one. Learning lowers the cross-entropy plus
    :math:`\tfrac\alpha2\|W\|^2`.

    Parameters
    ----------
    level : "word" or "character", default="word"
        What a token is: a run of letters and digits or a single mark; or a character.
    lowercase : bool, default=True
    min_weight : float, default=1.0
        Least weight of the occurrences of a token in the vocabulary.
    max_tokens : int or None, default=None
        Most tokens of the vocabulary.

    Attributes
    ----------
    tokenizer_ : Tokenizer
    vocabulary_ : tuple of str
    coef_ : (n_classes, vocabulary + 1) array; the first column is of unknown tokens
    intercept_ : (n_classes,) array

    Examples
    --------
    >>> from groundstate import BagOfTokensClassifier
    >>> X = ["a fine day", "what a fine film", "a dull day", "so dull a film"]
    >>> model = BagOfTokensClassifier(random_state=0).fit(X, ["good", "good", "bad", "bad"])
    >>> model.predict(["fine!", "dull."]).tolist()
    ['good', 'bad']
    """

    rows: ClassVar[str] = "text"
    coef_ = Learned(lambda m: m.energy_.net.weight.T)
    intercept_ = Learned(lambda m: m.energy_.net.bias)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "level": [StrOptions({"word", "character"})],
        "lowercase": ["boolean"],
        "min_weight": [Interval(Real, 0, None, closed="left")],
        "max_tokens": [Interval(Integral, 1, None, closed="left"), None],
    }
    tokenizer_: Tokenizer

    def __init__(
        self,
        level: str = "word",
        *,
        lowercase: bool = True,
        min_weight: float = 1.0,
        max_tokens: int | None = None,
        alpha: float = 0.0001,
        learning_rate_init: float = 0.05,
        batch_size: int = 64,
        max_iter: int = 200,
        tol: float = 1e-3,
        n_iter_no_change: float = 10,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _learn_preparation(self, X: Any, weight: Tensor | None) -> None:
        size = None if self.max_tokens is None else self.max_tokens + 1
        self.tokenizer_ = Tokenizer.train(
            kind="word" if self.level == "word" else "char",
            vocab_size=size,
            texts=X,
            weight=None if weight is None else weight.double().tolist(),
            min_frequency=self.min_weight,
            lowercase=self.lowercase,
            reduce=current(),
        )
        self.vocabulary_ = self.tokenizer_.vocabulary[1:]  # 0 stands for all others

    def _prepared(self, X: Any) -> Any:
        return self.tokenizer_.encode(X).to(X.device)

    def _energy(self, X: Any, k: int, generator: torch.Generator) -> Energy:
        size = self.tokenizer_.size
        return NetClassEnergy(TokenSequence(size), k, BagOfTokens(size, k))

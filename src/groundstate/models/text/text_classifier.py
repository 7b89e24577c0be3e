"""Labels of texts, from scratch or from what a language model knows."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import nn

from groundstate.compute.rows import Texts, Tokens
from groundstate.data.text.pieces import framed, shortened
from groundstate.models.networks.seeds import init_key
from groundstate.models.rows.network_roles import RowNetworkClassifier
from groundstate.models.text.task import TextNetwork
from groundstate.nn.text.heads import LabelsTexts
from groundstate.registry import models


@models.register(family="text", task="classification", role="classifier", auto=False, shortlist=1)
class TextClassifier(TextNetwork, RowNetworkClassifier):
    r"""Labels of texts by a network that reads them in order.

    .. math:: e(x, y) = -f_\theta(x)_y,\qquad f_\theta(x) = W\tanh(W_p\,h(x)) + b,\qquad
              p(y\mid x) = \operatorname{softmax}(f_\theta(x))_y

    h is the vector of the first token [CLS] (BERT), or of the last token (GPT, recurrent networks).
    With two classes only the difference of the scores counts, so that the softmax is the sigmoid of
    it. Several labels that hold or not, y of shape ``(n, k)`` with zeros and ones, have a sigmoid each.
    X is a list, array or column of strings; a .csv or .jsonl file with a text and a label in
    each row holds both X and y.

    Attributes
    ----------
    energy_ : NetClassEnergy

    Examples
    --------
    >>> from groundstate import TextClassifier
    >>> X = ["not good", "good", "bad", "not bad", "good indeed", "not good indeed"] * 4
    >>> y = ["-", "+", "-", "+", "+", "-"] * 4
    >>> model = TextClassifier(dim=16, layers=1, heads=2, dropout=0.0, lr=0.01, max_epochs=60,
    ...     patience=None, val_fraction=0.0, random_state=0).fit(X, y)
    >>> model.predict(["not bad", "bad", "not good"]).tolist()
    ['+', '-', '-']
    """

    rows: ClassVar[str] = "text"
    _multi_output: ClassVar[bool] = True

    def __init__(
        self,
        base: Any = None,
        *,
        network: Any = "bert",
        context: int = 128,
        tokenizer: Any = "word",
        vocab_size: int | None = None,
        lowercase: bool = True,
        dim: int = 128,
        layers: int = 2,
        heads: int = 4,
        dropout: float = 0.1,
        network_params: dict[str, Any] | None = None,
        max_epochs: int = 20,
        batch_size: int = 32,
        optimizer: Any = "adamw",
        lr: float = 1e-3,
        weight_decay: float = 0.01,
        val_fraction: float = 0.1,
        patience: int | None = 10,
        schedule: Any = None,
        clip_norm: float | None = 1.0,
        class_weight: Any = None,
        precision: str = "auto",
        compile: bool | str = False,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _prepared(self, X: Any) -> Any:
        if not isinstance(X, Texts):
            return X
        tokens = self.tokenizer_.encode(X)
        rows = framed(shortened(tokens.tokens, self.length_ - 2), *self.frame_)
        return Tokens(rows, tokens.content).to(X.device)

    def _made(self, X: Any, y: Any) -> nn.Module:
        generator = init_key(self.random_state).fold("head").torch()
        encoder = self._encoder(X, y)
        return LabelsTexts(encoder, len(self.classes_), self.dropout, generator=generator)

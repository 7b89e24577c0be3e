"""Classification of tables with columns of text by a network that reads words in their order."""

from __future__ import annotations

from typing import Any, ClassVar

from groundstate.models.networks.tabular import TabularClassifier
from groundstate.models.text.columns.network import TextCNN
from groundstate.registry import models


@models.register(
    family="text", task="classification", role="classifier", max_rows=200_000, auto=False,
    shortlist_text=4, shortlist_rows=20_000,
)  # fmt: skip
class TextCNNClassifier(TextCNN, TabularClassifier):
    r"""Labels by a convolutional network over the words of texts, with numbers beside them.

    .. math::
        e(x, y) = -\log\frac1M\sum_{m=1}^M\operatorname{softmax}(f_m(x))_y, \qquad
        f_m(x) = g_m\Bigl(\frac1{\sqrt T}\sum_t v_{x_t},\
        \max_t\operatorname{relu}(c + \sum_k C_k v_{x_{t+k}}),\ u\Bigr)

    with word vectors v, filters C that see ``window`` neighbouring words (Kim, 2014), the other columns u
    and M heads g that share most of their parameters. All are learned together.

    Parameters
    ----------
    label_smoothing : float
        ε: the target is :math:`1 - \varepsilon` of the label and ε spread over all.

    Attributes
    ----------
    energy_ : NetworkClassEnergy
        ``energy_.net`` is a ``groundstate.nn.tabular.TabularNet``, its ``reader`` knows the words.

    Examples
    --------
    >>> from groundstate import TablePredictor, TextCNNClassifier
    >>> said = ["not good at all", "good indeed", "bad, so bad", "not bad at all", "so good", "bad indeed"]
    >>> rows = {"said": [f"{a} {b}" for a in said for b in ("today", "again", "here", "once more")]}
    >>> y = [label for label in "-+-++-" for _ in range(4)]
    >>> model = TablePredictor(TextCNNClassifier(max_iter=60, early_stopping=False, random_state=0),
    ...                        schema={"said": "text"}).fit(rows, y)
    >>> model.predict({"said": ["not good today", "not bad today"]}).tolist()
    ['-', '+']
    """

    _averages: ClassVar[str] = "probabilities"
    loss = "log_loss"

    def __init__(
        self,
        texts: Any = (),
        *,
        hidden_layer_sizes: Any = (),
        n_members: int = 4,
        word_size: int = 32,
        n_filters: int = 64,
        window: int = 3,
        word_dropout: float = 0.2,
        n_frequencies: int = 16,
        embedding_size: int = 4,
        frequency_scale: float = 0.05,
        activation: str = "silu",
        dropout: float = 0.4,
        weight_decay: float = 0.1,
        label_smoothing: float = 0.0,
        learning_rate_init: float = 0.03,
        schedule: Any = "coslog4",
        batch_size: Any = "auto",
        max_iter: int = 40,
        early_stopping: bool = True,
        validation_fraction: float = 0.15,
        n_iter_no_change: float = 15,
        tol: float = 0.0,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: Any = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

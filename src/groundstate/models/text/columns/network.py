"""What the two networks share that read the columns of text of a table beside its other columns."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.compute.random import Key
from groundstate.errors import DataError
from groundstate.models import settings
from groundstate.models.networks.tabular import TabularModel
from groundstate.models.traits import Cost, Traits
from groundstate.nn.text.words import TextColumns


class TextCNN(TabularModel):
    r"""Members that share most of their parameters read words of texts and numbers beside them.

    Parameters
    ----------
    texts : sequence of (first, behind)
        Columns that hold the numbers of a text's words in their order, 0 behind its end and 1 for
        unknown words; one pair for each text. ``TablePredictor``, and so ``groundstate fit``, makes them of
        columns of text and says where they are. The other columns are numbers.
    word_size : int
        Numbers of a word's vector.
    n_filters : int
        Filters that see neighbouring words.
    window : int
        Words that a filter sees.
    word_dropout : float
        Probability with which a word is unknown in a training step.
    dropout : float
        Probability of leaving out what was read of a text, and each hidden unit, in it.
    hidden_layer_sizes : sequence of int
        Units of hidden layers behind what was read; ``()`` has none.
    """

    traits = Traits(
        words="texts",
        cost=Cost(1.8, rows=0.8, columns=0.0, words=0.7, start=0.2),
        preset=None,
        space={
            "learning_rate_init": settings.Real(5e-3, 1e-1, log=True),
            "dropout": settings.Real(0.1, 0.6),
            "word_dropout": settings.Real(0.0, 0.5),
            "window": settings.Whole(2, 5),
            "weight_decay": settings.Real(1e-2, 1.0, log=True),
        },
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "texts": "no_validation",
        "word_size": [Interval(Integral, 1, None, closed="left")],
        "n_filters": [Interval(Integral, 1, None, closed="left")],
        "window": [Interval(Integral, 1, None, closed="left")],
        "word_dropout": [Interval(Real, 0, 1, closed="left")],
    }

    texts: Any
    word_size: int
    n_filters: int
    window: int
    word_dropout: float

    def _reader(self, X: Tensor, key: Key) -> TextColumns | None:
        spans = []
        for first, behind in self.texts:
            if not 0 <= first < behind <= X.shape[1]:
                raise DataError(
                    f"texts={self.texts!r} names columns {first} to {behind}, but X has {X.shape[1]}; "
                    "each pair is the first column of a text and the one behind its last"
                )
            spans.append((first, behind, max(2, int(X[:, first:behind].max()) + 1)))
        if not spans:
            return None
        return TextColumns(
            spans, dim=self.word_size, filters=self.n_filters, window=self.window,
            dropout=self.dropout, word_dropout=self.word_dropout, generator=key.torch(),
        )  # fmt: skip

"""A label at every step of a sequence, alone or as a chain."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval
from groundstate.compute.reduce import current
from groundstate.compute.rows import Ragged, Words, count
from groundstate.compute.thread_policy import answering
from groundstate.data.reading import as_list
from groundstate.energy.base import Energy
from groundstate.energy.basic.labels import ClassEnergy
from groundstate.energy.sequences.crf import CRFEnergy
from groundstate.energy.spaces import Finite, RaggedOf, Sequence, Space
from groundstate.errors import DataError, ShapeError
from groundstate.math.sequences import span_f1
from groundstate.math.sequences.spans import is_spans
from groundstate.models.networks.seeds import init_key
from groundstate.models.rows.making import make_network
from groundstate.models.rows.network import RowNetwork, pieces
from groundstate.registry import models

CELLS = ("lstm", "gru", "rnn", "transformer")
UNKNOWN = "?"
PARTS = 3  # a word, its ending, its form


@models.register(family="sequences", task="tagging", role="sequence model", auto=False)
class SequenceTagger(RowNetwork):
    r"""A label for every step of a sequence: the words of a sentence, the moments of a signal.

    .. math:: e(x, y) = -\sum_{t} f_\theta(x)_{t,y_t} - \sum_{t} A_{y_{t-1},y_t}, \qquad
              \hat y(x) = \arg\min_y e(x, y)

    A network that reads the sequence from both sides scores every label of every step. With
    ``crf=True`` a table A scores neighbours: a conditional random field, whose normaliser and best
    labels are exact (forward algorithm, Viterbi). Without, A = 0 and steps are independent given x.

    X is a list of lists of words, a list of arrays ``(length, d)``, or a CoNLL file that holds the
    tags too; y has a list of tags for each row.

    Parameters
    ----------
    network : "lstm", "gru", "rnn", "transformer", module, class or function, default="lstm"
        One made by hand maps ragged rows to ragged scores, as ``groundstate.nn.StepScores``.
    crf : bool, default=False
        Whether neighbouring labels score each other.
    min_weight : float, default=1.0
        Least weight of a word, ending or form that gets a vector of its own.

    Attributes
    ----------
    classes_ : (n_classes,) array of tags
    vocabulary_ : tuple of str
        Words, endings and forms that are known; empty where steps are numbers.

    Examples
    --------
    >>> from groundstate import SequenceTagger
    >>> X = [["Ada", "met", "Max"], ["Max", "saw", "Rome"], ["Rome", "fell"]] * 6
    >>> y = [["PER", "-", "PER"], ["PER", "-", "LOC"], ["LOC", "-"]] * 6
    >>> model = SequenceTagger(crf=True, lr=3e-2, max_epochs=20, val_fraction=0, random_state=0)
    >>> model.fit(X, y).predict([["Ada", "saw", "Rome"]]).tolist()
    [['PER', '-', 'LOC']]
    """

    rows: ClassVar[str] = "steps"
    _takes_target: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "crf": ["boolean"],
        "min_weight": [Interval(Real, 0, None, closed="left")],
    }
    classes_: NDArray[Any]
    vocabulary_: tuple[str, ...]

    def __init__(
        self,
        network: Any = "lstm",
        network_params: dict[str, Any] | None = None,
        *,
        crf: bool = False,
        min_weight: float = 1.0,
        max_epochs: int = 50,
        batch_size: int = 32,
        optimizer: Any = "adamw",
        lr: float = 3e-3,
        weight_decay: float = 1e-2,
        val_fraction: float = 0.1,
        patience: int | None = 10,
        schedule: Any = None,
        clip_norm: float | None = 5.0,
        precision: str = "auto",
        compile: bool | str = False,
        warm_start: bool = False,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    # --- steps and tags --------------------------------------------------------------------

    def _row_target(self, y: Any, rows: Any) -> tuple[Ragged, dict[str, Any]]:
        tags = _tags(y)
        if len(tags) != count(rows):
            raise ShapeError(f"X has {count(rows)} rows, y has {len(tags)}; give one for each")
        steps = [len(w) for w in rows.words()] if isinstance(rows, Words) else rows.lengths.tolist()
        for i, (own, n) in enumerate(zip(tags, steps)):
            if len(own) != n:
                raise ShapeError(f"row {i} has {n} steps and {len(own)} tags; give one for each")
        goes_on = (self.warm_start or self._partial) and hasattr(self, "energy_")
        found = np.unique(np.array(list(chain.from_iterable(tags)), dtype=str))
        classes = self.classes_ if goes_on else current().union(found)
        foreign = np.setdiff1d(found, classes)
        if len(foreign):
            raise ValueError(
                f"going on needs the same tags: the model knows {classes.tolist()}, y has "
                f"{foreign.tolist()} as well; use warm_start=False to start anew"
            )
        if len(classes) < 2:
            raise ValueError(f"a tagger needs at least 2 tags in y, got {classes.tolist()}")
        return self._numbers(tags, classes), {} if goes_on else {"classes_": classes}

    def _numbers(self, tags: list[list[str]], classes: NDArray[Any]) -> Ragged:
        flat = np.array(list(chain.from_iterable(tags)), dtype=str)
        unseen = np.setdiff1d(flat, classes)
        if len(unseen):
            raise ValueError(
                f"the tags {unseen.tolist()} were not in y; known are {classes.tolist()}"
            )
        values = torch.from_numpy(np.searchsorted(classes, flat).astype(np.int64))
        lengths = torch.tensor([0, *(len(t) for t in tags)])
        return Ragged(values, lengths.cumsum(0))

    def _example_target(self, X: Any) -> Any:
        made = np.empty(len(X), dtype=object)
        made[:] = [["ab"[t % 2] for t in range(n)] for n in X.lengths.tolist()]
        return made

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        self.vocabulary_ = ()
        if isinstance(X, Words):
            seen: dict[str, float] = defaultdict(float)
            sentences = X.words()
            weights = [1.0] * len(sentences) if weight is None else weight.double().tolist()
            for words, w in zip(sentences, weights, strict=True):
                for feature in chain.from_iterable(map(_features, words)):
                    seen[feature] += w
            least = max(self.min_weight, np.finfo(float).tiny)
            self.vocabulary_ = (UNKNOWN, *sorted(f for f, w in seen.items() if w >= least))

    def _prepared(self, X: Any) -> Ragged:
        words = isinstance(X, Words)
        if words != bool(self.vocabulary_):
            was, got = ("words", "numbers") if self.vocabulary_ else ("numbers", "words")
            raise DataError(f"{type(self).__name__} was fitted to steps of {was}, X holds {got}")
        if not isinstance(X, Words):
            found: Ragged = X
            return found
        number = {feature: i for i, feature in enumerate(self.vocabulary_)}
        sentences = X.words()
        flat = [number.get(f, 0) for w in chain.from_iterable(sentences) for f in _features(w)]
        values = torch.tensor(flat, dtype=torch.int64).reshape(-1, PARTS)
        lengths = torch.tensor([0, *map(len, sentences)])
        return Ragged(values, lengths.cumsum(0)).to(X.device)

    # --- learning --------------------------------------------------------------------------

    def _space(self, X: Any) -> Space:
        if self.vocabulary_:
            return RaggedOf(Sequence(Finite(len(self.vocabulary_)), PARTS))
        return super()._space(X)

    def _sizes(self, X: Ragged, y: Any) -> dict[str, Any]:
        sizes: dict[str, Any] = {"num_classes": len(self.classes_)}
        if self.vocabulary_:
            return {**sizes, "vocab": len(self.vocabulary_)}
        return {**sizes, "in_features": X.item_shape[0]}

    def _made(self, X: Any, y: Any) -> nn.Module:
        key = init_key(self.random_state).fold("init")
        name, given = self.network, self.network_params or {}
        if isinstance(name, str) and name in CELLS:
            name, given = "step_scores", {"cell": name, **given}
        return make_network(name, self._sizes(X, y), given, "sequence", key)

    def _energy_of(self, net: nn.Module, X: Any, y: Any) -> Energy:
        labels = RaggedOf(Finite(len(self.classes_)))
        if self.crf:
            return CRFEnergy(net, self._space(X), labels)
        return ClassEnergy(net, self._space(X), labels, -1, normalise=True)

    # --- answers ---------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """The tags of lowest energy, an array ``(n_samples,)`` of lists."""
        energy: Any = self.energy_
        return self._words_of(self._asked(X, energy.best))

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the tags of every step, an array of arrays ``(length, n_classes)``."""
        energy: Any = self.energy_

        def shares(x: Any) -> Ragged:
            if self.crf:
                found: Ragged = energy.marginals(x)
                return found
            scores = energy.item_scores(x)
            return scores.like(scores.values.exp())

        rows = self._asked(X, shares)
        made = np.empty(len(rows), dtype=object)
        for i, part in enumerate(rows.values.split(rows.lengths.tolist())):
            made[i] = part.cpu().numpy()
        return made

    def _asked(self, X: Any, ask: Any) -> Ragged:
        x, _ = self._rows(X)
        with answering(self.energy_, x):
            return Ragged.join([ask(rows) for rows in pieces(x, self.energy_.placement()[0])])

    def _words_of(self, numbers: Ragged) -> NDArray[Any]:
        made = np.empty(len(numbers), dtype=object)
        tags = self.classes_[numbers.values.cpu().numpy()]
        ends = numbers.offsets.tolist()
        for i in range(len(numbers)):
            made[i] = tags[ends[i] : ends[i + 1]].tolist()
        return made

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """F1 of the spans where tags mark spans (``B-PER I-PER O``), else the share of right tags."""
        tags, found = _tags(y), self.predict(X)
        if len(tags) != len(found):
            raise ShapeError(f"X has {len(found)} rows, y has {len(tags)}; give one for each")
        if is_spans([*self.classes_]):
            return span_f1(tags, found.tolist(), sample_weight=sample_weight).f1
        w = np.ones(len(tags)) if sample_weight is None else np.asarray(sample_weight, float)
        hits = [sum(a == b for a, b in zip(one, two, strict=True)) for one, two in zip(tags, found)]
        return float(np.dot(w, hits) / np.dot(w, [len(t) for t in tags]))

    def _observed(self, values: Any) -> dict[str, Any]:
        y = values.get("y")
        out: dict[str, Any] = super()._observed({k: v for k, v in values.items() if k != "y"})
        if y is not None:
            out["y"] = self._numbers(_tags(y), self.classes_).to(self.energy_.placement()[0])
        return out

    def _decoded(self, name: str, values: Any, home: Any) -> Any:
        if name == "y" and isinstance(values, Ragged):
            return self._words_of(values)
        return super()._decoded(name, values, home)


def _tags(y: Any) -> list[list[str]]:
    """A list of tags for each row."""
    rows = as_list(y)
    if rows is None:
        raise DataError(f"tags are a list of lists, one for each row, got {type(y).__name__}")
    found = [as_list(row) for row in rows]
    wrong = next((i for i, row in enumerate(found) if row is None), None)
    if wrong is not None:
        raise DataError(
            f"row {wrong} of y is {rows[wrong]!r:.60}, expected a list with a tag per step"
        )
    return [[str(tag) for tag in row] for row in found if row is not None]


def _features(word: str) -> tuple[str, str, str]:
    """A word, its last three letters, and its form: X, x, 0 for runs of capitals, others, digits."""
    form = "".join("0" if c.isdigit() else "X" if c.isupper() else "x" if c.isalpha() else c
                   for c in word)  # fmt: skip
    short = "".join(c for i, c in enumerate(form) if not i or c != form[i - 1])
    return f"w:{word}", f"s:{word[-3:].lower()}", f"f:{short}"

"""Tags of the words of a text, from scratch or from what a language model knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from groundstate.compute.reduce import current
from groundstate.compute.rows import Gaps, Ragged, Texts, Tokens
from groundstate.compute.rows.ragged import offsets_of
from groundstate.energy.base import Energy
from groundstate.energy.basic.labels import ClassEnergy
from groundstate.energy.spaces import Finite, RaggedOf
from groundstate.errors import DataError
from groundstate.math.sequences import span_f1
from groundstate.math.sequences.spans import is_spans
from groundstate.models.networks.seeds import init_key
from groundstate.models.rows.network import pieces
from groundstate.models.text.task import TextNetwork
from groundstate.nn.text.heads import TagsWords
from groundstate.registry import models


@models.register(family="text", task="classification", role="sequence model", auto=False)
class TextTagger(TextNetwork):
    r"""A tag for each word of a text.

    .. math:: e(x, y) = -\sum_{w} \log p_\theta(y_w\mid x),\qquad
              p_\theta(\cdot\mid x) = \operatorname{softmax}(W h_w + b)

    :math:`h_w` is the vector of the first token of word w; its other tokens carry no label. X is a
    list of lists of words, or of strings that spaces cut into words; y is the same of tags, as many
    as words. A file with one word and its tag per line and an empty line between sentences
    (CoNLL, .conll) holds both. Words behind the context are not learned from and get the most
    frequent tag.

    Attributes
    ----------
    energy_ : ClassEnergy
    classes_ : (n_tags,) array
    shares_ : (n_tags,) array, how frequent each tag was in training

    Examples
    --------
    >>> from groundstate import TextTagger
    >>> X = ["anna sings", "we see anna", "bruno sings", "we see bruno"] * 6
    >>> y = [["N", "V"], ["P", "V", "N"], ["N", "V"], ["P", "V", "N"]] * 6
    >>> model = TextTagger(dim=16, layers=1, heads=2, dropout=0.0, lr=0.01, max_epochs=30,
    ...     val_fraction=0.0, random_state=0).fit(X, y)
    >>> model.predict([["we", "see", "bruno"]])
    [['P', 'V', 'N']]
    """

    rows: ClassVar[str] = "text"
    _takes_target: ClassVar[bool] = True
    classes_: NDArray[Any]

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
        precision: str = "auto",
        compile: bool | str = False,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    # --- rows and targets ----------------------------------------------------------------

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        return super()._checked(joined(X), y)

    def _rows(self, X: Any) -> Any:
        return super()._rows(joined(X))

    def _example_target(self, X: Any) -> Any:
        return np.array(
            [" ".join("ab"[i % 2] for i, _ in enumerate(t.split())) for t in X.strings()]
        )

    def _row_target(self, y: Any, rows: Any) -> tuple[Any, dict[str, Any]]:
        words = [len(text.split()) for text in rows.strings()]
        given = _tags(y)
        if len(given) != len(words):
            raise DataError(f"X has {len(words)} texts, y has tags of {len(given)}")
        wrong = next((i for i, n in enumerate(words) if n != len(given[i])), None)
        if wrong is not None:
            raise DataError(
                f"text {wrong} has {words[wrong]} words and {len(given[wrong])} tags; give one for "
                "each"
            )
        flat = np.array([tag for tags in given for tag in tags])
        goes_on = (self.warm_start or self._partial) and hasattr(self, "energy_")
        classes = self.classes_ if goes_on else current().union(flat)
        foreign = np.setdiff1d(np.unique(flat), classes)
        if len(foreign):
            raise ValueError(f"going on needs the same tags, y has {foreign.tolist()} as well")
        numbers = torch.from_numpy(np.searchsorted(classes, flat).astype(np.int64))
        tags = Ragged(numbers, offsets_of(torch.tensor(words, dtype=torch.int64)))
        return tags, {"classes_": classes}

    def _prepared(self, X: Any) -> Any:
        if not isinstance(X, Texts):
            return X
        first, last = self.frame_
        rows, places = [], []
        for text in X.strings():
            ids, word = self.tokenizer_.encode_words(text.split())
            ids, word = ids[: self.length_ - 2], word[: self.length_ - 2]
            rows.append(torch.tensor([first, *ids, last]))
            starts = [1 + t for t in range(len(word)) if t == 0 or word[t] != word[t - 1]]
            places.append(torch.tensor(starts, dtype=torch.int64))
        tokens = Tokens.of(Ragged.of(rows, torch.int64), X.to(torch.device("cpu")))
        made = Gaps(tokens.tokens, tokens.content, Ragged.of(places, torch.int64))
        return made.to(X.device)

    def _build(self, X: Any, y: Any, weight: Tensor | None) -> Any:
        plan = super()._build(X, y, weight)
        data: dict[str, Any] = dict(plan.data or {})
        known, tags = data["x"].gaps.lengths, data["y"]
        at = torch.arange(len(tags.values), device=tags.device) - tags.offsets[tags.row]
        data["y"] = Ragged(tags.values[at < known[tags.row]], data["x"].gaps.offsets)
        own = torch.ones(len(tags), dtype=torch.float64) if weight is None else weight.double()
        counts = torch.bincount(tags.values, own.to(tags.device)[tags.row], len(self.classes_))
        shares = current().sum(counts).cpu().numpy()
        self.shares_ = shares / shares.sum()
        plan.data = data
        return plan

    def _made(self, X: Any, y: Any) -> nn.Module:
        generator = init_key(self.random_state).fold("head").torch()
        encoder = self._encoder(X, y)
        return TagsWords(encoder, len(self.classes_), self.dropout, generator=generator)

    def _energy_of(self, net: nn.Module, X: Any, y: Any) -> Energy:
        tags = RaggedOf(Finite(len(self.classes_)))
        return ClassEnergy(net, self._space(X), tags, normalise=True)

    # --- answers -------------------------------------------------------------------------

    def predict(self, X: Any) -> list[list[Any]]:
        """The most probable tag of each word, a list for each text."""
        return [self.classes_[p.argmax(1)].tolist() for p in self.predict_proba(X)]

    @torch.no_grad()
    def predict_proba(self, X: Any) -> list[NDArray[np.float64]]:
        """Probabilities of the tags of each word, ``(n_words, n_tags)`` for each text; behind the context
        how frequent they were in training."""
        texts = joined(X)
        x, _ = self._rows(texts)
        found: list[NDArray[np.float64]] = []
        for part in pieces(x, self.energy_.placement()[0], 64):
            scores = self.energy_.net(part)  # type: ignore[operator]
            shares = scores.values.double().softmax(-1).cpu()
            found += [row.numpy() for row in shares.split(scores.lengths.tolist())]
        rest = [len(t.split()) - len(p) for t, p in zip(texts, found, strict=True)]
        return [np.concatenate([p, np.tile(self.shares_, (n, 1))]) for p, n in zip(found, rest)]

    def energy(self, X: Any, y: Any = None, z: Any = None) -> NDArray[np.float64]:
        """Energy of the tags of each text, ``(n_samples,)``; without tags of the best ones."""
        texts = joined(X)
        x, _ = self._rows(texts)
        given = self.predict(X) if y is None else _tags(y)
        number = {tag: i for i, tag in enumerate(self.classes_.tolist())}
        rows = [torch.tensor([number[t] for t in tags], dtype=torch.int64) for tags in given]
        lengths = x.gaps.lengths.tolist()
        tags = Ragged.of([r[:n] for r, n in zip(rows, lengths, strict=True)], torch.int64)
        with torch.no_grad():
            e = self.energy_(x=x, y=tags.to(x.device))
        return e.double().cpu().numpy()

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """F1 of the spans where tags mark spans (``B-PER I-PER O``), else the share of right tags."""
        given = _tags(y)
        if is_spans(self.classes_.tolist()):
            return span_f1(given, self.predict(X), sample_weight=sample_weight).f1
        w = np.ones(len(given)) if sample_weight is None else np.asarray(sample_weight, float)
        right = [
            sum(a == b for a, b in zip(tags, mine, strict=True))
            for tags, mine in zip(given, self.predict(X), strict=True)
        ]
        return float(w @ right / (w @ [len(tags) for tags in given]))

    @staticmethod
    def upgrade_learned(learned: dict[str, Any]) -> dict[str, Any]:
        """What taggers kept before they gave probabilities: the most frequent tag alone."""
        if "most_frequent_" not in learned:
            return learned
        shares = np.zeros(len(learned["classes_"]))
        shares[int(learned["most_frequent_"])] = 1.0
        return {**{k: v for k, v in learned.items() if k != "most_frequent_"}, "shares_": shares}


def _tags(y: Any) -> list[list[Any]]:
    return [tags.split() if isinstance(tags, str) else list(tags) for tags in y]


def joined(X: Any) -> Any:
    """Lists of words as strings with spaces between them."""
    rows = X if isinstance(X, list | tuple) else None
    if not rows or isinstance(rows[0], str):
        return X if not isinstance(X, Texts) else X.strings()
    for i, row in enumerate(rows):
        wrong = None if isinstance(row, Sequence) else row
        wrong = wrong or next(
            (w for w in row if not isinstance(w, str) or len(w.split()) != 1), None
        )
        if wrong is not None:
            raise DataError(f"text {i} is no list of words without spaces: it holds {wrong!r:.60}")
    return [" ".join(row) for row in rows]

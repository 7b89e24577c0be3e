r"""Vectors of words from the words around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.data.rows import rows_of
from groundstate.data.text.tokenizer import Tokenizer
from groundstate.errors import DataError

F32 = NDArray[np.float32]


class WordVectors(TransformerMixin, BaseEstimator):
    r"""A vector for each word, such that words with the same neighbours are near.

    .. math:: \text{sgns: } e = -\log\sigma(u_w\cdot v_c) - \sum_{n=1}^{N}\log\sigma(-u_w\cdot v_{c_n})
              \qquad \text{glove: } e = \tfrac12 f(x_{wc})(u_w\cdot v_c + b_w + d_c - \log x_{wc})^2

    Skip-gram takes pairs of a word and one of its neighbours, CBOW the mean of all neighbours in
    place of :math:`u_w`; other words :math:`c_n` are drawn in proportion to their frequency to the
    power ¾. GloVe takes counts :math:`x_{wc}` of pairs, nearer ones for more, with
    :math:`f(x) = \min(1, (x/100)^{3/4})`.

    Parameters
    ----------
    method : "sgns", "cbow" or "glove", default="sgns"
    dim : int, default=100
        Numbers of a vector.
    window : int, default=5
        Words on each side at most; the reach of each window is drawn from 1 to this.
    negative : int, default=5
        Drawn words per pair, N.
    min_count : float, default=5
        Least weight of a word's occurrences.
    subsample : float, default=1e-3
        Words more frequent than this are left out at times; 0 keeps all.
    max_epochs : int, default=5
    lr : float or None, default=None
        None is .025 for "sgns", .05 for "cbow" and "glove"; the first two fall to 0.
    random_state : int, generator, key or None

    Attributes
    ----------
    vocabulary_ : tuple of str, the most frequent first
    vectors_ : (n_words, dim) array
    context_ : (n_words, dim) array, the vectors v

    Examples
    --------
    >>> from groundstate.models.text import WordVectors
    >>> from groundstate.data import make_relations
    >>> model = WordVectors(dim=30, max_epochs=20, random_state=0).fit(make_relations(2000))
    >>> model.most_similar(["king", "woman"], ["man"], top=1)[0][0]
    'queen'
    """

    outside: ClassVar[str] = (
        "it learns vectors of words from a corpus by compiled passes, not an energy of rows; save writes "
        "word2vec's text and groundstate.store.save everything"
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "method": [StrOptions({"sgns", "cbow", "glove"})],
        "dim": [Interval(Integral, 1, None, closed="left")],
        "window": [Interval(Integral, 1, None, closed="left")],
        "negative": [Interval(Integral, 1, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        method: str = "sgns",
        dim: int = 100,
        window: int = 5,
        negative: int = 5,
        *,
        min_count: float = 5,
        subsample: float = 1e-3,
        max_epochs: int = 5,
        lr: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.dim = dim
        self.window = window
        self.negative = negative
        self.min_count = min_count
        self.subsample = subsample
        self.max_epochs = max_epochs
        self.lr = lr
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from texts: strings, lists of words, a file or a folder."""
        self._validate_params()
        tokens, offsets = self._tokens(X)
        key = Key.of(self.random_state)
        n = len(self.vocabulary_)
        rng = key.fold("init").numpy()
        self.vectors_ = ((rng.random((n, self.dim)) - 0.5) / self.dim).astype(np.float32)
        self.context_ = np.zeros((n, self.dim), np.float32)
        rate = self.lr or (0.025 if self.method == "sgns" else 0.05)
        if self.method == "glove":
            self._glove(tokens, offsets, rate, key)
            return self
        from groundstate.models.text.word_vectors_numba import windows

        counts = np.bincount(tokens, minlength=n).astype(float)
        keep = np.ones(n)
        if self.subsample > 0:
            ratio = self.subsample * counts.sum() / np.maximum(counts, 1)
            keep = np.minimum(1, np.sqrt(ratio) + ratio)
        powers = counts**0.75
        cumulated = np.cumsum(powers / powers.sum())
        cumulated[-1] = 1.0
        seed = int(key.fold("draws").numpy().integers(1, 2**62))
        windows(
            tokens, offsets, keep, cumulated, self.vectors_, self.context_, self.window,
            self.negative, rate, self.max_epochs, self.method == "cbow", seed,
        )  # fmt: skip
        return self

    def _tokens(self, X: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of known words of all texts, and where texts begin."""
        if isinstance(X, list | tuple) and X and not isinstance(X[0], str):
            counts = Counter(chain.from_iterable(X))
            kept = sorted((-n, w) for w, n in counts.items() if n >= self.min_count)
            if not kept:
                raise DataError(f"no word of the texts occurs {self.min_count:g} times")
            self.vocabulary_ = tuple(w for _, w in kept)
            number = {w: i for i, w in enumerate(self.vocabulary_, 1)}
            flat = np.fromiter((number.get(w, 0) for w in chain.from_iterable(X)), np.int64)
            ends = np.concatenate([[0], np.cumsum([len(text) for text in X])])
        else:
            rows: Any = rows_of(X, "text").rows
            words = Tokenizer.train(texts=rows, kind="word", min_frequency=self.min_count)
            self.vocabulary_ = words.vocabulary[1:]
            found = words.encode(rows).tokens
            flat, ends = found.values.numpy(), found.offsets.numpy()
        known = flat > 0
        offsets = np.concatenate([[0], np.cumsum(known)])[ends]
        return flat[known] - 1, offsets.astype(np.int64)

    def _glove(self, tokens: Any, offsets: Any, rate: float, key: Key) -> None:
        counts = pair_counts(tokens, offsets, self.window, len(self.vocabulary_)).tocoo()
        self._fit_counts(counts, rate, key)

    def _fit_counts(self, counts: Any, rate: float, key: Key) -> None:
        from groundstate.models.text.word_vectors_numba import glove

        n = counts.shape[0]
        rng = key.fold("glove").numpy()
        w, c = ((rng.random((n, self.dim)) - 0.5) / self.dim for _ in range(2))
        b, d = np.zeros(n), np.zeros(n)
        state = [np.ones_like(a) for a in (w, c, b, d)]
        weights = np.minimum(1.0, (counts.data / 100) ** 0.75)
        for _ in range(self.max_epochs):
            order = rng.permutation(len(counts.data))
            glove(
                counts.row,
                counts.col,
                np.log(counts.data),
                weights,
                w,
                c,
                b,
                d,
                *state,
                rate,
                order,
            )
        self.bias_, self.context_bias_ = b, d
        self.vectors_, self.context_ = w.astype(np.float32), c.astype(np.float32)

    # --- answers -------------------------------------------------------------------------

    def __getitem__(self, word: str) -> F32:
        """The vector of a word."""
        found: F32 = self.vectors_[self._number(word)]
        return found

    def _number(self, word: str) -> int:
        check_is_fitted(self, "vectors_")
        if getattr(self, "_numbers_of", None) is not self.vocabulary_:
            self._numbers = {w: i for i, w in enumerate(self.vocabulary_)}
            self._numbers_of = self.vocabulary_
        if word not in self._numbers:
            raise DataError(
                f"{word!r} is no word of this vocabulary of {len(self.vocabulary_)}; it is rarer than "
                "min_count, or was never seen"
            )
        return self._numbers[word]

    def most_similar(
        self, positive: str | Sequence[str], negative: str | Sequence[str] = (), top: int = 10
    ) -> list[tuple[str, float]]:
        """The words nearest to a sum of unit vectors by cosine, those given left out.

        ``most_similar(["king", "woman"], ["man"])`` is king − man + woman.
        """
        plus = [positive] if isinstance(positive, str) else list(positive)
        minus = [negative] if isinstance(negative, str) else list(negative)
        given = [self._number(w) for w in [*plus, *minus]]
        unit = self._unit()
        signs = np.array([1.0] * len(plus) + [-1.0] * len(minus), np.float32)
        query = signs @ unit[given]
        score = unit @ (query / max(float(np.linalg.norm(query)), 1e-12))
        score[given] = -np.inf
        best = np.argsort(-score)[: min(top, len(score) - len(set(given)))]
        return [(self.vocabulary_[i], float(score[i])) for i in best]

    def _unit(self) -> F32:
        norms = np.linalg.norm(self.vectors_, axis=1, keepdims=True)
        return (self.vectors_ / np.maximum(norms, 1e-12)).astype(np.float32)

    def analogies(self, questions: Sequence[tuple[str, str, str, str]]) -> float:
        """Share of questions a : b = c : d whose best answer to b − a + c is d."""
        right = [self.most_similar([b, c], [a], 1)[0][0] == d for a, b, c, d in questions]
        return float(np.mean(right))

    def transform(self, X: Any) -> F32:
        """The mean vector of the known words of each text, ``(n_samples, dim)``; 0 without any."""
        check_is_fitted(self, "vectors_")
        texts: Any = rows_of(X, "text").rows
        numbers = {w: i for i, w in enumerate(self.vocabulary_)}
        out = np.zeros((len(texts), self.vectors_.shape[1]), np.float32)
        for i, text in enumerate(texts.strings()):
            known = [numbers[w] for w in text.split() if w in numbers]
            if known:
                out[i] = self.vectors_[known].mean(0)
        return out

    def save(self, path: str | Path) -> Path:
        """Write word2vec's text: number of words and numbers, then a word and its vector per line."""
        check_is_fitted(self, "vectors_")
        target = Path(path)
        with target.open("w", encoding="utf-8") as file:
            file.write(f"{len(self.vocabulary_)} {self.vectors_.shape[1]}\n")
            for word, vector in zip(self.vocabulary_, self.vectors_, strict=True):
                file.write(f"{word} {' '.join(f'{v:.9g}' for v in vector)}\n")
        return target

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """From word2vec's text."""
        with Path(path).open(encoding="utf-8") as file:
            head = file.readline().split()
            if len(head) != 2 or not all(h.isdigit() for h in head):
                raise DataError(f"{path} begins with {' '.join(head)!r:.60}, expected two numbers")
            rows = [line.rstrip("\n").rsplit(" ", int(head[1])) for line in file]
        model = cls(dim=int(head[1]))
        model.vocabulary_ = tuple(row[0] for row in rows)
        model.vectors_ = np.array([row[1:] for row in rows], np.float32)
        return model


def pair_counts(tokens: Any, offsets: Any, window: int, n: int) -> Any:
    """How often two words stand near each other, each pair for one over its distance, ``(n, n)``."""
    text = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    total = sp.csr_array((n, n))
    for k in range(1, window + 1):
        same = text[k:] == text[:-k]
        a, b = tokens[:-k][same], tokens[k:][same]
        both = (np.concatenate([a, b]), np.concatenate([b, a]))
        total = total + sp.coo_array((np.full(len(both[0]), 1 / k), both), shape=(n, n)).tocsr()
    return total

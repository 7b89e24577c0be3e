"""Texts to token numbers: words between spaces, or single characters."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import torch

from groundstate.compute.rows import Ragged, Texts, Tokens
from groundstate.compute.rows.ragged import offsets_of
from groundstate.errors import DataError

UNKNOWN = 0  # the number of tokens that are not in the vocabulary
_WORDS = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Tokenizer:
    """A vocabulary and how texts are cut into its tokens.

    Parameters
    ----------
    level : "word" (runs of letters and digits, and single marks) or "character"
    lowercase : whether "The" is "the"
    vocabulary : tokens 1, 2, ...; 0 stands for all others

    Examples
    --------
    >>> texts = Texts.of(["the cat", "the dog!"])
    >>> tokenizer = Tokenizer().learn(texts)
    >>> tokenizer.vocabulary
    ('the', '!', 'cat', 'dog')
    >>> tokenizer.encode(Texts.of(["The cow"])).tokens.values.tolist()
    [1, 0]
    """

    level: Literal["word", "character"] = "word"
    lowercase: bool = True
    vocabulary: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.level not in ("word", "character"):
            raise DataError(f"level must be 'word' or 'character', got {self.level!r}")

    @property
    def size(self) -> int:
        """Token numbers, the one of unknown tokens included."""
        return len(self.vocabulary) + 1

    def cut(self, text: str) -> list[str]:
        """The tokens of one text."""
        text = text.lower() if self.lowercase else text
        return _WORDS.findall(text) if self.level == "word" else list(text)

    def learn(
        self,
        texts: Texts,
        weight: Sequence[float] | None = None,
        *,
        min_weight: float = 1.0,
        max_tokens: int | None = None,
    ) -> Tokenizer:
        """A tokenizer with the vocabulary of these texts, the most frequent tokens first.

        Parameters
        ----------
        texts, weight : rows; a text of weight 2 counts twice, one of weight 0 not at all
        min_weight : least weight of the texts' occurrences of a token
        max_tokens : most tokens that are kept
        """
        counts: defaultdict[str, float] = defaultdict(float)
        weights = [1.0] * len(texts) if weight is None else list(weight)
        for text, w in zip(texts.strings(), weights, strict=True):
            for token, times in Counter(self.cut(text)).items() if w > 0 else ():
                counts[token] += w * times
        kept = [t for t, n in counts.items() if n >= min_weight]
        kept.sort(key=lambda t: (-counts[t], t))
        if not kept:
            raise DataError(f"no token of {texts} has a weight of at least {min_weight}")
        return Tokenizer(self.level, self.lowercase, tuple(kept[:max_tokens]))

    def encode(self, texts: Texts) -> Tokens:
        """Token numbers of texts."""
        number = {token: i for i, token in enumerate(self.vocabulary, 1)}
        cut = [self.cut(text) for text in texts.strings()]
        lengths = torch.tensor([len(c) for c in cut], dtype=torch.int64)
        flat = [number.get(token, UNKNOWN) for token in chain.from_iterable(cut)]
        rows = Ragged(torch.tensor(flat, dtype=torch.int64), offsets_of(lengths))
        return Tokens.of(rows, texts)

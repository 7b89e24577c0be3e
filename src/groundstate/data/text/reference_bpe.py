"""Byte-pair encoding in a few lines: what fast tokenizers are checked against."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

Pair = tuple[int, int]


@dataclass(frozen=True)
class BPE:
    """Merges in their order, their counts, and lengths of all words before and after each."""

    tokens: list[str]
    merges: dict[Pair, int]
    counts: list[int]
    lengths: list[int]

    def encode(self, word: str) -> list[str]:
        ids = [self.tokens.index(sign) for sign in word]
        for pair, new in self.merges.items():
            ids = merge(ids, pair, new)
        return [self.tokens[i] for i in ids]


def merge(ids: list[int], pair: Pair, new: int) -> list[int]:
    """Every occurrence of a pair, from the left, becomes one token."""
    out, at = [], 0
    while at < len(ids):
        both = tuple(ids[at : at + 2]) == pair
        out.append(new if both else ids[at])
        at += 2 if both else 1
    return out


def reference_bpe(words: Mapping[str, int], vocab_size: int, min_frequency: int = 2) -> BPE:
    """Merge the most frequent neighbours; ties go to the smallest (left number, right number).

    >>> found = reference_bpe({"low": 5, "lower": 2, "newest": 6, "widest": 3}, vocab_size=14)
    >>> found.tokens[10:], found.counts, found.encode("lowest")
    (['es', 'est', 'lo', 'low'], [9, 9, 7, 7], ['low', 'est'])
    """
    tokens = sorted(set("".join(words)))
    cut = {word: [tokens.index(sign) for sign in word] for word in words}
    bpe = BPE(tokens, {}, [], [sum(n * len(cut[w]) for w, n in words.items())])
    while len(tokens) < vocab_size:
        pairs = Counter[Pair]()
        for word, n in words.items():
            for pair in pairwise(cut[word]):
                pairs[pair] += n
        best = min(pairs, key=lambda pair: (-pairs[pair], pair), default=(-1, -1))
        if pairs[best] < max(1, min_frequency):
            break
        bpe.merges[best] = len(tokens)
        bpe.counts.append(pairs[best])
        tokens.append(tokens[best[0]] + tokens[best[1]])
        cut = {word: merge(ids, best, len(tokens) - 1) for word, ids in cut.items()}
        bpe.lengths.append(sum(n * len(cut[w]) for w, n in words.items()))
    return bpe

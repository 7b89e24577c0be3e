r"""BLEU, the agreement of translations with references in runs of 1 to 4 words."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from groundstate.errors import DataError, ShapeError

ORDER = 4
_ENTITIES = {"&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">"}
_RULES = (
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "),  # marks are words
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),  # but not within numbers
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


def tokenize_13a(line: str) -> list[str]:
    """Words and marks as mteval-v13a, the standard of published BLEU scores, cuts them.

    >>> tokenize_13a("I have 3,000 dogs (and cats).")
    ['I', 'have', '3,000', 'dogs', '(', 'and', 'cats', ')', '.']
    """
    line = line.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, mark in _ENTITIES.items():
        line = line.replace(entity, mark)
    line = f" {line} "
    for rule, into in _RULES:
        line = rule.sub(into, line)
    return line.split()


@dataclass(frozen=True)
class Bleu:
    """A BLEU score and what it is made of.

    Attributes
    ----------
    score : from 0 to 100
    precisions : of runs of 1 to 4 words, in percent
    brevity : the penalty of translations shorter than their references, at most 1
    length, reference_length : words in all
    """

    score: float
    precisions: tuple[float, ...]
    brevity: float
    length: float
    reference_length: float

    def __float__(self) -> float:
        return self.score

    def __str__(self) -> str:
        parts = "/".join(f"{p:.1f}" for p in self.precisions)
        return (
            f"BLEU {self.score:.2f} ({parts}, brevity {self.brevity:.3f}, "
            f"{self.length:g} of {self.reference_length:g} words)"
        )


def bleu(
    predictions: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    sample_weight: Any = None,
) -> Bleu:
    r"""BLEU of a corpus, :math:`100\,\min(1, e^{1-r/c})\prod_{n=1}^{4}p_n^{1/4}`.

    :math:`p_n` is the share of the runs of n words that occur in the reference, each at most as
    often as there; c and r are the numbers of words of predictions and references. A
    :math:`p_n` without a hit counts as half of one hit, the next as a quarter, and so on. Counts
    are those of the whole corpus: the score is no mean over sentences. Equal to sacreBLEU's
    default (13a words, case matters, exponential smoothing).

    Parameters
    ----------
    predictions : a text per row
    references : a text per row, or a list of texts of which any is right; of these the one of
        nearest length counts for the brevity
    sample_weight : of the rows; 2 is the row twice

    Examples
    --------
    >>> print(bleu(["the cat sat on the mat"], ["the cat is on the mat"]))
    BLEU 37.99 (83.3/60.0/25.0/16.7, brevity 1.000, 6 of 6 words)
    """
    if isinstance(predictions, str) or isinstance(references, str):
        raise DataError("bleu takes lists of texts; put a single text into a list")
    if len(predictions) != len(references):
        raise ShapeError(
            f"{len(predictions)} predictions need a reference each, got {len(references)}"
        )
    weights = [1] * len(predictions) if sample_weight is None else [float(w) for w in sample_weight]
    hits, runs = [0.0] * ORDER, [0.0] * ORDER
    length = reference_length = 0.0
    for i, (text, right, w) in enumerate(zip(predictions, references, weights, strict=True)):
        answers = [right] if isinstance(right, str) else list(right)
        if not answers:
            raise DataError(f"row {i} has no reference")
        words = tokenize_13a(text.rstrip())
        tokens = [tokenize_13a(answer.rstrip()) for answer in answers]
        length += w * len(words)
        reference_length += w * min(
            (len(t) for t in tokens), key=lambda n: (abs(n - len(words)), n)
        )
        for n in range(1, ORDER + 1):
            found = _runs(words, n)
            known: Counter[tuple[str, ...]] = Counter()
            for answer in tokens:
                known |= _runs(answer, n)
            hits[n - 1] += w * (found & known).total()
            runs[n - 1] += w * found.total()
    precisions = _smoothed(hits, runs)
    brevity = 1.0
    if length < reference_length:
        brevity = math.exp(1 - reference_length / length) if length else 0.0
    score = 0.0
    if min(precisions) > 0:
        score = brevity * math.exp(math.fsum(map(math.log, precisions)) / ORDER)
    return Bleu(score, precisions, brevity, length, reference_length)


def _runs(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _smoothed(hits: Sequence[float], runs: Sequence[float]) -> tuple[float, ...]:
    """Percentages, of which those without a hit count ever smaller parts of one."""
    if not any(hits):
        return (0.0,) * len(hits)
    found, part = [], 1.0
    for hit, total in zip(hits, runs):
        if total and not hit:
            part /= 2
        found.append(100.0 * (hit or part) / total if total else 0.0)
    return tuple(found)

r"""Spans of tags (``B-PER I-PER O``) and how many of them are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from groundstate.errors import DataError, ShapeError

_PREFIXES = frozenset("BIOES")


class Span(NamedTuple):
    """One span: its type, its first and its last position."""

    type: str
    start: int
    end: int


@dataclass(frozen=True)
class SpanReport:
    """Precision, recall and F1 of spans, all and by type.

    Attributes
    ----------
    precision, recall, f1 : of all spans together (micro average)
    support : right spans
    by_type : a report of each type
    """

    precision: float
    recall: float
    f1: float
    support: float
    by_type: dict[str, SpanReport]

    def __float__(self) -> float:
        return self.f1

    def __str__(self) -> str:
        lines = [f"F1 {self.f1:.3f} (precision {self.precision:.3f}, recall {self.recall:.3f}, "
                 f"{self.support:g} spans)"]  # fmt: skip
        lines += [f"  {name}: {each}" for name, each in self.by_type.items()]
        return "\n".join(lines)


def is_spans(tags: Sequence[str]) -> bool:
    """Whether these tags mark spans: all are ``O``, or a prefix of BIOES and a type, and some are.

    >>> is_spans(["O", "B-PER", "I-PER"]), is_spans(["NOUN", "VERB"]), is_spans(["O"])
    (True, False, False)
    """
    kinds = {str(tag) for tag in tags}
    marked = {t for t in kinds if t[:1] in _PREFIXES and t[1:2] == "-"}
    return bool(marked) and kinds - marked <= {"O"}


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans of one sequence of tags in the way of conlleval: ``I`` behind ``O`` or behind
    another type begins a span too; BIO, IOB1 and IOBES are read alike.

    >>> spans(["B-PER", "I-PER", "O", "I-LOC"])
    [Span(type='PER', start=0, end=1), Span(type='LOC', start=3, end=3)]
    """
    found: list[Span] = []
    before, kind, start = "O", "", 0
    for i, label in enumerate([*tags, "O"]):
        tag, now = _parts(label)
        if _ends(before, tag, kind, now):
            found.append(Span(kind, start, i - 1))
        if _begins(before, tag, kind, now):
            start = i
        before, kind = tag, now
    return found


def span_f1(
    y: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]], *, sample_weight: Any = None
) -> SpanReport:
    r"""F1 of spans, :math:`2PR/(P+R)`: a span is found if its type and both ends are right.

    Equal to seqeval's default and to conlleval. What has no span scores 0.

    Parameters
    ----------
    y, predictions : a sequence of tags per row
    sample_weight : of the rows; 2 is the row twice

    Examples
    --------
    >>> y = [["B-PER", "I-PER", "O", "B-LOC"]]
    >>> print(span_f1(y, [["B-PER", "I-PER", "O", "B-PER"]]))
    F1 0.500 (precision 0.500, recall 0.500, 2 spans)
      LOC: F1 0.000 (precision 0.000, recall 0.000, 1 spans)
      PER: F1 0.667 (precision 0.500, recall 1.000, 1 spans)
    """
    if len(y) != len(predictions):
        raise ShapeError(
            f"{len(y)} sequences of tags need as many predictions, got {len(predictions)}"
        )
    hits: Counter[str] = Counter()
    real: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    weights = [1] * len(y) if sample_weight is None else [float(w) for w in sample_weight]
    for i, (right, given, w) in enumerate(zip(y, predictions, weights, strict=True)):
        if len(right) != len(given):
            raise ShapeError(f"row {i} has {len(right)} tags, its prediction has {len(given)}")
        truth, guess = set(spans(right)), set(spans(given))
        for counts, some in ((real, truth), (predicted, guess), (hits, truth & guess)):
            for span in some:
                counts[span.type] += w  # type: ignore[assignment]
    by_type = {t: _report(hits[t], predicted[t], real[t]) for t in sorted(real | predicted)}
    return _report(hits.total(), predicted.total(), real.total(), by_type)


def _report(
    hits: float, predicted: float, real: float, by_type: dict[str, SpanReport] | None = None
) -> SpanReport:
    precision = hits / predicted if predicted else 0.0
    recall = hits / real if real else 0.0
    f1 = 2 * hits / (predicted + real) if hits else 0.0
    return SpanReport(precision, recall, f1, real, by_type or {})


def _parts(label: str) -> tuple[str, str]:
    if not isinstance(label, str):
        raise DataError(f"tags of spans are texts such as 'B-PER' or 'O', got {label!r}")
    if label[:1] not in _PREFIXES or (len(label) > 1 and label[1] != "-"):
        raise DataError(f"tag {label!r} marks no span; use 'O', or B-, I-, E- or S- and a type")
    return label[0], label[2:] or "_"


def _ends(before: str, tag: str, kind: str, now: str) -> bool:
    """Whether a span ends between these two tags."""
    if before in "ES" or (before in "BI" and tag in "BSO"):
        return True
    return before != "O" and kind != now


def _begins(before: str, tag: str, kind: str, now: str) -> bool:
    if tag in "BS" or (before in "ESO" and tag in "EI"):
        return True
    return tag != "O" and kind != now

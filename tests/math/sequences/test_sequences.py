"""BLEU and spans. Numbers of sacrebleu 2.6.0: ``sacrebleu.corpus_bleu(hyp, [ref]).score``."""

from __future__ import annotations

import pytest

from groundstate.errors import DataError, ShapeError
from groundstate.evaluate import metrics
from groundstate.math.sequences import bleu, span_f1, spans, tokenize_13a
from groundstate.math.sequences.spans import is_spans

HYP = ["the cat sat on the mat .", "I have 3 dogs, and 2.5 cats (old ones)"]
REF = ["the cat is on the mat.", "I have 3 dogs and 2.5 cats (old)."]


def test_bleu_is_that_of_sacrebleu() -> None:
    assert bleu(HYP, REF).score == pytest.approx(52.88815188469323, abs=1e-6)
    assert bleu(["a b c d x"], ["a c b d e f"]).score == pytest.approx(12.368464772045972, abs=1e-6)
    assert metrics.bleu is bleu and metrics.span_f1 is span_f1


def test_bleu_at_its_ends() -> None:
    assert bleu(REF, REF).score == pytest.approx(100.0)
    assert bleu(["a b"], ["a b"]).score == 0.0  # there is no run of four words
    assert bleu([""], ["a b c d"]).score == 0.0
    short = bleu(["a b c d"], ["a b c d e f g h"])
    assert short.brevity == pytest.approx(0.36787944) and short.precisions == (100.0,) * 4


def test_bleu_counts_a_run_as_often_as_the_reference_has_it() -> None:
    found = bleu(["the the the the"], ["the cat the mat"])
    assert found.precisions[0] == 50.0
    both = bleu(["a b c d"], [["x y", "a b c d"]])
    assert both.score == pytest.approx(100.0) and both.reference_length == 4


def test_bleu_of_a_corpus_does_not_depend_on_the_order_of_rows() -> None:
    assert bleu(HYP[::-1], REF[::-1]).score == pytest.approx(bleu(HYP, REF).score, abs=1e-12)


def test_bleu_says_what_is_wrong() -> None:
    with pytest.raises(ShapeError, match="2 predictions need a reference each, got 1"):
        bleu(HYP, REF[:1])
    with pytest.raises(DataError, match="put a single text into a list"):
        bleu("a", "a")
    with pytest.raises(DataError, match="row 0 has no reference"):
        bleu(["a"], [[]])


def test_words_and_marks() -> None:
    assert tokenize_13a("U.S. $5.50 1,000-2 &quot;x&quot;") == [
        "U", ".", "S", ".", "$", "5.50", "1,000", "-", "2", '"', "x", '"',
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("B-A I-A O B-B", [("A", 0, 1), ("B", 3, 3)]),
        ("I-A I-A", [("A", 0, 1)]),
        ("B-A B-A", [("A", 0, 0), ("A", 1, 1)]),
        ("B-A I-B", [("A", 0, 0), ("B", 1, 1)]),
        ("B-A E-A S-A O", [("A", 0, 1), ("A", 2, 2)]),
        ("O O", []),
        ("B I O", [("_", 0, 1)]),
    ],
)
def test_spans(tags: str, found: list[tuple[str, int, int]]) -> None:
    assert [tuple(s) for s in spans(tags.split())] == found


def test_span_f1_counts_whole_spans() -> None:
    y = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-PER"]]
    assert span_f1(y, y).f1 == 1.0
    near = span_f1(y, [["B-PER", "O", "O", "B-LOC"], ["O", "O"]])
    assert (near.precision, near.recall) == (0.5, pytest.approx(1 / 3))
    assert near.f1 == pytest.approx(0.4) and near.by_type["LOC"].f1 == 1.0
    assert span_f1([["O"]], [["O"]]).f1 == 0.0


def test_span_f1_says_what_is_wrong() -> None:
    with pytest.raises(ShapeError, match="row 0 has 2 tags, its prediction has 1"):
        span_f1([["O", "O"]], [["O"]])
    with pytest.raises(ShapeError, match="need as many predictions"):
        span_f1([["O"]], [])
    with pytest.raises(DataError, match="'NOUN' marks no span"):
        span_f1([["NOUN"]], [["O"]])
    assert not is_spans(["NOUN", "O"]) and is_spans(["O", "B-X"])

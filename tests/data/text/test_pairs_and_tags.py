"""Pairs of texts and tagged sentences in files; words as rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundstate.compute.rows import Words
from groundstate.data import read_conll, read_pairs
from groundstate.data.rows import rows_of
from groundstate.errors import DataError


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_pairs_of_a_table_with_and_without_a_header(tmp_path: Path) -> None:
    expected = (["one", "two"], ["eins", "zwei"])
    plain = written(tmp_path, "a.tsv", "one\teins\r\n\ntwo\tzwei\n")
    assert read_pairs(plain) == expected
    named = written(tmp_path, "b.tsv", "source\ttarget\none\teins\ntwo\tzwei\n")
    assert read_pairs(named) == expected
    other = written(tmp_path, "c.tsv", "id\ttarget\tsource\n1\teins\tone\n2\tzwei\ttwo\n")
    assert read_pairs(other) == expected
    lines = written(tmp_path, "d.jsonl", '{"source": "one", "target": "eins"}\n["two", "zwei"]')
    assert read_pairs(lines) == expected


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.tsv", "one\teins\ntwo\n", "line 2 of .* has 1 columns"),
        ("a.tsv", "one\n", "line 1 of .* has 1 columns"),
        ("a.jsonl", '{"source": "one"}', "line 1 of .* is no pair"),
        ("a.jsonl", "{", "line 1 of .* is no JSON"),
        ("a.txt", "one", r"\.tsv or \.jsonl files, got 'a.txt'"),
        ("a.tsv", "", "holds no pairs"),
    ],
)
def test_pairs_that_are_none(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_pairs(written(tmp_path, name, text))
    with pytest.raises(DataError, match="there is no file"):
        read_pairs(tmp_path / "nothing.tsv")


def test_tagged_sentences(tmp_path: Path) -> None:
    text = "-DOCSTART- -X- O\n\n# a remark\nAda NNP B-PER\nwrote VBD O\n\n\nParis NNP B-LOC\n"
    file = written(tmp_path, "a.conll", text)
    words, tags = read_conll(file)
    assert words == [["Ada", "wrote"], ["Paris"]] and tags == [["B-PER", "O"], ["B-LOC"]]
    assert read_conll(file, tag=1)[1] == [["NNP", "VBD"], ["NNP"]]
    assert read_conll(file, tag=None) == (words, None)


def test_universal_dependencies(tmp_path: Path) -> None:
    def line(*cells: str) -> str:
        return "\t".join((*cells, *["_"] * (10 - len(cells))))

    rows = [line("1-2", "im"), line("1", "in", "in", "ADP"), line("2", "dem", "der", "DET")]
    file = written(tmp_path, "a.conllu", "\n".join(rows))
    assert read_conll(file, word=1, tag=3) == ([["in", "dem"]], [["ADP", "DET"]])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Ada B-PER\nwrote\n", "line 2 of .* has 1 columns, expected 2"),
        ("Ada\n", "line 1 of .* has 1 columns, expected 2"),
        ("\n\n", "holds no sentences"),
    ],
)
def test_tags_that_are_none(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_conll(written(tmp_path, "a.conll", text))


def test_words_as_rows(tmp_path: Path) -> None:
    rows = rows_of([["to", "be"], ["or"]])
    assert rows.kind == "steps" and isinstance(rows.rows, Words)
    assert rows.rows.words() == [["to", "be"], ["or"]]
    assert rows.rows[[1, 0]].words() == [["or"], ["to", "be"]]
    file = written(tmp_path, "a.conll", "Ada B-PER\n")
    assert rows_of(file, "steps").rows.words() == [["Ada"]]
    assert rows_of([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], "steps").rows.item_shape == (2,)
    with pytest.raises(DataError, match="row 1 has the word ''"):
        Words.of([["a"], [""]])
    with pytest.raises(DataError, match="expected a list of lists of words"):
        rows_of([3, 4], "steps")

"""Sentences with a tag at every word, in files of the CoNLL form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from groundstate.compute.rows import Rows, Words
from groundstate.data.reading import RowReader, as_list
from groundstate.data.sequences.read import SequenceRows
from groundstate.errors import DataError

DOCUMENT = "-DOCSTART-"


def read_conll(
    path: str | Path, word: int = 0, tag: int | None = -1
) -> tuple[list[list[str]], list[list[str]] | None]:
    """Words and tags of a CoNLL file: a word in each line, its columns apart by spaces or tabs, an
    empty line between sentences.

    Lines that begin with ``#`` and the marks between documents (``-DOCSTART-``) are skipped, and so
    are the ranges and empty nodes of CoNLL-U (``1-2``, ``1.1``).

    Parameters
    ----------
    path : the file
    word, tag : which columns; ``tag=None`` reads words alone

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.conll"
    ...     _ = file.write_text("Ada B-PER\\nwrote O\\n\\nParis B-LOC\\n")
    ...     read_conll(file)
    ([['Ada', 'wrote'], ['Paris']], [['B-PER', 'O'], ['B-LOC']])
    """
    file = Path(path)
    if not file.is_file():
        raise DataError(f"there is no file {str(file)!r:.200}")
    sentences: list[list[list[str]]] = [[]]
    columns = 0
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        cells = line.split("\t") if "\t" in line else line.split()
        if not line.strip():
            sentences.append([])
        elif not line.startswith("#") and cells[0] != DOCUMENT and not _is_range(cells):
            columns = columns or len(cells)
            if len(cells) != columns or columns < (1 if tag is None else 2):
                raise DataError(
                    f"line {number} of {file} has {len(cells)} columns, expected "
                    f"{max(columns, 2)}: a word and its tag"
                )
            sentences[-1].append(cells)
    kept = [s for s in sentences if s]
    if not kept:
        raise DataError(f"{file} holds no sentences")
    words = [[cells[word] for cells in s] for s in kept]
    return words, None if tag is None else [[cells[tag] for cells in s] for s in kept]


def _is_range(cells: list[str]) -> bool:
    """Whether the line counts no word of its own, as in CoNLL-U."""
    ends = cells[0].replace(".", "-").split("-")
    return len(cells) == 10 and len(ends) == 2 and all(end.isdigit() for end in ends)


class StepRows(RowReader):
    """Sequences of which every step may have an answer of its own: words, or rows of numbers."""

    kind = "steps"
    accepts = "a list of lists of words, a CoNLL file, or sequences (length, d) of numbers"

    def takes(self, value: Any) -> bool:
        if isinstance(value, Words):
            return True
        rows = as_list(value) or []
        return bool(rows) and all(_are_words(row) for row in rows[:100])

    def read(self, value: Any) -> Rows:
        if isinstance(value, Words):
            return value
        if isinstance(value, str | Path):
            return Words.of(read_conll(value)[0])
        rows = as_list(value)
        if rows and any(_are_words(row) and len(row) for row in rows):
            return Words.of([as_list(row) or row for row in rows])
        try:
            return SequenceRows().read(value)
        except DataError:
            raise DataError(f"got {_form(value)}, expected {self.accepts}") from None

    def labelled(self, value: Any) -> tuple[Rows, Any] | None:
        if not isinstance(value, str | Path):
            return None
        words, tags = read_conll(value)
        return Words.of(words), tags


def _are_words(row: Any) -> bool:
    cells = as_list(row)
    return cells is not None and all(isinstance(cell, str) for cell in cells)


def _form(value: Any) -> str:
    rows = as_list(value)
    inner = type(rows[0]).__name__ if rows else "nothing"
    return f"a {type(value).__name__} of {inner}"

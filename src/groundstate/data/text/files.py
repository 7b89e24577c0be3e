"""Texts in files: folders, .txt, .jsonl; with labels .csv, .jsonl and .conll."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from groundstate.compute.rows import Texts
from groundstate.errors import DataError

PathLike = str | Path
ENDINGS = (".txt", ".jsonl")


def read_texts(files: PathLike | Sequence[PathLike]) -> Texts:
    """The texts of files: a .txt is one text, each line of a .jsonl one (its "text", or a string).

    Parameters
    ----------
    files : a file, a folder (its .txt and .jsonl files, also below, by name), or several of them

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.txt").write_text("to be")
    ...     _ = (Path(folder) / "b.jsonl").write_text('{"text": "or not"}')
    ...     read_texts(folder).strings()
    ['to be', 'or not']
    """
    given = [files] if isinstance(files, str | Path) else list(files)
    found = [text for path in given for file in text_files(path) for text in texts_in(file)]
    if not found:
        raise DataError(f"no texts in {', '.join(map(str, given)) or 'no files'}")
    return Texts.of(found)


def text_files(path: PathLike) -> list[Path]:
    """A file, or the .txt and .jsonl files of a folder, by name."""
    given = Path(path)
    if given.is_dir():
        found = sorted(p for p in given.rglob("*") if p.suffix in ENDINGS and p.is_file())
        if not found:
            raise DataError(f"the folder {given} holds no {' and no '.join(ENDINGS)} files")
        return found
    if not given.is_file():
        raise DataError(
            f"there is no file or folder {str(given)!r:.200}; a text itself goes into a list"
        )
    if given.suffix == ".csv":
        raise DataError(f"{given} is a table; read it and pass its column of texts")
    return [given]


def texts_in(file: Path) -> Iterator[str]:
    """The texts of a file, of a .jsonl one line at a time."""
    try:
        yield from _lines(file) if file.suffix == ".jsonl" else (file.read_text(encoding="utf-8"),)
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is no UTF-8 text: {error}") from None


def _lines(file: Path) -> Iterator[str]:
    with file.open(encoding="utf-8") as lines:
        for line, value in _objects(file, lines):
            text = value.get("text") if isinstance(value, dict) else value
            if not isinstance(text, str):
                raise DataError(
                    f'line {line} of {file} has no text; expected a string or {{"text": "..."}}'
                )
            yield text


def _objects(file: Path, lines: Iterable[str]) -> Iterator[tuple[int, Any]]:
    """The JSON values of the lines of a file, with the numbers of these."""
    for line, written in enumerate(lines, 1):
        if not written.strip():
            continue
        try:
            yield line, json.loads(written)
        except ValueError as error:
            raise DataError(f"line {line} of {file} is no JSON: {error}") from None


def read_labelled(path: PathLike) -> tuple[Texts, list[Any]] | None:
    """Texts of a file and what each is labelled with, None where the file holds no labels.

    A .csv has columns text and label, each line of a .jsonl the keys text and label. A .conll has a
    word and its tag (the last column) in each line and an empty line behind each sentence; its
    labels are lists of tags, its words stand between spaces.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.conll"
    ...     _ = file.write_text("Anna B-PER\\nsings O\\n")
    ...     found = read_labelled(file)
    >>> found[0].strings(), found[1]
    (['Anna sings'], [['B-PER', 'O']])
    """
    file = Path(path)
    if file.suffix not in (".csv", ".jsonl", ".conll") or not file.is_file():
        return None
    content = file.read_text(encoding="utf-8")
    if file.suffix == ".conll":
        return _tagged(content)
    if file.suffix == ".csv":
        rows: list[Any] = list(csv.DictReader(StringIO(content)))
    else:
        rows = [value for _, value in _objects(file, StringIO(content))]
    if not all(isinstance(row, dict) and "label" in row for row in rows):
        return None
    wrong = next((i for i, r in enumerate(rows) if not isinstance(r.get("text"), str)), None)
    if wrong is not None:
        raise DataError(f'row {wrong} of {file} has no text; expected columns "text" and "label"')
    return Texts.of([row["text"] for row in rows]), [row["label"] for row in rows]


def _tagged(content: str) -> tuple[Texts, list[Any]]:
    sentences: list[list[list[str]]] = [[]]
    for line in content.splitlines():
        columns = line.split()
        if not columns:
            sentences.append([])
        elif columns[0] != "-DOCSTART-":
            sentences[-1].append(columns)
    kept = [s for s in sentences if s]
    texts = Texts.of([" ".join(columns[0] for columns in s) for s in kept])
    return texts, [[columns[-1] for columns in s] for s in kept]

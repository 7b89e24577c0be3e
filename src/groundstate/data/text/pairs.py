"""Pairs of texts in files: a source and its target in each line."""

from __future__ import annotations

import json
from pathlib import Path

from groundstate.errors import DataError

ENDINGS = (".tsv", ".jsonl")


def read_pairs(
    path: str | Path, source: str = "source", target: str = "target"
) -> tuple[list[str], list[str]]:
    """Sources and targets of a .tsv (two columns) or .jsonl file.

    A first line of a .tsv that names both columns is a header, and further columns are skipped;
    without it there are exactly two.

    Parameters
    ----------
    path : the file
    source, target : names of the columns

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "pairs.tsv"
    ...     _ = file.write_text("one\\teins\\ntwo\\tzwei\\n")
    ...     read_pairs(file)
    (['one', 'two'], ['eins', 'zwei'])
    """
    file = Path(path)
    if not file.is_file():
        raise DataError(f"there is no file {str(file)!r:.200}")
    if file.suffix not in ENDINGS:
        raise DataError(f"pairs of texts are in .tsv or .jsonl files, got {file.name!r}")
    lines = [line for line in file.read_text(encoding="utf-8").split("\n") if line.strip()]
    cut = _jsonl if file.suffix == ".jsonl" else _tsv
    found = cut(file, [line.rstrip("\r") for line in lines], source, target)
    if not found:
        raise DataError(f"{file} holds no pairs")
    return [a for a, _ in found], [b for _, b in found]


def _tsv(file: Path, lines: list[str], source: str, target: str) -> list[tuple[str, str]]:
    names = lines[0].split("\t") if lines else []
    places = (0, 1)
    if source in names and target in names:
        places = (names.index(source), names.index(target))
    found = []
    for i, line in enumerate(lines[places != (0, 1) or names[:2] == [source, target] :], 1):
        cells = line.split("\t")
        if len(cells) != len(names) or len(cells) < 2:
            raise DataError(
                f"line {i} of {file} has {len(cells)} columns, expected source and target"
            )
        found.append((cells[places[0]], cells[places[1]]))
    return found


def _jsonl(file: Path, lines: list[str], source: str, target: str) -> list[tuple[str, str]]:
    found = []
    for i, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
        except ValueError as error:
            raise DataError(f"line {i} of {file} is no JSON: {error}") from None
        pair = [value.get(source), value.get(target)] if isinstance(value, dict) else value
        if (
            not isinstance(pair, list)
            or len(pair) != 2
            or not all(isinstance(p, str) for p in pair)
        ):
            raise DataError(
                f'line {i} of {file} is no pair; expected {{"{source}": "...", "{target}": "..."}}'
            )
        found.append((pair[0], pair[1]))
    return found

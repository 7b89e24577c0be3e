"""Texts in files: folders, .txt, .jsonl."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

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
    found = [text for path in given for file in text_files(path) for text in _texts(file)]
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
        raise DataError(f"there is no file or folder {str(given)!r:.200}")
    if given.suffix == ".csv":
        raise DataError(f"{given} is a table; read it and pass its column of texts")
    return [given]


def _texts(file: Path) -> Iterator[str]:
    try:
        content = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is no UTF-8 text: {error}") from None
    if file.suffix != ".jsonl":
        yield content
        return
    for line, written in enumerate(content.splitlines(), 1):
        if not written.strip():
            continue
        try:
            value = json.loads(written)
        except ValueError as error:
            raise DataError(f"line {line} of {file} is no JSON: {error}") from None
        text = value.get("text") if isinstance(value, dict) else value
        if not isinstance(text, str):
            raise DataError(
                f'line {line} of {file} has no text; expected a string or {{"text": "..."}}'
            )
        yield text

"""Texts as token numbers in a file: made once, mapped and not read, so that they may be larger than
memory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.rows import Spans
from groundstate.data.text.files import PathLike, text_files, texts_in
from groundstate.errors import DataError

if TYPE_CHECKING:
    from groundstate.data.text.tokenizer import Tokenizer

END = "<|endoftext|>"
_CHUNK = 2**22  # tokens looked at at once


def write_tokens(
    files: PathLike | Sequence[PathLike], tokenizer: Tokenizer, path: PathLike, end: str = END
) -> Path:
    """Texts of files as one array of token numbers, an end token behind each text.

    One text at a time is in memory. ``LanguageModel(tokenizer=tokenizer).fit(path)`` learns from the
    file as from the texts.

    Parameters
    ----------
    files : a file, a folder or several of them, see ``read_texts``
    tokenizer : has the end token
    path : of the ``.npy`` file that is written, whole or not at all
    end : the end token

    Examples
    --------
    >>> from groundstate.data import Tokenizer
    >>> from tempfile import TemporaryDirectory
    >>> words = Tokenizer.train(texts=["to be or not"], kind="word", special_tokens=[END])
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.txt").write_text("to be")
    ...     file = write_tokens(folder, words, Path(folder) / "tokens.npy")
    ...     [words.vocabulary[i] for i in np.load(file)]
    ['to', 'be', '<|endoftext|>']
    """
    target = Path(path)
    if target.suffix != ".npy":
        raise DataError(f"tokens are written as .npy, got the name {target.name!r}")
    given = [files] if isinstance(files, str | Path) else list(files)
    last = tokenizer.number(end)
    dtype = np.dtype(np.uint16 if tokenizer.size <= 2**16 else np.uint32)
    texts = (text for name in given for file in text_files(name) for text in texts_in(file))
    rows = (np.array([*tokenizer.encode(text), last], dtype) for text in texts)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".tokens-", suffix=".npy", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            _write(file, rows, dtype)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return target


def _write(file: BinaryIO, rows: Iterable[NDArray[Any]], dtype: np.dtype[Any]) -> None:
    """An array whose length is known at the end; NumPy leaves room for it in the header."""

    def header(n: int) -> None:
        file.seek(0)
        about = {
            "descr": np.lib.format.dtype_to_descr(dtype),
            "fortran_order": False,
            "shape": (n,),
        }
        np.lib.format.write_array_header_1_0(file, about)

    header(0)
    total = 0
    for row in rows:
        file.write(row.data)
        total += len(row)
    if not total:
        raise DataError("there are no texts to write tokens of")
    header(total)


def open_tokens(path: PathLike) -> NDArray[Any]:
    """The token numbers of a file, mapped: a ``.npy`` of one axis, or a ``.bin`` of bare uint16."""
    file = Path(path)
    if not file.is_file():
        raise DataError(f"there is no file {str(file)!r:.200}")
    if file.suffix == ".npy":
        try:
            found: NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            raise DataError(f"{file} is no array of token numbers: {error}") from None
        return found
    if not file.stat().st_size or file.stat().st_size % 2:
        raise DataError(
            f"{file} has {file.stat().st_size} bytes, no whole number of tokens of 16 bits"
        )
    return np.memmap(file, np.uint16, "r")


def tokens_in(value: Any) -> NDArray[Any] | None:
    """Token numbers that are given as an array ``(n,)`` or as a file of one; None: something else is."""
    if isinstance(value, str | Path) and Path(value).suffix in (".npy", ".bin"):
        value = open_tokens(value)
    elif not isinstance(value, np.ndarray) or value.dtype.kind not in "iu":
        return None
    if value.ndim != 1 or value.dtype.kind not in "iu" or not len(value):
        raise DataError(
            f"token numbers are whole numbers in one line, got {value.dtype} {value.shape}"
        )
    found: NDArray[Any] = value
    return found


def texts_of_tokens(values: NDArray[Any], end: int, size: int) -> Spans:
    """The texts of an array of tokens, each up to its end token; the last may have none.

    Parameters
    ----------
    values : array of tokens, ``(n,)``
    end : number of the end token
    size : of the vocabulary; a larger number is an error

    Examples
    --------
    >>> texts = texts_of_tokens(np.array([5, 6, 0, 7, 0]), end=0, size=8)
    >>> texts.start.tolist(), texts.stop.tolist()
    ([0, 3], [3, 5])
    """
    ends = []
    for at in range(0, len(values), _CHUNK):
        part = np.asarray(values[at : at + _CHUNK])
        if part.max() >= size or part.min() < 0:
            wrong = int(part.max() if part.max() >= size else part.min())
            raise DataError(
                f"the file holds token {wrong}, the tokenizer has 0..{size - 1}; pass the tokenizer "
                "that the file was made with"
            )
        ends.append(at + 1 + np.flatnonzero(part == end))
    stop = np.concatenate(ends).astype(np.int64)
    if not len(stop) or stop[-1] < len(values):
        stop = np.append(stop, len(values))
    return Spans(values, np.concatenate([[0], stop[:-1]]).astype(np.int64), stop)

"""Which format a file has, found from its first bytes rather than its name."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from pathlib import Path
from typing import Any

from groundstate.data.messages import did_you_mean
from groundstate.data.tables.binary import read_binary
from groundstate.data.tables.guard import guarded
from groundstate.data.tables.jsontext import looks_like_json
from groundstate.data.tables.probe import check
from groundstate.errors import DataError

MAX_BYTES = 8 << 30
"""A compressed text that grows beyond this is refused."""

_BINARY = ((b"PAR1", "parquet"), (b"ARROW1", "arrow"), (b"\xff\xff\xff\xff", "arrow stream"))
_PACKED = ((b"\x1f\x8b", "gzip"), (b"BZh", "bz2"), (b"\xfd7zXZ\0", "xz"))
_OPEN: dict[str, Any] = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}
_ZST = b"\x28\xb5\x2f\xfd"
_FOREIGN = (
    (b"PK\x03\x04", "an Excel workbook or a zip archive; save the sheet as CSV or unpack it"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook; save the sheet as CSV"),
    (b"%PDF", "a PDF; save the table as CSV"),
    (b"\x93NUMPY", "a NumPy array; pass numpy.load(path) instead"),
    (b"FEA1", "an old Feather file; write it again with pyarrow.feather"),
    (b"SQLite format 3", "an SQLite database; export the table as CSV"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"\x89HDF", "an HDF5 file; export the table as Parquet"),
)


def resolve(source: str | os.PathLike[str], names: tuple[str, ...] = ()) -> Path:
    """The path of a regular, non-empty file; anything else is a `DataError` that says why."""
    text = os.fspath(source)
    if not isinstance(text, str) or "\0" in text:
        raise DataError(f"a path must be text without NUL characters, got {text!r}")
    if text.startswith(("http://", "https://", "s3://", "gs://")):
        raise DataError(f"{text!r} is an address, not a file; download it and pass its path")
    path = Path(text).expanduser()
    try:
        if path.is_dir():
            raise DataError(f"{text!r} is a folder; pass the path of one file in it")
        if not path.exists():
            near = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
            guess = did_you_mean(path.name, [*near, *names])
            raise DataError(f"there is no file {text!r}{guess}")
        if not path.is_file():
            raise DataError(f"{text!r} is not a regular file")
        if path.stat().st_size == 0:
            raise DataError(f"{path.name!r} is empty: it holds no row")
    except OSError as error:
        raise DataError(f"cannot open {text!r}: {error.strerror or error}") from None
    return path


def head(path: Path, size: int = 4096) -> bytes:
    """The first bytes of a file."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise DataError(f"cannot read {path.name!r}: {error.strerror or error}") from None


def format_of(path: Path) -> str:
    """``parquet``, ``arrow``, ``arrow stream``, ``json`` or ``text``; foreign files are refused."""
    start = head(path)
    for magic, form in _BINARY:
        if start.startswith(magic):
            return form
    for magic, what in _FOREIGN:
        if start.startswith(magic):
            raise DataError(f"{path.name!r} is {what}")
    return "text"


def content(path: Path) -> bytes:
    """All bytes of a text file, unpacked where it is compressed."""
    start = head(path, 16)
    if start.startswith(_ZST):
        check(str(path), "zst")
        with guarded() as attempt:
            return "\n".join(read_binary(str(path), "zst").to_series().to_list()).encode()
        raise DataError(f"{path.name!r} cannot be unpacked: {attempt.problem}")
    for magic, packing in _PACKED:
        if start.startswith(magic):
            return _unpack(path, packing)
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path.name!r}: {error.strerror or error}") from None


def _unpack(path: Path, packing: str) -> bytes:
    with guarded() as attempt:
        with _OPEN[packing](path, "rb") as file:
            raw: bytes = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise DataError(f"{path.name!r} unpacks to more than {MAX_BYTES >> 30} GiB; use stream")
        return raw
    raise DataError(f"{path.name!r} cannot be unpacked from {packing}: {attempt.problem}")


def is_json(path: Path, raw: bytes) -> bool:
    """Whether a text is JSON, by its name or its first characters."""
    suffixes = {s.lower() for s in path.suffixes[-2:]}
    return bool(suffixes & {".json", ".jsonl", ".ndjson"}) or looks_like_json(raw)

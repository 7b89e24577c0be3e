"""Pictures decoded once: in memory where they are few, else in a file that is mapped."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.rows import Files, Pixels, Rows
from groundstate.data.images.decode import ImageReader
from groundstate.errors import DataError

MEMORY = 2**30  # bytes of pixels that are kept in memory
_BLOCK = 256  # pictures decoded at a time


def cached(files: Files, cache: str | Path | None = "auto") -> Rows:
    """Image files as pixels of 8 bits that are decoded once.

    Parameters
    ----------
    files : read by ``ImageReader`` with a size
    cache : "auto" decodes into memory up to 1 GiB and leaves more than that on disk, to be decoded
        batch by batch; a folder keeps the pixels there as ``.npy`` and maps them, now and in later
        runs (a changed file, size or number of channels makes a new one); None leaves all on disk

    Returns
    -------
    Pixels or Files
    """
    reader = files.reader
    if cache is None or not len(files):
        return files
    if not isinstance(reader, ImageReader) or reader.size is None:
        raise DataError("pictures are kept decoded in one size; read them with ImageReader(size=)")
    shape = (len(files), reader.channels, *reader.size)
    if cache == "auto":
        if int(np.prod(shape)) > MEMORY:
            return files
        pixels = np.empty(shape, np.uint8)
        _fill(pixels, files, reader)
        return Pixels(pixels)
    folder = Path(cache)
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"pixels-{_key(files)}.npy"
    if not kept.is_file():
        _write(kept, shape, files, reader)
    return Pixels(np.load(kept, mmap_mode="r", allow_pickle=False))


def _write(kept: Path, shape: tuple[int, ...], files: Files, reader: ImageReader) -> None:
    """All or nothing: a run that is killed leaves no half of a file under the name."""
    handle, name = tempfile.mkstemp(prefix=".pixels-", suffix=".npy", dir=kept.parent)
    os.close(handle)
    try:
        pixels = np.lib.format.open_memmap(name, mode="w+", dtype=np.uint8, shape=shape)
        _fill(pixels, files, reader)
        pixels.flush()
        os.replace(name, kept)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _fill(pixels: NDArray[np.uint8], files: Files, reader: ImageReader) -> None:
    for at, block in _blocks(files):
        pixels[at : at + len(block)] = reader.pixels(block)


def _blocks(files: Files) -> Iterator[tuple[int, list[str]]]:
    for at in range(0, len(files), _BLOCK):
        yield at, files.paths[at : at + _BLOCK].tolist()


def _key(files: Files) -> str:
    """Of paths, sizes and times of the files and how they are read."""
    found = hashlib.blake2b(repr(files.reader).encode(), digest_size=12)
    for path in files.paths.tolist():
        about = os.stat(path)
        found.update(f"{Path(path).resolve()}\0{about.st_size}\0{about.st_mtime_ns}\n".encode())
    return found.hexdigest()

"""Files in which well-known sets of pictures come: CIFAR-10's pickles and MNIST's idx."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.rows import Pixels
from groundstate.data.images.folder import ImageFolder
from groundstate.data.images.sets import ImageSet, Parts, labels_of
from groundstate.errors import DataError

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_CIFAR = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5")
_IDX = {"train": ("train",), "test": ("t10k", "test")}
_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "_frombuffer"), ("numpy._core.numeric", "_frombuffer"),
    ("numpy.core.numeric", "_frombuffer"), ("numpy", "ndarray"), ("numpy", "dtype"),
    ("_codecs", "encode"),
}  # fmt: skip


class _Plain(pickle.Unpickler):
    """Reads numbers, text and arrays; anything that could run code is refused."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise DataError(f"the pickle asks for {module}.{name}, which no set of pictures needs")
        return super().find_class(module, name)


def read_images(
    path: str | Path, *, size: int | tuple[int, int] | None = None, cache: Any = "auto"
) -> Parts:
    """Pictures with labels from a folder, by part ("train", "val", "test"), whatever its layout:
    class folders, CIFAR-10's pickles, MNIST's idx files.

    Parameters
    ----------
    path : folder
    size, cache : of ``ImageFolder``
    """
    root = Path(path)
    if not root.is_dir():
        raise DataError(f"there is no folder {str(path)!r}")
    if (root / _CIFAR[0]).is_file() or (root / "cifar-10-batches-py").is_dir():
        return cifar10(root)
    if any(_idx_images(root, names) is not None for names in _IDX.values()):
        return mnist(root)
    return ImageFolder(root, size=size, cache=cache).parts


def cifar10(folder: str | Path) -> Parts:
    """CIFAR-10 from its Python pickles: 50,000 and 10,000 pictures of 3 x 32 x 32.

    The pickles are read by an unpickler that only knows arrays and text.

    Parameters
    ----------
    folder : ``cifar-10-batches-py``, or the folder around it
    """
    root = Path(folder)
    inside = root / "cifar-10-batches-py"
    root = inside if inside.is_dir() else root
    names = None
    if (root / "batches.meta").is_file():
        names = [n.decode() for n in _unpickled(root / "batches.meta")[b"label_names"]]
    parts = {}
    for part, files in (("train", _CIFAR), ("test", ("test_batch",))):
        there = [root / f for f in files if (root / f).is_file()]
        if part == "train" and len(there) < len(files):
            lost = next(f for f in files if not (root / f).is_file())
            raise DataError(f"{str(root)!r} has no file {lost!r}; CIFAR-10 comes in five batches")
        if there:
            parts[part] = [_batch(path) for path in there]
    found: dict[str, ImageSet] = {}
    for part, batches in parts.items():
        y = np.concatenate([labels for _, labels in batches])
        pixels = np.concatenate([values for values, _ in batches])
        found[part] = _labelled(pixels, y, names)
    return found


def mnist(folder: str | Path) -> Parts:
    """MNIST and its kin from idx files, plain or gzipped.

    Parameters
    ----------
    folder : with ``train-images-idx3-ubyte[.gz]`` and ``t10k-...``, and the labels of each
    """
    root = Path(folder)
    found: dict[str, ImageSet] = {}
    for part, names in _IDX.items():
        images = _idx_images(root, names)
        if images is None:
            continue
        labels = images.with_name(images.name.replace("images", "labels").replace("idx3", "idx1"))
        if not labels.is_file():
            raise DataError(f"{str(images)!r} has no labels beside it, {labels.name!r}")
        x, y = idx(images), idx(labels)
        if x.ndim != 3 or x.dtype != np.uint8 or len(x) != len(y):
            raise DataError(
                f"{str(images)!r} holds {x.dtype} {x.shape} and {labels.name!r} {y.shape}; "
                "expected uint8 (n, height, width) and (n,)"
            )
        found[part] = _labelled(x[:, None], y, None)
    if not found:
        raise DataError(f"{str(folder)!r} holds no file like 'train-images-idx3-ubyte.gz'")
    return found


def idx(path: str | Path) -> NDArray[Any]:
    """The array of one idx file, plain or gzipped.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "labels-idx1-ubyte"
    ...     _ = file.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    ...     idx(file)
    array([7, 8, 9], dtype=uint8)
    """
    raw = _bytes(Path(path))
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in _TYPES or not raw[3]:
        raise DataError(f"{str(path)!r} is no idx file: it begins with {raw[:4]!r}")
    start = 4 + 4 * raw[3]
    if len(raw) < start:
        raise DataError(f"{str(path)!r} ends within its header")
    shape = struct.unpack(f">{raw[3]}I", raw[4:start])
    dtype = np.dtype(_TYPES[raw[2]])
    wanted = int(np.prod(shape)) * dtype.itemsize
    if len(raw) - start != wanted:
        raise DataError(
            f"{str(path)!r} says {shape} but holds {len(raw) - start:,} bytes, not {wanted:,}; it "
            "is damaged or cut off"
        )
    found = np.frombuffer(raw, dtype, offset=start).reshape(shape)
    return found.astype(dtype.newbyteorder("="))


def _labelled(pixels: NDArray[np.uint8], y: NDArray[Any], names: Any) -> ImageSet:
    if names is None:
        return ImageSet(Pixels(pixels), y.astype(np.int64), tuple(np.unique(y).tolist()))
    return ImageSet(Pixels(pixels), labels_of(y, names), tuple(sorted(names)))


def _batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    found = _unpickled(path)
    try:
        x, y = np.asarray(found[b"data"]), np.asarray(found[b"labels"], np.int64)
        return x.astype(np.uint8, copy=False).reshape(len(y), 3, 32, 32), y
    except (KeyError, ValueError, TypeError) as error:
        raise DataError(f"{str(path)!r} is no batch of CIFAR-10: {error}") from error


def _unpickled(path: Path) -> Any:
    def load(stream: io.BytesIO) -> Any:
        return _Plain(stream, encoding="bytes").load()

    return _guarded(path, lambda: load(io.BytesIO(path.read_bytes())))


def _guarded(path: Path, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except DataError as error:
        raise DataError(f"{str(path)!r} is refused: {error}") from None
    except Exception as error:  # a damaged pickle raises anything
        raise DataError(f"{str(path)!r} cannot be read: {error}") from error


def _idx_images(root: Path, names: tuple[str, ...]) -> Path | None:
    for name in names:
        for pattern in (f"{name}*images*idx3-ubyte", f"{name}*images*idx3-ubyte.gz"):
            there = sorted(root.glob(pattern))
            if there:
                return there[0]
    return None


def _bytes(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (OSError, EOFError) as error:
        raise DataError(f"{str(path)!r} cannot be read: {error}") from error

"""``save`` and ``load``."""

from __future__ import annotations

import functools
import importlib.metadata
import io
import os
import platform
import stat
import sys
import warnings
from pathlib import Path
from typing import IO, Any

from groundstate.errors import StoreError
from groundstate.store.archive import FORMAT, Archive, read_archive, write_archive
from groundstate.store.atomic import atomic_file
from groundstate.store.migrations import migrate
from groundstate.store.objects import class_id
from groundstate.store.pack import Packer
from groundstate.store.unpack import unpack

_LIBRARIES = ("groundstate", "numpy", "torch", "scikit-learn")


class StoreWarning(UserWarning):
    """A file was read, but something about it deserves a look."""


def save(
    value: Any,
    path: str | os.PathLike[str],
    *,
    meta: dict[str, Any] | None = None,
    created: str | None = None,
) -> Path:
    r"""Write a fitted estimator, or any nested value, to one file.

    The file is a plain zip of ``manifest.json`` (what, by which versions, hashes), ``state.json``
    and ``arrays.safetensors``. It appears whole or not at all, and the same content gives the same
    bytes.

    Parameters
    ----------
    value
        An estimator, module, energy, or nested dicts and lists of numbers, text, arrays, tensors.
    path
        Where to write; ``.gs`` is customary.
    meta
        Further JSON for the manifest, such as scores or a data hash.
    created
        A date for the manifest. Left out by default, since it would make equal files differ.

    Returns
    -------
    Path

    Raises
    ------
    StoreError
        When a part has a type that cannot be stored (named), or the disk refuses; a file that was
        there before is then unchanged.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from groundstate.store import load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save({"theta": (1.5, 2)}, pathlib.Path(folder) / "a.gs")
    ...     load(path)
    {'theta': (1.5, 2)}
    """
    archive = _archive(value, meta, created)
    with atomic_file(path) as stream:
        write_archive(stream, archive)
    return Path(path)


def load(path: str | os.PathLike[str], *, device: str = "cpu") -> Any:
    r"""Read what :func:`save` wrote. Never unpickles and never runs code from the file.

    Parameters
    ----------
    path
        The file.
    device
        Where tensors go: ``"cpu"``, another device, or ``"stored"`` for the one each was on.

    Raises
    ------
    StoreError
        When the file is missing, truncated, foreign, altered, or from a newer format.
    """
    with _open(path) as stream:
        return _value(stream, os.fspath(path), device)


def dumps(value: Any, *, meta: dict[str, Any] | None = None, created: str | None = None) -> bytes:
    """The bytes of the file that :func:`save` would write."""
    stream = io.BytesIO()
    write_archive(stream, _archive(value, meta, created))
    return stream.getvalue()


def loads(data: bytes, *, device: str = "cpu") -> Any:
    """The value in the bytes of a stored file.

    >>> from groundstate.store import dumps, loads
    >>> loads(dumps([1, None, "a"]))
    [1, None, 'a']
    """
    return _value(io.BytesIO(data), "the data", device)


def manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a file says about itself, without reading what it holds.

    >>> import tempfile, pathlib
    >>> from groundstate.store import manifest, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save([1, 2], pathlib.Path(folder) / "a.gs", meta={"seed": 3})
    ...     found = manifest(path)
    >>> found["kind"], found["meta"]["seed"]
    ('list', 3)
    """
    with _open(path) as stream:
        return read_archive(stream, os.fspath(path), manifest_only=True).manifest


def _archive(value: Any, meta: dict[str, Any] | None, created: str | None) -> Archive:
    identity = class_id(type(value))
    packer = Packer(type(value).__name__ if identity else "value")
    state = packer.pack(value, ())
    params = state.get("params", {}) if identity else {}
    notes = Packer("meta")
    about: dict[str, Any] = {
        "kind": identity or type(value).__name__,
        # for people who look inside; load takes them from the state
        "params": {k: v for k, v in params.items() if not isinstance(v, (dict, list))},
        "classes": sorted(packer.classes),
        "versions": _versions(),
        "meta": notes.pack(dict(meta or {}), ()),
    }
    if notes.arrays:
        raise StoreError(
            "meta goes to the JSON manifest and cannot hold arrays; store them instead"
        )
    if created is not None:
        about["created"] = created
    return Archive(about, state, packer.arrays)


def _value(stream: IO[bytes], name: str, device: str) -> Any:
    archive = migrate(read_archive(stream, name), name)
    _compare_versions(archive.manifest, name)
    try:
        return unpack(archive.state, archive.arrays, device)
    except StoreError as error:
        raise StoreError(f"{name} cannot be loaded: {error}") from error


def _open(path: str | os.PathLike[str]) -> IO[bytes]:
    name = os.fspath(path)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for ever
            raise StoreError(f"{name} is not a file; load reads one file written by save")
        return open(path, "rb")
    except FileNotFoundError as error:
        raise StoreError(f"{name} does not exist; check the path") from error
    except OSError as error:
        raise StoreError(f"{name} cannot be opened: {error.strerror or error}") from error
    except ValueError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{name!r} is not a path ({error})") from error


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: _version(name) for name in _LIBRARIES}}


@functools.cache
def _version(library: str) -> str:
    """The installed version; asking for it does not import the library."""
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(sys.modules.get(library), "__version__", "unknown"))


def _compare_versions(found: dict[str, Any], name: str) -> None:
    """Foreign classes may change what their attributes mean; ours migrate with the format."""
    classes, versions = found.get("classes"), found.get("versions")
    if not isinstance(classes, list) or not isinstance(versions, dict):
        raise StoreError(f"{name} is altered: its manifest lacks classes or versions")
    then, now = str(versions.get("scikit-learn")), _version("scikit-learn")
    foreign = [c for c in classes if isinstance(c, str) and c.startswith("sklearn.")]
    if foreign and then.split(".")[:2] != now.split(".")[:2]:
        warnings.warn(
            f"{name} holds {foreign[0]} of scikit-learn {then:.20}, here is {now}; "
            "check a few predictions before relying on it",
            StoreWarning,
            stacklevel=4,
        )


__all__ = ["FORMAT", "StoreWarning", "dumps", "load", "loads", "manifest", "save"]

"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from groundstate.errors import StoreError


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    r"""Write ``path`` all or nothing.

    The bytes go to a temporary file in the same directory, reach the disk (``fsync``), and only
    then take the name ``path`` (``os.replace``). Whatever goes wrong before that moment, a file
    that was there stays as it was and the temporary one is removed.

    Parameters
    ----------
    path
        Where the file shall appear. Its directory must exist; a symbolic link is followed.

    Yields
    ------
    IO[bytes]
        The binary stream to write to.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = pathlib.Path(folder) / "a.txt"
    ...     with atomic_file(target) as stream:
    ...         _ = stream.write(b"whole")
    ...     target.read_bytes()
    b'whole'
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise StoreError(f"cannot save to {str(path)!r}: it is a folder; give a file name in it")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    except OSError as error:
        raise _failed(path, target, error) from error
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, _mode(target))
        os.replace(name, target)
        sync_folder(target.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError):
            raise _failed(path, target, error) from error
        raise


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` to ``path`` all or nothing."""
    with atomic_file(path) as stream:
        stream.write(data)


def sync_folder(folder: Path) -> None:
    """Make a rename in ``folder`` survive a power cut, where the system can."""
    with contextlib.suppress(OSError):  # Windows cannot open a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _mode(target: Path) -> int:
    """Permissions of the file being replaced, else those any new file would get."""
    with contextlib.suppress(OSError):
        return target.stat().st_mode & 0o777
    mask = os.umask(0)  # the only way to read it is to set it
    os.umask(mask)
    return 0o666 & ~mask


def _failed(path: str | os.PathLike[str], target: Path, error: OSError) -> StoreError:
    kept = "; the previous file is unchanged" if target.exists() else "; nothing was written"
    reason = error.strerror or str(error)
    return StoreError(f"cannot save to {os.fspath(path)!r}: {reason}{kept}")

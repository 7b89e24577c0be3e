"""A run as a folder that is there whole or not at all."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from groundstate.errors import NotStorableError, StoreError
from groundstate.store.atomic import sync_folder
from groundstate.store.files import save

MARK = "run.json"


class RunDir:
    r"""Write a folder of results (model, report, script) so that it is never half there.

    Inside ``with`` everything goes to a hidden sibling folder. On leaving without an error it
    changes names with the earlier run, in one step where the system can, and the earlier one is
    deleted; on an error the earlier run stays and the new one is removed. A folder that is not a
    run is never replaced, and files that somebody added to a run are carried over.

    Parameters
    ----------
    path
        The folder to write.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with RunDir(pathlib.Path(folder) / "out") as run:
    ...         _ = run.write_text("report.html", "<p>fine</p>")
    ...         _ = run.write_json("report.json", {"accuracy": 0.9})
    ...         _ = run.save("model.gs", {"theta": 1.0})
    ...     sorted(p.name for p in run.path.iterdir())
    ['model.gs', 'report.html', 'report.json', 'run.json']
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.realpath(path))
        self._work: Path | None = None
        self._names: list[str] = []

    def check(self) -> None:
        """Raise early where the folder could not be written: it is something else, or not ours."""
        self._restore()
        if self.path.exists() and not is_run(self.path):
            what = "a folder that is not a groundstate run" if self.path.is_dir() else "a file"
            raise StoreError(f"{str(self.path)!r} is {what}; choose another name for the output")
        home = next(folder for folder in self.path.parents if folder.exists())
        try:  # what permissions promise, /proc and read-only disks may not keep
            os.rmdir(tempfile.mkdtemp(prefix=f".{self.path.name}.new-", dir=home))
        except OSError as error:
            raise self._failed(error) from error

    def __enter__(self) -> RunDir:
        self.check()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._sweep()
            prefix = f".{self.path.name}.new-{socket.gethostname()}-{os.getpid()}-"
            self._work = Path(tempfile.mkdtemp(prefix=prefix, dir=self.path.parent))
        except OSError as error:
            raise self._failed(error) from error
        self._names = []
        return self

    def file(self, name: str) -> Path:
        """Where to write the file ``name`` of this run now; it lands in ``path`` at the end."""
        if self._work is None:
            raise StoreError("files of a run are written inside 'with RunDir(path) as run:'")
        relative = Path(name)
        if relative.is_absolute() or ".." in relative.parts or name in ("", ".", MARK):
            raise StoreError(f"{name!r} is not the name of a file inside the run folder")
        target = self._work / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        if relative.as_posix() not in self._names:
            self._names.append(relative.as_posix())
        return target

    def write_text(self, name: str, text: str) -> Path:
        """Write UTF-8 text with plain line ends; returns where it will be."""
        return self.write_bytes(name, text.encode("utf-8"))

    def write_json(self, name: str, value: Any) -> Path:
        """Write JSON, indented, keys in the given order."""
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
        return self.write_text(name, text + "\n")

    def write_bytes(self, name: str, data: bytes) -> Path:
        """Write a file; returns where it will be."""
        target = self.file(name)
        try:
            target.write_bytes(data)
        except OSError as error:
            raise self._failed(error) from error
        return self.path / name

    def save(self, name: str, value: Any, **options: Any) -> Path:
        """Store an object as by :func:`groundstate.store.save`; returns where it will be."""
        target = self.file(name)
        try:
            save(value, target, **options)
        except NotStorableError:
            self._names.remove(Path(name).as_posix())
            raise
        return self.path / name

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        work, self._work = self._work, None
        assert work is not None
        try:
            if kind is None:
                self._publish(work)
        except OSError as failure:
            raise self._failed(failure) from failure
        finally:
            shutil.rmtree(work, ignore_errors=True)  # gone already after a success

    def _publish(self, work: Path) -> None:
        hashes = {name: _sha256(work / name) for name in sorted(self._names)}
        (work / MARK).write_text(json.dumps({"groundstate run": 1, "files": hashes}, indent=2))
        if self.path.exists():
            _carry_over(self.path, work)
        for file in work.rglob("*"):
            if file.is_file():
                with open(file, "rb") as stream:
                    os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        work.chmod(0o777 & ~mask)
        if self.path.exists() and exchange(work, self.path):
            sync_folder(self.path.parent)
            return  # the earlier run has the name of the new one now, and goes with it
        backup = self._backup()
        if self.path.exists():
            os.rename(self.path, backup)
        try:
            os.rename(work, self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.rename(backup, self.path)
            raise
        sync_folder(self.path.parent)
        shutil.rmtree(backup, ignore_errors=True)

    def _backup(self) -> Path:
        return self.path.parent / f".{self.path.name}.old"

    def _restore(self) -> None:
        """Undo a swap that a power cut interrupted, and drop what an earlier one left behind."""
        backup = self._backup()
        if is_run(backup):
            if self.path.exists():
                shutil.rmtree(backup, ignore_errors=True)
            else:
                os.rename(backup, self.path)

    def _sweep(self) -> None:
        """Remove what processes of this machine left behind that were killed while writing."""
        start = f".{self.path.name}.new-{socket.gethostname()}-"
        for folder in self.path.parent.glob(f"{glob.escape(start)}*-*"):
            number = folder.name.removeprefix(start).partition("-")[0]
            if number.isdigit() and not _alive(int(number)):
                shutil.rmtree(folder, ignore_errors=True)

    def _failed(self, error: OSError) -> StoreError:
        kept = "the previous run is unchanged" if self.path.exists() else "nothing was written"
        reason = error.strerror or str(error)
        return StoreError(f"cannot write the run {str(self.path)!r}: {reason}; {kept}")


def exchange(a: Path, b: Path) -> bool:
    """Let two folders change names in one step, where the system can; False where it cannot."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    try:
        swap = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    here, swapped = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(swap(here, os.fsencode(a), here, os.fsencode(b), swapped) == 0)


def _alive(process: int) -> bool:
    if sys.platform == "win32":
        return True  # there a signal of 0 would end it
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def is_run(folder: Path) -> bool:
    """True for a folder written by :class:`RunDir`, and for an empty one."""
    if not folder.is_dir() or folder.is_symlink():
        return False
    return (folder / MARK).is_file() or not any(folder.iterdir())


def _carry_over(old: Path, new: Path) -> None:
    """Copy files that the earlier run did not write itself."""
    try:
        own = set(json.loads((old / MARK).read_text())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        own = set()
    for file in sorted(old.rglob("*")):
        name = file.relative_to(old)
        if file.is_file() and name.as_posix() not in own | {MARK} and not (new / name).exists():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, new / name)


def _sha256(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

"""Checkpoints of a long run: written whole, the last few kept, the newest good one found."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from groundstate.errors import StoreError
from groundstate.store.files import StoreWarning, load, save

_NAME = re.compile(r"checkpoint-(\d{12})\.gs")


class Found(NamedTuple):
    """A checkpoint that could be read."""

    step: int
    state: dict[str, Any]
    path: Path


class Checkpoints:
    r"""A folder of checkpoints, of which the last ``keep`` stay.

    Parameters
    ----------
    folder
        Made when missing. Only files named ``checkpoint-<step>.gs`` in it are touched.
    keep
        How many to keep; with two or more, a damaged newest file does not lose the run.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoints = Checkpoints(folder, keep=2)
    ...     for step in (10, 20, 30):
    ...         _ = checkpoints.write(step, {"loss": 1 / step})
    ...     [path.name for path in checkpoints.paths()], checkpoints.latest().step
    (['checkpoint-000000000020.gs', 'checkpoint-000000000030.gs'], 30)
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 2) -> None:
        if keep < 1:
            raise StoreError(f"keep is the number of checkpoints to keep, at least 1, got {keep}")
        self.folder, self.keep = Path(folder), keep

    def write(self, step: int, state: dict[str, Any]) -> Path:
        """Write the state of ``step`` and remove what is older than the last ``keep``.

        A killed process can leave a hidden temporary file; it is removed here as well.
        """
        if not 0 <= step < 10**12:
            raise StoreError(f"step must lie between 0 and 10**12, got {step}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make the folder {str(self.folder)!r}: {error}") from error
        path = save(state, self.folder / f"checkpoint-{step:012d}.gs")
        # only when the new one is safe may old ones go; later steps belong to an abandoned branch
        ordered = self.paths()
        position = ordered.index(path)
        old = ordered[: max(0, position + 1 - self.keep)] + ordered[position + 1 :]
        for other in (*old, *self.folder.glob(".checkpoint-*.tmp")):
            with contextlib.suppress(OSError):
                other.unlink()
        return path

    def paths(self) -> list[Path]:
        """The checkpoint files, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted(path for path in self.folder.iterdir() if _NAME.fullmatch(path.name))

    def latest(self, *, device: str = "cpu") -> Found | None:
        """The newest checkpoint that can be read, None when there is none.

        A damaged file is passed over with a :class:`StoreWarning`.
        """
        for path in reversed(self.paths()):
            try:
                state = load(path, device=device)
                if not isinstance(state, dict):
                    raise StoreError(f"{path} holds no checkpoint")
            except StoreError as error:
                warnings.warn(f"passed over a checkpoint: {error}", StoreWarning, stacklevel=2)
                continue
            return Found(int(path.name[11:23]), state, path)
        return None


def latest(folder: str | os.PathLike[str], *, device: str = "cpu") -> Found | None:
    """The newest readable checkpoint of a folder, None when there is none."""
    return Checkpoints(folder).latest(device=device)

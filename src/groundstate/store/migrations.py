"""How files of earlier formats become files of the present one."""

from __future__ import annotations

from collections.abc import Callable

from groundstate.errors import StoreError
from groundstate.store import archive as container
from groundstate.store.archive import Archive

#: ``MIGRATIONS[k]`` turns an archive of format ``k`` into one of format ``k + 1``, in place or new.
#: A format never loses its entry: every file ever written stays readable.
MIGRATIONS: dict[int, Callable[[Archive], Archive]] = {}

#: Classes that stand in another room or have another name since a file was written, old to new.
#: An entry stays for as long as there are such files, which is for ever.
RENAMED: dict[str, str] = {
    "tune.Real": "models.Real",
    "tune.Whole": "models.Whole",
    "tune.Choice": "models.Choice",
}


def migrate(archive: Archive, name: str) -> Archive:
    """Bring an archive step by step to the present format."""
    for step in range(int(archive.manifest["format"]), container.FORMAT):
        if step not in MIGRATIONS:
            raise StoreError(f"{name} has format {step}, which this groundstate no longer reads")
        archive = MIGRATIONS[step](archive)
        archive.manifest["format"] = step + 1
    return archive

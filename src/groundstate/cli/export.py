"""``groundstate export``: the Python script of a report."""

from __future__ import annotations

import sys
from pathlib import Path

from groundstate.cli.screen import Screen
from groundstate.errors import DataError

SCRIPT = "reproduce.py"


def export(folder: str, out: str, json: bool) -> None:
    """Print the script, or write it to a file."""
    given = Path(folder)
    path = (given if given.is_dir() else given.parent) / SCRIPT
    if not given.exists() or not path.is_file():
        raise DataError(
            f"{folder!r} holds no {SCRIPT}; name the folder that groundstate fit wrote, such as "
            "groundstate-out"
        )
    text, screen = path.read_text(encoding="utf-8"), Screen(json)
    if json:
        screen.data({"script": text, "folder": str(path.parent)})
    elif out == "-":
        sys.stdout.write(text)
    if out != "-":
        from groundstate.store import write_bytes

        write_bytes(out, text.encode())
        screen.show(f"{SCRIPT} written to {out}")

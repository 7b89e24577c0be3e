"""Private parts of other libraries: held in compute/foreign, all there, used nowhere else."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src" / "groundstate"
FOREIGN = SRC / "compute" / "foreign"
LIBRARIES = ("llvmlite", "numba", "sklearn", "torch")


@pytest.mark.parametrize("file", sorted(FOREIGN.glob("[a-z]*.py")), ids=lambda file: file.stem)
def test_every_name_is_there(file: Path) -> None:
    """An upgrade that breaks a private name is mended in the file that this failure names."""
    place = file.relative_to(SRC.parents[1])
    try:
        module = importlib.import_module(f"groundstate.compute.foreign.{file.stem}")
    except (ImportError, AttributeError) as error:
        pytest.fail(f"{file.stem} changed a private name: mend {place}. {error}")
    missing = [name for name in module.__all__ if getattr(module, name, None) is None]
    assert not missing, f"mend {place}: {missing} lead nowhere"


def private_uses(source: str) -> list[str]:
    """Private names of LIBRARIES that a module imports, or reaches from an imported library."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [text] if re.fullmatch(r"[\w.]+", text := ast.unparse(node)) else []
        else:
            continue
        for name in names:
            first, *parts = name.split(".")
            private = any(p.startswith("_") and not p.startswith("__") for p in parts)
            if first in LIBRARIES and (private or first == "llvmlite" or "unsafe" in parts):
                found.append(name)
    return found


def test_nothing_private_elsewhere() -> None:
    found = {
        str(file.relative_to(SRC)): uses
        for file in sorted(SRC.rglob("*.py"))
        if file.parent != FOREIGN and (uses := private_uses(file.read_text()))
    }
    assert not found, f"private names of other libraries belong into compute/foreign: {found}"


def test_the_scan_sees_private_names() -> None:
    text = "from sklearn.utils import _x, y\nimport torch\ntorch._foo(1)\nfrom llvmlite import ir\n"
    assert sorted(private_uses(text)) == ["llvmlite.ir", "sklearn.utils._x", "torch._foo"]

"""A word in a file stands for one class, whatever a program has loaded before."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import groundstate
from groundstate.store.objects import ROOMS, class_id, class_of, hook_of

ROOT = Path(groundstate.__file__).parent
FIXTURE = Path(__file__).parent / "fixtures" / "v1" / "parts" / "rules-InBatch.gs"


def namesakes(room: str) -> list[tuple[str, str]]:
    """(module, class) of the classes whose name another class of the room has."""
    homes = defaultdict(list)
    for file in sorted((ROOT / room).rglob("*.py")):
        module = ".".join(("groundstate", *file.relative_to(ROOT).with_suffix("").parts))
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module)
    return [(m, name) for name, found in homes.items() if len(found) > 1 for m in found]


@pytest.mark.parametrize("room", ROOMS)
def test_namesakes_have_words_of_their_own(room: str) -> None:
    classes = [getattr(importlib.import_module(m), name) for m, name in namesakes(room)]
    words = {cls: class_id(cls) for cls in classes if hook_of(cls) is not None}
    assert all(word is not None and class_of(word) is cls for cls, word in words.items())
    assert len(set(words.values())) == len(words)


@pytest.mark.parametrize("before", ["", "import groundstate.learn.rules.negatives.sources; "])
def test_what_is_loaded_before_does_not_matter(before: str) -> None:
    code = f"{before}import groundstate as g; print(type(g.load({str(FIXTURE)!r})).__module__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "groundstate.learn.rules.sampled"

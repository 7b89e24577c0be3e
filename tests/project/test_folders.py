"""Folders: how many modules they hold, what files are called, and that they import one way."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "groundstate"
TESTS = ROOT / "tests"
MOST = 25  # modules of a folder; catalogues of one item a file may be longer
CATALOGUES = ("experiments",)
COMPILED = re.compile(r"(?:numba\.)?(?:njit|jit|vectorize|guvectorize|cfunc)")
HELPERS = ("inner", "outer", "vector")  # the decorators of compute.kernels.compile_numba


def folders() -> Iterator[tuple[str, list[str]]]:
    """Folders of src with the names of their modules."""
    for folder in sorted({path.parent for path in SRC.rglob("*.py")}):
        names = sorted(p.stem for p in folder.glob("*.py") if p.stem != "__init__")
        yield folder.relative_to(SRC).as_posix(), names


def test_no_folder_holds_too_many_modules() -> None:
    found = {
        name: len(names)
        for name, names in folders()
        if len(names) > MOST and not name.startswith(CATALOGUES)
    }
    assert not found, f"folders of more than {MOST} modules are parted"


def test_no_four_files_share_a_prefix() -> None:
    found = {}
    for name, names in folders():
        if name.startswith(CATALOGUES):
            continue
        groups: dict[str, list[str]] = defaultdict(list)
        for module in names:
            if "_" in module:
                groups[module.split("_")[0]].append(module)
        many = {word for word, group in groups.items() if len(group) >= 4}
        if many:
            found[name] = many
    assert not found, "a prefix of four files is a folder that has not been made yet"


def compiles(tree: ast.AST) -> bool:
    """Whether a module decorates a function with one of numba's compilers, or Triton's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                text = ast.unparse(called).lstrip("_")
                if COMPILED.fullmatch(text) or text in HELPERS:
                    return True
    return False


def test_compiled_files_say_by_what() -> None:
    found = set()
    for path in sorted(SRC.rglob("*.py")):
        text = path.read_text("utf-8")
        ending = "_triton" if "compute.foreign.triton import" in text else "_numba"
        if not path.stem.endswith(ending) and compiles(ast.parse(text)):
            found.add(path.relative_to(SRC).as_posix())
    assert not found, "files with compiled functions end in _numba, kernels for GPUs in _triton"


def imported(tree: ast.AST) -> Iterator[str]:
    """Modules of groundstate that are imported, not only for types."""
    idle = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in idle:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("groundstate."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("groundstate"):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of folders that reach one another, each as one cycle."""

    def way(start: str) -> list[str] | None:
        last: dict[str, str] = {}
        queue = [start]
        for here in queue:
            for there in sorted(graph.get(here, ())):
                if there == start:
                    path = [start]
                    while here != start:
                        path.append(here)
                        here = last[here]
                    return [start, *reversed(path)]
                if there not in last:
                    last[there] = here
                    queue.append(there)
        return None

    found, seen = [], set()
    for start in sorted(graph):
        path = way(start)
        if path is not None and frozenset(path) not in seen:
            seen.add(frozenset(path))
            found.append(path)
    return found


def test_sibling_folders_import_one_way() -> None:
    """No folder of a room imports, directly or through others, one that imports it."""
    graphs: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    where: dict[tuple[str, str, str], str] = {}
    for path in sorted(SRC.rglob("*.py")):
        own = path.relative_to(SRC).parts[:-1]
        for name in imported(ast.parse(path.read_text("utf-8"))):
            other = tuple(name.split(".")[1:])
            shared = 0
            while shared < min(len(own), len(other)) and own[shared] == other[shared]:
                shared += 1
            if shared == 0 or shared >= len(own) or shared >= len(other):
                continue
            room, a, b = "/".join(own[:shared]), own[shared], other[shared]
            if (SRC / room / b).is_dir():
                graphs[room][a].add(b)
                where.setdefault((room, a, b), path.relative_to(SRC).as_posix())
    found = []
    for room, graph in graphs.items():
        for cycle in cycles(graph):
            edges = [f"{a} → {b} ({where[room, a, b]})" for a, b in pairwise(cycle)]
            found.append(f"{room}: " + ", ".join(edges))
    assert not found, "\n".join(["folders that import each other:", *found])


def test_tests_mirror_the_source() -> None:
    rooms = {path.name for path in SRC.iterdir() if path.is_dir()}
    found = {
        folder.relative_to(TESTS).as_posix()
        for folder in sorted({path.parent for path in TESTS.rglob("test_*.py")})
        if folder != TESTS
        and folder.relative_to(TESTS).parts[0] in rooms
        and not (SRC / folder.relative_to(TESTS)).is_dir()
    }
    assert not found, "tests/<room>/<folder> tests src/groundstate/<room>/<folder>"

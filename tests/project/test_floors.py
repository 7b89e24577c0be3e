"""The house: imports go down only, nothing below the front doors prints, files stay short."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "groundstate"

# Bottom to top. Rooms of one floor may use each other, as long as no circle arises.
FLOORS = (
    {"errors", "lazy", "registry", "testing"},
    {"compute"},
    {"math"},
    {"nn"},
    {"energy"},
    {"infer"},
    {"learn"},
    {"models"},
    {"evaluate", "tune"},
    {"study"},
    {"experiments", "report"},
    {"studies"},
    {"cli", "studio", "serve", "bench", "__main__"},
)
LEVEL = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}

# `data` and `store` stand beside `energy`: they use what is under it. Checkpoints of a run need
# `store` from `learn` up; tables are for `models` up.
BESIDE = {"data": "models", "store": "learn"}
UNDER_BESIDE = {"errors", "lazy", "registry", "compute", "math"}

# file -> why it may have more than 400 lines
LONG: dict[str, str] = {"src/groundstate/__init__.py": "a line for every public name"}


def sources() -> list[Path]:
    return sorted(SRC.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imported(path: Path, source: str) -> set[tuple[str, int]]:
    """Rooms that a module imports anywhere in its text, with line numbers."""
    package = ["groundstate", *path.relative_to(SRC).parts[:-1]]
    found: set[tuple[str, int]] = set()
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *(node.module.split(".") if node.module else [])])
            names = [f"{stem}.{alias.name}" for alias in node.names]
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_module"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            names = [str(node.args[0].value)]
        for name in names:
            parts = name.split(".")
            if parts[0] == "groundstate" and len(parts) > 1:
                found.add((parts[1], getattr(node, "lineno", 0)))
    return found


def allowed(user: str, used: str) -> bool:
    if user == used:
        return True
    if user in BESIDE:
        return used in UNDER_BESIDE
    if used in BESIDE:
        return LEVEL[user] >= LEVEL[BESIDE[used]]
    return used in LEVEL and LEVEL[used] <= LEVEL[user]


def edges() -> list[tuple[str, str, str]]:
    rows = []
    for path in sources():
        if path == SRC / "__init__.py":
            continue  # lazy exports name modules of every floor and import none
        for used, line in imported(path, path.read_text()):
            if used in LEVEL or used in BESIDE:
                rows.append((room_of(path), used, f"{path.relative_to(ROOT)}:{line}"))
            elif not used.startswith("__"):
                rows.append((room_of(path), "the top", f"{path.relative_to(ROOT)}:{line}"))
    return rows


def test_every_room_has_a_floor() -> None:
    rooms = {room_of(path) for path in sources()} - {"__init__"}
    assert rooms <= set(LEVEL) | set(BESIDE)


def test_imports_go_down_only() -> None:
    upward = [f"{where}: {user} imports {used}" for user, used, where in edges()
              if not allowed(user, used)]  # fmt: skip
    assert not upward, "\n".join(upward)


def test_rooms_of_one_floor_make_no_circle() -> None:
    graph: dict[str, set[str]] = {}
    for user, used, _ in edges():
        if user != used:
            graph.setdefault(user, set()).add(used)
    from graphlib import TopologicalSorter

    list(TopologicalSorter(graph).static_order())  # raises CycleError, naming the circle


@pytest.mark.parametrize(
    ("room", "text", "ok"),
    [
        ("learn/a.py", "from groundstate.infer import minimise", True),
        ("infer/a.py", "def f():\n    from groundstate.learn import fit", False),
        ("infer/a.py", "from ..learn.fit import fit", False),
        ("infer/a.py", "from groundstate import learn", False),
        ("infer/a.py", "import groundstate.models.linear", False),
        ("data/a.py", "import groundstate.energy", False),
        ("store/a.py", "from groundstate.compute import line", True),
        ("learn/a.py", "import groundstate.store", True),
        ("infer/a.py", "import groundstate.store", False),
        ("learn/a.py", "import groundstate.data", False),
        ("models/a.py", "import groundstate.store, groundstate.data", True),
        ("energy/a.py", "import_module('groundstate.models')", False),
    ],
)
def test_the_check_itself(room: str, text: str, ok: bool) -> None:
    path = SRC / room
    found = {used for used, _ in imported(path, text)}
    assert found and all(allowed(room_of(path), used) for used in found) == ok


def test_nothing_below_the_front_doors_prints() -> None:
    printing = []
    for path in sources():
        if LEVEL.get(room_of(path), 0) == len(FLOORS) - 1:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and (
                (isinstance(node.func, ast.Name) and node.func.id == "print")
                or ast.unparse(node.func) in {"sys.stdout.write", "sys.stderr.write"}
            ):
                printing.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not printing, printing


def test_files_are_short() -> None:
    lengths = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in sources()}
    long = {name: n for name, n in lengths.items() if n > 400 and name not in LONG}
    assert not long, f"split these, or give a reason in LONG: {long}"
    assert all(lengths.get(name, 0) > 400 for name in LONG), "LONG names a file that is short now"


def test_no_unfinished_work_in_the_source() -> None:
    found = []
    for path in sources():
        text = path.read_text()
        where = path.relative_to(ROOT)
        found += [f"{where}: {mark}" for mark in ("TODO", "FIXME", "XXX") if mark in text]
        for node in ast.walk(ast.parse(text)):
            # Catching it from another library is fine, raising it is a stub.
            if isinstance(node, ast.Raise) and "NotImplementedError" in ast.unparse(node):
                found.append(f"{where}:{node.lineno} raises NotImplementedError")
    assert not found, found

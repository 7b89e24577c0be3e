"""``groundstate solve``: a differential equation from a file."""

from __future__ import annotations

import json as jsonlib
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from groundstate.cli.screen import Screen
from groundstate.data import read
from groundstate.data.messages import did_you_mean
from groundstate.errors import DataError
from groundstate.models.physics.described import problem_of
from groundstate.models.physics.pinn import PINN
from groundstate.report.solution import solution_facts, solution_page, solution_words
from groundstate.store import write_bytes


def solve(
    file: str, out: str | None, data: str | None, seed: int, device: str | None, json: bool,
    quiet: bool,
) -> None:  # fmt: skip
    """Solve the problem of a TOML file and write model.gs, report.html and report.json to a folder."""
    screen, path = Screen(json, not quiet), Path(file)
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"there is no file {file}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{file} is not TOML: {error}") from None
    settings = dict(given.pop("pinn", {}))
    table = data or given.pop("data", None)
    given.pop("data", None)
    problem = problem_of(given)
    known = PINN(problem).get_params()
    strange = [name for name in settings if name not in known]
    if strange:
        hint = did_you_mean(strange[0], known) or f"; there are {', '.join(known)}"
        raise DataError(f"[pinn] has {', '.join(strange)}, which is no parameter of PINN{hint}")
    X, u = _measured(table, path, problem)
    model = PINN(problem, **{"random_state": seed, "device": device, **settings})
    try:
        model._validate_params()
    except ValueError as error:
        raise DataError(f"[pinn]: {error}") from None
    folder = Path(out or path.with_suffix("").name + "-solution")
    folder.mkdir(parents=True, exist_ok=True)  # before the work, which a wrong name would waste
    with screen.stages() as progress:
        progress(f"solving {problem.text()}")
        model.fit(X, u)
    facts = solution_facts(model)
    model.save(folder / "model.gs")
    write_bytes(folder / "report.html", solution_page(model, facts).encode())
    write_bytes(folder / "report.json", (jsonlib.dumps(facts, indent=2) + "\n").encode())
    screen.data({**facts, "folder": str(folder)})
    lines = [f"{name}: {value}" for name, value in solution_words(facts)]
    screen.show("\n".join([*lines, f"written: {folder}/model.gs, report.html, report.json"]))


def _measured(table: str | None, path: Path, problem: Any) -> tuple[Any, Any]:
    if table is None:
        return None, None
    where = Path(table) if Path(table).exists() else path.parent / table
    frame = read(str(where)).frame
    wanted = [*problem.domain.names, *problem.unknowns]
    missing = [name for name in wanted if name not in frame.columns]
    if missing:
        raise DataError(
            f"{where} has no column {', '.join(missing)}; it has {', '.join(frame.columns)}"
        )
    values = [np.asarray(frame[name].to_numpy(), dtype=np.float64) for name in wanted]
    d = len(problem.domain.names)
    return np.column_stack(values[:d]), np.column_stack(values[d:])

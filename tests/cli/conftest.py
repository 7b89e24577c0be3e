"""One fitted folder and a few tables that the tests of the command line share."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from groundstate.cli import screen
from groundstate.cli.app import app

MODELS = "LogisticRegression,LinearSVC"
# a quarter of the rows judges, two settings are tried, few refits
QUICK = ("--test", "0.25", "--tune", "2", "--seeds", "2", "--bootstrap", "3")


class Done:
    """What a command left behind."""

    def __init__(self, result: Any) -> None:
        self.code: int = result.exit_code
        self.out: str = result.stdout
        self.error: str = result.stderr
        self.exception = result.exception

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(scope="session")
def call() -> Iterator[Callable[..., Done]]:
    def run(*arguments: object) -> Done:
        return Done(CliRunner().invoke(app, [str(a) for a in arguments]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(screen, "_EVERY", math.inf)  # no lines of progress where a machine is slow
        yield run


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """180 rows with numbers, labels, dates, an identifier, a constant, holes and copies."""
    rng = np.random.default_rng(3)
    n = 180
    x, z = rng.normal(size=n), rng.normal(size=n)
    colour = rng.choice(["red", "blue", "green"], n)
    days = np.datetime64("2021-01-01") + rng.integers(0, 700, n)
    label = np.where(x + 1.2 * (colour == "red") + 0.5 * rng.normal(size=n) > 0.4, "yes", "no")
    lines = ["id,age,colour,when,always,noise,bought"]
    for i in range(n):
        age = "" if i % 17 == 3 else f"{40 + 10 * x[i]:.2f}"
        shade = "?" if i % 23 == 5 else colour[i]
        lines.append(f"{i},{age},{shade},{days[i]},7,{z[i]:.3f},{label[i]}")
    path = tmp_path_factory.mktemp("tables") / "mixed.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def fitted(
    call: Callable[..., Done], mixed: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder that ``fit`` writes for the mixed table."""
    out = tmp_path_factory.mktemp("run") / "out"
    done = call("fit", mixed, "--target", "bought", "--out", out, "--model", MODELS, *QUICK)
    assert done.code == 0, done.error
    return out

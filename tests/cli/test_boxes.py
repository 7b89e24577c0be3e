"""Lines of objects that ``predict`` writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from groundstate.cli.answers import boxes


class Finds:
    """One square in every picture."""

    def predict(self, paths: list[str]) -> list[dict[str, Any]]:
        one = {"boxes": np.array([[1.234, 2, 3, 4]]), "labels": ["square"]}
        return [{**one, "scores": np.array([0.87654321], np.float32)} for _ in paths]


class Keeps:
    """A screen that shows nothing."""

    lines: pl.DataFrame

    def frame(self, lines: pl.DataFrame, out: str) -> None:
        self.lines = lines


@pytest.mark.parametrize(
    ("files", "named"),
    [
        (("a/1.png", "b/2.png"), ["1.png", "2.png"]),
        (("a/1.png", "b/1.png"), ["a/1.png", "b/1.png"]),
    ],
)
def test_objects_name_their_picture(tmp_path: Path, files: Any, named: list[str]) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir()
        Image.new("L", (8, 8)).save(tmp_path / file)
    screen: Any = Keeps()
    boxes(Finds(), "model.gs", str(tmp_path), "-", None, screen)
    assert screen.lines["image"].to_list() == named
    assert screen.lines.row(0)[1:] == ("square", 0.8765, 1.23, 2.0, 3.0, 4.0)

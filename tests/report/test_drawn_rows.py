"""What reports draw of graphs and masks: groups apart, colours of the page and not their stand-ins."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from groundstate.report.drawn import _mask
from groundstate.report.rows import layout
from groundstate.report.style import VARIABLES
from groundstate.report.svg import inline_svg


def blocks(sizes: list[int], inside: float, between: float) -> tuple[np.ndarray, np.ndarray]:
    rng, block = np.random.default_rng(0), np.repeat(np.arange(len(sizes)), sizes)
    odds = np.where(block[:, None] == block, inside, between)
    return np.argwhere(rng.random(odds.shape) < odds), block


def test_groups_of_a_graph_stand_apart() -> None:
    ends, block = blocks([40, 40, 40], 0.15, 0.01)
    place = layout(ends, 120)
    middles = np.stack([place[block == b].mean(0) for b in range(3)])
    nearest = np.square(place[:, None] - middles).sum(-1).argmin(1)
    assert (nearest == block).mean() > 0.9
    np.testing.assert_array_equal(layout(ends, 120), place)


@pytest.mark.parametrize("ends", [np.zeros((0, 2), int), np.array([[0, 1]]), np.array([[1, 1]])])
def test_few_edges_and_nodes_without_any(ends: np.ndarray) -> None:
    place = layout(ends, 12)
    assert place.shape == (12, 2) and np.isfinite(place).all()
    apart = np.square(place[:, None] - place).sum(-1) + np.eye(12)
    assert apart.min() > 1e-4


def test_pixels_hold_colours_and_no_stand_ins() -> None:
    """Variables of the page replace colours in the text of an SVG, not in the pictures inside it."""
    labels = np.repeat([[0, 1, 2]], 8, axis=0)
    svg = inline_svg("m", (2.0, 2.0), lambda f: _mask(f.subplots(), labels, np.arange(3)))
    found = re.findall(r"base64,([^\"]+)", svg)
    assert found
    for one in found:
        image = Image.open(io.BytesIO(base64.b64decode(re.sub(r"\s", "", one))))
        pixels = np.asarray(image.convert("RGBA")).reshape(-1, 4)
        seen = {tuple(p[:3]) for p in pixels if p[3] > 0}
        stands = {tuple(bytes.fromhex(colour[1:])) for colour in VARIABLES}
        assert seen and not seen & stands
        assert max(max(p) for p in seen) > 200  # bright enough to be seen on a picture

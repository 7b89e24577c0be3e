"""Drawings: as many nodes and edges as the network has, and well-formed SVG."""

from __future__ import annotations

import itertools
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from torch import nn

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn import MLP, Drawing, draw, draw_backprop, draw_norm, draw_residual, norm
from groundstate.nn.inspect.draw_norm import norm_axes

SVG = "{http://www.w3.org/2000/svg}"


def counts(picture: Drawing) -> tuple[int, int]:
    """Nodes and edges of the text itself."""
    root = ElementTree.fromstring(picture.svg)
    found = len(root.findall(f"{SVG}circle")), len(root.findall(f"{SVG}path"))
    assert found == (picture.nodes, picture.edges)
    return found


@pytest.mark.parametrize("sizes", [(1, 1), (4, 2, 3, 2), (3, 4, 2, 3, 2), (1, 3, 1)])
def test_nodes_and_edges(sizes: tuple[int, ...]) -> None:
    net = MLP(sizes[0], sizes[1:-1], sizes[-1])
    edges = sum(a * b for a, b in itertools.pairwise(sizes))
    assert counts(draw(net)) == (sum(sizes), edges)
    with_bias = counts(draw(net, bias=True))
    assert with_bias == (sum(sizes) + len(sizes) - 1, net.n_parameters)


def test_values_on_nodes_and_edges() -> None:
    net = MLP(2, (3,), 1).double()
    picture = draw(net, torch.tensor([1.0, -2.0], dtype=torch.float64))
    counts(picture)
    assert ">-2</text>" in picture.svg and "w·a = " in picture.svg


def test_a_thinned_network_has_fewer_edges() -> None:
    picture = draw(MLP(3, (4, 4), 2), keep=[[True, False, True, True], [True, True, False, False]])
    assert counts(picture) == (13, 3 * 3 + 3 * 2 + 2 * 2)
    with pytest.raises(ShapeError, match=r"widths \[4, 4\], got lengths \[4\]"):
        draw(MLP(3, (4, 4), 2), keep=[[True] * 4])


@pytest.mark.parametrize("blocks", [1, 2, 3, 5])
def test_residual_rows_and_their_paths(blocks: int) -> None:
    assert counts(draw_residual(blocks)) == (2 * blocks + 1, 3 * blocks)
    # every subset of the blocks is a chain from x to the sum
    uses = blocks * 2 ** (blocks - 1)
    assert counts(draw_residual(blocks, unravelled=True)) == (uses + 2, uses + 2**blocks)


def test_forward_and_backward_values() -> None:
    net = MLP(1, (1,), 1, "sigmoid").double()
    with torch.no_grad():
        for p in net.parameters():
            p.fill_(1.0)
    net.layers[0].weight.grad = torch.ones(1, 1, dtype=torch.float64)
    picture = draw_backprop(net, torch.tensor([2.0], dtype=torch.float64), lambda a: a.sum() ** 2)
    assert counts(picture) == (5, 8)
    a = torch.sigmoid(torch.tensor(3.0, dtype=torch.float64)).item()
    assert f">{(1 + a) ** 2:.3g}</text>" in picture.svg  # the loss
    assert f">{2 * (1 + a):.3g}</text>" in picture.svg  # its slope in the output
    assert f">{2 * (1 + a) * a * (1 - a):.3g}</text>" in picture.svg  # and in z
    assert net.layers[0].weight.grad.item() == 1.0  # the caller's gradients are not touched


def test_saving_and_notebooks(tmp_path: Path) -> None:
    picture = draw(MLP(2, (3,), 1))
    assert picture.save(tmp_path / "net.svg").read_text() == str(picture) == picture._repr_svg_()


def test_draw_errors() -> None:
    with pytest.raises(Unsupported, match="draw shows rows of linear layers, ReLU has none"):
        draw(nn.ReLU())
    with pytest.raises(Unsupported, match="matching widths"):
        draw(nn.Sequential(nn.Linear(2, 4), nn.Flatten(), nn.Linear(3, 1)))
    with pytest.raises(ValueError, match="1 to 6 blocks can be drawn, got 7"):
        draw_residual(7)


@pytest.mark.parametrize("kind", ["batch", "layer", "instance", "group"])
def test_the_cube_shows_what_torch_normalises_together(kind: str) -> None:
    """A value changes the outputs of exactly the cells that share its statistics."""
    shape = (3, 4, 5)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    moved = x.clone()
    moved[-1, -1, -1] += 1.0
    layer = norm(kind, 4, 1, groups=2).double()
    seen = ((layer(x) - layer(moved)).abs() > 1e-9).numpy()
    assert (seen == norm_axes(kind, shape)).all()
    picture = draw_norm(kind, shape)
    root = ElementTree.fromstring(picture.svg)
    assert len(root.findall(f"{SVG}polygon")) == picture.nodes == 12 + 20 + 15

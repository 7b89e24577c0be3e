"""What gates do is what the kernels do; pictures hold the parts they should."""

from __future__ import annotations

import pytest
import torch

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn import Recurrent, draw_cell, draw_gates, draw_unrolled, gates


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_states_written_out_are_those_of_the_kernel(cell: str) -> None:
    net = Recurrent(cell, 3, 4, 2, learn_h0=True).double()
    with torch.no_grad():
        net.h0.normal_(generator=torch.Generator().manual_seed(1))
    x = torch.randn(2, 6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    seen = gates(net, x, layer=1)
    torch.testing.assert_close(seen["h"], net(x), rtol=0, atol=1e-14)
    for name in set(seen) & set("iforu"):
        assert ((seen[name] > 0) & (seen[name] < 1)).all()


def test_states_of_a_reset_before_the_map() -> None:
    net = Recurrent("gru", 3, 4, reset_after=False).double()
    x = torch.randn(2, 6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(gates(net, x)["h"], net(x), rtol=0, atol=1e-14)


def test_a_forget_gate_of_one_and_no_input_keep_the_memory() -> None:
    net = Recurrent("lstm", 1, 2)
    with torch.no_grad():
        for p in net.core.parameters():
            p.zero_()
        net.core.bias_ih_l0[:2], net.core.bias_ih_l0[2:4] = -1e3, 1e3
    seen = gates(net, torch.ones(1, 5, 1))
    assert torch.equal(seen["f"], torch.ones(1, 5, 2)) and torch.equal(seen["c"], 0 * seen["c"])


def test_gates_are_refused_where_there_are_none() -> None:
    with pytest.raises(Unsupported, match="one direction"):
        gates(Recurrent("gru", 1, 2, bidirectional=True), torch.ones(1, 2, 1))
    with pytest.raises(ValueError, match="0 to 0, got 1"):
        gates(Recurrent("gru", 1, 2), torch.ones(1, 2, 1), layer=1)
    with pytest.raises(ShapeError, match=r"\(batch, length, 1\), got \(2, 1\)"):
        gates(Recurrent("gru", 1, 2), torch.ones(2, 1))


@pytest.mark.parametrize(
    ("pattern", "feedback", "nodes", "edges"),
    [
        ("many-to-one", False, 1 + 4 + 4 + 1, 4 + 4 + 1),
        ("one-to-many", False, 1 + 4 + 1 + 4, 4 + 1 + 4),
        ("one-to-many", True, 1 + 4 + 1 + 4, 4 + 1 + 4 + 3),
        ("aligned", False, 1 + 4 + 4 + 4, 4 + 4 + 4),
        ("aligned", True, 1 + 4 + 4 + 4, 4 + 4 + 4 + 3),
        ("unaligned", False, 1 + 8 + 4 + 4, 8 + 4 + 4 + 3),
    ],
)
def test_unrolled_networks(pattern: str, feedback: bool, nodes: int, edges: int) -> None:
    picture = draw_unrolled(4, pattern, feedback=feedback)
    assert (picture.nodes, picture.edges) == (nodes, edges)
    assert picture.svg.count("<circle") == nodes and picture.svg.count("<path") == edges


def test_stacked_layers_are_drawn() -> None:
    assert draw_unrolled(3, layers=2).edges == 3 + 3 + 3 + 3 + 3
    with pytest.raises(Unsupported, match="many-to-one, one-to-many, aligned, unaligned"):
        draw_unrolled(3, "sideways")
    with pytest.raises(ValueError, match="at least 1"):
        draw_unrolled(0)


def test_cells_are_drawn_with_their_gates() -> None:
    for cell, letters in (("rnn", ["tanh"]), ("lstm", list("ifgo")), ("gru", list("run"))):
        svg = draw_cell(cell).svg
        assert all(f">{letter}<" in svg for letter in letters)
    with pytest.raises(Unsupported, match="rnn, lstm, gru"):
        draw_cell("elman")


def test_a_picture_of_gates_has_a_square_per_unit_and_item() -> None:
    picture = draw_gates(Recurrent("gru", 2, 3), torch.ones(5, 2))
    assert picture.nodes == 4 * 3 * 5 == picture.svg.count("<rect")

"""Recurrent networks: hand examples, torch's layers, lengths, steps, cut gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from groundstate.compute.rows import Ragged
from groundstate.errors import DataError, ShapeError, Unsupported
from groundstate.nn import BPTT, TCN, Recurrent, Reverse, bucketed, pack_rows, pad_batch, unpad
from groundstate.store import dumps, loads

CELLS = ["rnn", "lstm", "gru"]


def normal(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def counted(net: nn.Module) -> int:
    return sum(p.numel() for p in net.parameters())


@torch.no_grad()
def scalar(cell: str, w_in: float, w_rec: float, **options: bool) -> Recurrent:
    """One unit, all input weights and all recurrent weights equal, no bias."""
    net = Recurrent(cell, 1, 1, **options).double()
    for name, p in net.core.named_parameters():
        p.fill_(0.0 if "bias" in name else w_in if "ih" in name else w_rec)
    return net


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)[None, :, None]


def test_the_hand_example_of_a_simple_network() -> None:
    h = scalar("rnn", 0.7, 0.9)(column(0.5, -0.3, 0.8, 0.2))[0, :, 0]
    assert h.tolist() == pytest.approx([0.336376, 0.092473, 0.567092, 0.571928], abs=1e-6)
    assert (1.1 * h[-1]).item() == pytest.approx(0.629120, abs=1e-6)


def test_the_hand_example_of_an_lstm() -> None:
    h = scalar("lstm", 1.0, 1.0)(column(1.0, -1.0, 0.5))[0, :, 0]
    assert h.tolist() == pytest.approx([0.369606, -0.000187, 0.174000], abs=1e-6)


@pytest.mark.parametrize("reset_after", [True, False])
def test_the_hand_example_of_a_gru(reset_after: bool) -> None:
    h = scalar("gru", 1.0, 1.0, reset_after=reset_after)(column(1.0, 1.0, 1.0))[0, :, 0]
    assert h.tolist() == pytest.approx([0.204824, 0.346753, 0.451697], abs=1e-6)


@pytest.mark.parametrize(
    ("reset_after", "expected"), [(False, [0.288586, 0.348736]), (True, [0.288465, 0.351189])]
)
def test_where_the_reset_stands_matters(reset_after: bool, expected: list[float]) -> None:
    net = Recurrent("gru", 2, 2, reset_after=reset_after).double()
    eye, swap = torch.eye(2), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    with torch.no_grad():
        for name, p in net.core.named_parameters():
            if "bias" in name:
                p.zero_()
            else:
                p.copy_(torch.cat((eye, eye, eye if "ih" in name else swap)))
    x = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]]).double()
    assert net(x)[0, -1].tolist() == pytest.approx(expected, abs=1e-6)


def test_gates_that_keep_keep() -> None:
    lstm, gru = scalar("lstm", 0.0, 0.0), scalar("gru", 0.0, 0.0)
    with torch.no_grad():
        lstm.core.bias_ih_l0.copy_(torch.tensor([-1e3, 1e3, 0.0, 0.0]))  # i, f, g, o
        gru.core.bias_ih_l0.copy_(torch.tensor([0.0, 1e3, 0.0]))  # r, u, new
    state = normal(1, 3, 1), normal(1, 3, 1, seed=1)
    assert torch.equal(lstm.run(normal(3, 5, 1), None, state)[1][1], state[1])
    assert torch.equal(gru.run(normal(3, 5, 1), None, state[0])[1], state[0])


@pytest.mark.parametrize("cell", CELLS)
def test_cells_are_interchangeable_and_torch_s(cell: str) -> None:
    net = Recurrent(cell, 3, 4, 2, bidirectional=True).double()
    theirs = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}[cell](
        3, 4, 2, batch_first=True, bidirectional=True
    ).double()
    theirs.load_state_dict(net.core.state_dict())
    x = normal(2, 5, 3)
    assert net.out_features == 8
    assert torch.equal(net(x), theirs(x)[0])


def test_a_gru_has_three_quarters_of_an_lstm() -> None:
    assert 4 * counted(Recurrent("gru", 3, 5)) == 3 * counted(Recurrent("lstm", 3, 5))


def test_one_item_is_a_layer() -> None:
    net, x = Recurrent("rnn", 3, 4).double(), normal(2, 1, 3)
    core = net.core
    expected = torch.tanh(x[:, 0] @ core.weight_ih_l0.T + core.bias_ih_l0 + core.bias_hh_l0)
    assert torch.allclose(net(x)[:, 0], expected)


@pytest.mark.parametrize("net", [*(Recurrent(c, 3, 4) for c in CELLS), TCN(3, 4, 2)])
def test_states_do_not_see_the_future(net: nn.Module) -> None:
    net, x = net.double(), normal(1, 6, 3).requires_grad_(True)
    for t in range(6):
        (grad,) = torch.autograd.grad(net(x)[0, t].sum(), x)
        assert torch.equal(grad[0, t + 1 :], torch.zeros(5 - t, 3).double())


@pytest.mark.parametrize(
    "net",
    [Recurrent("gru", 3, 4, bidirectional=True),
     nn.Sequential(Recurrent("gru", 3, 4), Reverse(), Recurrent("gru", 4, 4), Reverse())],
    ids=["parallel", "stacked"],
)  # fmt: skip
def test_two_sided_context_sees_everything(net: nn.Module) -> None:
    x = normal(1, 4, 3)
    jacobian = torch.autograd.functional.jacobian(net.double(), x)[0, :, :, 0]  # (T, F, T, 3)
    assert (jacobian.abs().sum((1, 3)) > 0).all()


NETS = {
    **{cell: lambda cell=cell: Recurrent(cell, 3, 4, 2, learn_h0=True) for cell in CELLS},
    "both": lambda: Recurrent("lstm", 3, 4, bidirectional=True),
    "reset first": lambda: Recurrent("gru", 3, 4, reset_after=False),
    "tcn": lambda: TCN(3, 4, 3),
    "reverse": Reverse,
}


@pytest.mark.parametrize("name", NETS)
def test_results_do_not_depend_on_padding(name: str) -> None:
    net = NETS[name]().double()
    rows = [normal(n, 3, seed=n) for n in (5, 1, 7, 3)]
    ragged = Ragged.of(rows, torch.float64)
    out = net(ragged)
    for i, row in enumerate(rows):
        alone = net(row[None])[0]
        assert torch.allclose(
            out.values[out.offsets[i] : out.offsets[i + 1]], alone, rtol=0, atol=1e-12
        )
    x, mask = pad_batch(ragged, fill=100.0)
    more = torch.cat((x, torch.full((4, 3, 3), -7.0).double()), 1)
    padded = net(more, ragged.lengths)
    assert torch.allclose(padded[:, :7][mask], out.values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [*CELLS, "reset first"])
def test_steps_are_the_whole(name: str) -> None:
    net, x = NETS[name]().double(), normal(2, 6, 3)
    whole, last = net.run(x)
    out, state = net.run(x[:, :2])
    outs = [out]
    for t in range(2, 6):
        out, state = net.step(x[:, t], state)
        outs.append(out[:, None])
    assert torch.allclose(torch.cat(outs, 1), whole, atol=1e-12)
    for a, b in zip(state, last):
        assert torch.allclose(a, b, atol=1e-12)


def test_the_last_state_is_of_the_last_real_item() -> None:
    net, x = Recurrent("lstm", 3, 4).double(), normal(2, 5, 3)
    _, (h, _) = net.run(x, torch.tensor([3, 5]))
    out = net(x)
    assert torch.allclose(h[0], torch.stack((out[0, 2], out[1, 4])), atol=1e-12)


def test_a_learned_start_gets_a_gradient() -> None:
    net = Recurrent("gru", 3, 4, learn_h0=True)
    net(torch.ones(2, 3, 3)).sum().backward()
    assert net.h0 is not None and net.h0.grad is not None and net.h0.grad.abs().sum() > 0


def test_initial_biases_of_the_gates() -> None:
    gru, lstm = Recurrent("gru", 3, 4, update_bias=3.0), Recurrent("lstm", 3, 4, forget_bias=1.0)
    for net, value in ((gru, 3.0), (lstm, 1.0)):
        assert net.core.bias_ih_l0[4:8].tolist() == [value] * 4
        assert net.core.bias_hh_l0[4:8].tolist() == [0.0] * 4


def test_no_global_draw_and_equal_seeds() -> None:
    state = torch.get_rng_state()
    one, two = (Recurrent("gru", 3, 4, generator=torch.Generator().manual_seed(7)) for _ in "ab")
    TCN(3, 4)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters()))


@pytest.mark.parametrize("name", NETS)
def test_networks_are_stored(name: str) -> None:
    net, x = NETS[name](), torch.ones(2, 5, 3)
    assert torch.equal(loads(dumps(net))(x), net(x))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(Unsupported, match="rnn, lstm, gru"):
        Recurrent("elman", 3, 4)
    with pytest.raises(Unsupported, match="one layer in one direction"):
        Recurrent("gru", 3, 4, 2, reset_after=False)
    with pytest.raises(ShapeError, match=r"\(batch, length, 3\), got \(2, 5, 4\)"):
        Recurrent("gru", 3, 4)(torch.ones(2, 5, 4))
    with pytest.raises(ShapeError, match="row 1 has no item"):
        Recurrent("gru", 3, 4)(torch.ones(2, 5, 3), torch.tensor([2, 0]))
    with pytest.raises(Unsupported, match="from the end"):
        net = Recurrent("gru", 3, 4, bidirectional=True)
        net.step(torch.ones(2, 3), net.start(2))
    with pytest.raises(ShapeError, match="TCN takes"):
        TCN(3, 4)(torch.ones(2, 5, 4))


# --- backpropagation through time --------------------------------------------------------


def gradients(**options: object) -> list[float]:
    """dℓ/d(w₂, w₁, w₀) of the hand example."""
    net = scalar("rnn", 0.7, 0.9)
    w2 = torch.tensor(1.1, dtype=torch.float64, requires_grad=True)
    h = BPTT(net, **options)(column(0.5, -0.3, 0.8, 0.2))[0, -1, 0]  # type: ignore[arg-type]
    loss = (w2 * h - 0.4).square()
    wanted = [w2, net.core.weight_hh_l0, net.core.weight_ih_l0]
    return [g.item() for g in torch.autograd.grad(loss, wanted)]


def test_the_gradients_of_the_hand_example() -> None:
    assert gradients() == pytest.approx([0.262080, 0.273659, 0.251822], abs=1e-6)


def written_out(terms: int) -> float:
    x, w0, w1, w2, y = [0.5, -0.3, 0.8, 0.2], 0.7, 0.9, 1.1, 0.4
    h, slopes = [0.0], []
    for value in x:
        h.append(torch.tanh(torch.tensor(w0 * value + w1 * h[-1], dtype=torch.float64)).item())
        slopes.append(1 - h[-1] ** 2)
    total, reach = 0.0, 1.0
    for back in range(terms):  # j = T − back
        j = 4 - back
        reach *= slopes[j - 1]
        total += w1**back * reach * h[j - 1]
    return 2 * (w2 * h[-1] - y) * w2 * total


def test_the_sum_over_how_far_back() -> None:
    assert [written_out(n) for n in (1, 2, 3)] == pytest.approx(
        [0.192349, 0.211499, 0.273659], abs=1e-6
    )
    assert written_out(4) == pytest.approx(gradients()[1], abs=1e-12)  # h₀ = 0 adds nothing


def test_truncation_cuts_every_k_items() -> None:
    assert gradients(truncate=1)[1] == pytest.approx(written_out(1), abs=1e-12)
    assert gradients(truncate=2)[1] == pytest.approx(written_out(2), abs=1e-12)
    assert gradients(truncate=4)[1] == pytest.approx(written_out(4), abs=1e-12)


def test_random_truncation_has_no_bias() -> None:
    net = scalar("rnn", 0.7, 0.9)
    x = column(0.5, -0.3, 0.8, 0.2)
    generator = torch.Generator().manual_seed(0)
    cut = BPTT(net, random_truncate=0.5, generator=generator)
    h = cut(x.expand(4000, -1, -1))[:, -1, 0]
    rows = torch.stack([
        torch.autograd.grad((1.1 * part - 0.4).square().sum(), net.core.weight_hh_l0,
                            retain_graph=True)[0].squeeze() / len(part)
        for part in h.split(100)
    ])  # fmt: skip
    error = rows.std() / len(rows) ** 0.5
    assert abs(rows.mean() - gradients()[1]) < 3 * error
    assert error > 0


@pytest.mark.parametrize("cell", CELLS)
def test_cut_gradients_leave_values(cell: str) -> None:
    net, x = Recurrent(cell, 3, 4).double(), normal(2, 7, 3)
    for options in (
        {"truncate": 3},
        {"random_truncate": 0.3},
        {"truncate": 2, "random_truncate": 0.5},
    ):
        assert torch.allclose(BPTT(net, **options)(x), net(x), atol=1e-14)
    with pytest.raises(ValueError, match="at least 1"):
        BPTT(net, truncate=0)
    with pytest.raises(ValueError, match=r"\(0, 1\]"):
        BPTT(net, random_truncate=0.0)
    with pytest.raises(Unsupported, match="one direction"):
        BPTT(Recurrent(cell, 3, 4, bidirectional=True))


# --- rows of different length ------------------------------------------------------------


def test_reverse_is_an_involution() -> None:
    ragged = Ragged.of([normal(n, 2, seed=n) for n in (3, 0, 5)], torch.float64)
    assert torch.equal(Reverse()(Reverse()(ragged)).values, ragged.values)
    x, lengths = normal(2, 4, 2), torch.tensor([2, 4])
    assert torch.equal(Reverse()(Reverse()(x, lengths), lengths), x)


def test_padding_and_back() -> None:
    ragged = Ragged.of([normal(n, 2, seed=n) for n in (3, 0, 5)], torch.float64)
    x, mask = pad_batch(ragged)
    assert x.shape == (3, 5, 2) and mask.sum(1).tolist() == [3, 0, 5]
    back = unpad(x, ragged.lengths)
    assert torch.equal(back.values, ragged.values) and torch.equal(back.offsets, ragged.offsets)
    with pytest.raises(ShapeError, match="a length each"):
        unpad(x, torch.tensor([1, 2]))


def test_buckets_hold_every_row_once_and_little_padding() -> None:
    lengths = torch.randint(1, 100, (1000,), generator=torch.Generator().manual_seed(0))
    batches = bucketed(lengths, 32)
    assert torch.cat(batches).sort().values.tolist() == list(range(1000))
    filled = sum(int(lengths[b].max()) * len(b) for b in batches)
    plain = sum(int(lengths[b].max()) * len(b) for b in torch.arange(1000).split(32))
    assert filled < 1.1 * int(lengths.sum()) < plain
    again = bucketed(lengths, 32, generator=torch.Generator().manual_seed(1))
    assert any(not torch.equal(a, b) for a, b in zip(batches, again))
    with pytest.raises(ValueError, match="batch_size"):
        bucketed(lengths, 0)


def test_packing_fits_and_loses_nothing() -> None:
    lengths = torch.randint(1, 60, (200,), generator=torch.Generator().manual_seed(0)).tolist()
    rows = pack_rows(lengths, 64)
    assert sorted(i for row in rows for i in row) == list(range(200))
    assert max(sum(lengths[i] for i in row) for row in rows) <= 64
    assert len(rows) <= 1.1 * sum(lengths) / 64 + 1
    with pytest.raises(DataError, match="65 tokens does not fit"):
        pack_rows([65], 64)

"""Layout of data: batch first, channels second, any size; and what a block is."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.energy import ClassEnergy
from groundstate.learn import learn
from groundstate.nn import MLP, LinearBlock, Recurrent, Reverse, TransformerBlock, init_, summary


def test_volumes() -> None:
    x = torch.empty(2, 4, 128, 128, 128, device="meta")
    assert x.numel() == 16_777_216
    assert nn.Conv3d(4, 8, 3, padding=1, device="meta")(x).shape == (2, 8, 128, 128, 128)


@pytest.mark.parametrize(
    "net",
    [
        nn.Conv1d(3, 2, 3), nn.Conv2d(3, 2, 3), nn.Conv3d(3, 2, 3),
        nn.GRU(3, 2, batch_first=True), nn.TransformerEncoderLayer(3, 1, 4, batch_first=True),
    ],
)  # fmt: skip
def test_a_sample_alone_is_that_sample_in_a_batch(net: nn.Module) -> None:
    net.eval()
    g = torch.Generator().manual_seed(0)
    spatial = {nn.Conv1d: 1, nn.Conv2d: 2, nn.Conv3d: 3}.get(type(net))  # type: ignore[call-overload]
    for n, side in ((1, 5), (4, 7), (3, 11)):  # any number of rows, any size
        shape = (n, side, 3) if spatial is None else (n, 3, *[side] * spatial)
        x = torch.randn(*shape, generator=g)
        with torch.no_grad():
            whole, alone = net(x), net(x[:1])
        whole, alone = (v[0] if isinstance(v, tuple) else v for v in (whole, alone))
        assert torch.allclose(whole[:1], alone, atol=1e-6)


def test_cross_entropy_of_maps_is_that_of_pixels() -> None:
    g = torch.Generator().manual_seed(0)
    f, y = torch.randn(2, 3, 4, 5, generator=g), torch.randint(3, (2, 4, 5), generator=g)
    assert torch.allclose(
        F.cross_entropy(f, y), F.cross_entropy(f.movedim(1, -1).reshape(-1, 3), y.reshape(-1))
    )


def test_reversing_twice_is_nothing() -> None:
    x = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([5, 2, 0])
    assert torch.equal(Reverse()(Reverse()(x)), x)
    assert torch.equal(Reverse()(Reverse()(x, lengths), lengths), x)
    turned = Reverse()(x, lengths)
    assert torch.equal(turned[1, :2], x[1, :2].flip(0)) and torch.equal(turned[1, 2:], x[1, 2:])
    assert not list(Reverse().parameters())
    assert torch.equal(Reverse(-1)(x), x.flip(-1))


def test_blocks_stack() -> None:
    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    f, g = LinearBlock(3, 4, "tanh"), LinearBlock(4, 2, "sigmoid")
    assert torch.equal(nn.Sequential(f, g)(x), g(f(x)))
    assert torch.equal(f(x), torch.tanh(F.linear(x, f[0].weight, f[0].bias)))


def test_xor_needs_a_hidden_block() -> None:
    x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = torch.tensor([0, 1, 1, 0])

    def learned(net: nn.Module) -> Tensor:
        energy = ClassEnergy(net, 2, 2)
        learn(energy, {"x": x, "y": y}, lr=0.05, epochs=300, seed=0)
        return energy.scores(x).detach()

    linear = learned(MLP(2, (), 2))
    assert float(F.cross_entropy(linear, y)) == pytest.approx(0.693147, abs=1e-3)  # log 2, nothing
    hidden = learned(init_(nn.Sequential(LinearBlock(2, 8, "tanh"), nn.Linear(8, 2))))
    assert torch.equal(hidden.argmax(1), y) and float(F.cross_entropy(hidden, y)) < 0.1


def test_counts_of_layers() -> None:
    rows = {
        (nn.Conv2d(3, 64, 3), (3, 8, 8)): (1792, 0),
        (nn.Conv2d(3, 10, 5), (3, 8, 8)): (760, 0),
        (nn.Linear(784, 128), (784,)): (100_480, 0),
        (nn.BatchNorm2d(64), (64, 4, 4)): (128, 128),
        (nn.MaxPool2d(2), (3, 8, 8)): (0, 0),
        (nn.Conv2d(4, 6, 3, groups=2), (4, 8, 8)): ((2 * 9 + 1) * 6, 0),
    }
    for (layer, shape), (trainable, buffers) in rows.items():
        found = summary(layer, shape)
        assert (found.trainable, found.buffers) == (trainable, buffers)
    net = nn.Conv2d(3, 64, 3)
    before = net.weight
    summary(net, (3, 8, 8))
    assert net.weight is before and net.weight.device.type == "cpu"


def test_multiply_adds_of_layers_with_states() -> None:
    """Every weight of a recurrent layer once an item, four maps of an attention."""
    items, d, h = 5, 3, 4
    found = summary(nn.GRU(d, h, batch_first=True), (items, d))
    assert (found.multiply_adds, found.rows[0].output_shape) == (
        items * 3 * h * (d + h),
        (items, h),
    )
    assert summary(Recurrent("rnn", d, h), (items, d)).multiply_adds == items * h * (d + h)
    both = summary(Recurrent("lstm", d, h, 2, bidirectional=True), (items, d))
    assert both.multiply_adds == items * 2 * 4 * h * ((d + h) + (2 * h + h))
    assert both.rows[0].output_shape == (items, 2 * h)
    first = summary(Recurrent("gru", d, h, reset_after=False), (items, d))
    assert first.multiply_adds == items * 3 * h * (d + h)
    assert summary(nn.GRUCell(d, h), (d,)).multiply_adds == 3 * h * (d + h)
    layer = summary(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (items, 8))
    ours = summary(TransformerBlock(8, 2, 16), (items, 8))
    assert layer.multiply_adds == ours.multiply_adds == items * (4 * 8 * 8 + 2 * 8 * 16)

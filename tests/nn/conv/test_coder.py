"""Convolutional encoders and decoders: shapes of any side, artefacts of transposed convolutions."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.nn import conv_decoder, conv_encoder
from groundstate.store import load, save


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 7, 5), (9, 10), (1, 1, 1)])
@pytest.mark.parametrize(("up", "k"), [("resize", 3), ("transpose", 4), ("transpose", 2)])
def test_a_decoder_ends_in_the_shape_the_encoder_began_with(shape: Any, up: Any, k: int) -> None:
    size = torch.Size(shape).numel()
    x = torch.rand(4, size, generator=torch.Generator().manual_seed(0))
    code = conv_encoder(shape, (4, 6), 3)(x)
    back = conv_decoder(shape, (6, 4), 3, up=up, kernel_size=k)(code)
    assert code.shape == (4, 3) and back.shape == x.shape
    assert conv_decoder(shape, (6, 4), 3, up=up, outputs=2)(code).shape == (4, 2 * size)


def test_stored_and_told_apart_by_the_seed(tmp_path: Any) -> None:
    x = torch.rand(4, 64, generator=torch.Generator().manual_seed(0))
    first = conv_encoder((8, 8), (4,), 2, context=0)
    assert torch.equal(first(x), conv_encoder((8, 8), (4,), 2)(x))
    other = conv_encoder((8, 8), (4,), 2, generator=torch.Generator().manual_seed(5))
    assert not torch.equal(first(x), other(x))
    decoder = conv_decoder((8, 8), (4,), 2)
    for i, module in enumerate((first, decoder)):
        save(module, tmp_path / str(i))
        row = x if i == 0 else x[:, :2]
        assert torch.equal(load(tmp_path / str(i))(row), module(row))


def test_a_context_joins_before_the_last_layer() -> None:
    net = conv_encoder((8, 8), (4,), 2, context=3)
    x, y = torch.rand(4, 64), torch.eye(3)[[0, 1, 2, 0]]
    assert net(torch.cat([x, y], 1)).shape == (4, 2)
    with pytest.raises(ShapeError, match=r"\(B, 67\), got \(4, 64\)"):
        net(x)


@torch.no_grad()
def peak(seed: int, **options: Any) -> float:
    """Power of the rows of pictures at the frequency 1/2, over that of the frequencies below."""
    generator = torch.Generator().manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = conv_decoder((32, 32), (8,), 4, generator=generator, **options)
    net.first.weight.mul_(0.1)
    net.first.bias.fill_(1.0)  # nearly flat maps
    out: Tensor = net(torch.randn(16, 4, generator=generator)).reshape(16, 32, 32)[:, 4:-4, 4:-4]
    power = torch.fft.rfft(out - out.mean(), dim=-1).abs().square().mean((0, 1))
    return float(power[-1] / power[4:-1].mean())


@pytest.mark.parametrize("seed", range(5))
def test_uneven_overlap_draws_a_checkerboard_and_resizing_does_not(seed: int) -> None:
    assert peak(seed, up="transpose", kernel_size=3) > 10
    assert peak(seed, up="resize") < 1


def test_warnings_and_errors() -> None:
    with pytest.warns(UserWarning, match="kernel_size=3 and stride 2 overlaps unevenly"):
        net = conv_decoder((8, 8), (4,), 2, up="transpose", kernel_size=3)
    assert net(torch.zeros(1, 2)).shape == (1, 64)
    with pytest.raises(ShapeError, match=r"\(H, W\) or \(C, H, W\), got \(64,\)"):
        conv_encoder((64,))
    with pytest.raises(ValueError, match="'resize' or 'transpose'"):
        conv_decoder((8, 8), up="bilinear")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one layer"):
        conv_encoder((8, 8), ())
    with pytest.raises(ShapeError, match=r"codes \(B, 2\)"):
        net(torch.zeros(1, 3))

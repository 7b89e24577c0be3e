"""Convolution arithmetic: worked values, borders, sizes, matrices, pooling, up-sampling."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn import (
    ChannelMLP,
    MinPool2d,
    PoolHead,
    ResizeConv2d,
    Subsample,
    conv_output_size,
    conv_transpose_output_size,
    overlap_count,
)
from groundstate.nn.functional import conv_matrix, im2col, linear_to_conv, true_convolve

LINE = torch.arange(1.0, 6.0)
W = torch.tensor([1.0, 2.0, 4.0])
SQUARE = torch.arange(1.0, 17.0).view(1, 1, 4, 4)


def conv1d(x: Tensor, w: Tensor, **settings: object) -> list[float]:
    layer = nn.Conv1d(1, 1, len(w), bias=False, **settings)  # type: ignore[arg-type]
    layer.weight.data.copy_(w.view(1, 1, -1))
    return layer(x.view(1, 1, -1)).flatten().tolist()


def random(*shape: int, seed: int = 0) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def test_convolution_is_correlation() -> None:
    assert conv1d(LINE, W, padding=1) == [10, 17, 24, 31, 14]
    ramp, edge = torch.tensor([0.0, 0, 1, 2, 3, 0, 0]), torch.tensor([1.0, 0, -1])
    assert conv1d(ramp, edge, padding=1) == [0, -1, -2, -2, 2, 3, 0]
    assert conv1d(LINE, torch.ones(3), padding=2, dilation=2) == [4, 6, 9, 6, 8]
    X = torch.arange(9.0).view(1, 1, 3, 3)
    K = torch.arange(4.0).view(1, 1, 2, 2)
    assert F.conv2d(X, K).flatten().tolist() == [19, 25, 37, 43]
    both = F.conv2d(torch.cat([X, X + 1], 1), torch.cat([K, K + 1], 1))
    assert both.flatten().tolist() == [56, 72, 104, 120]


def test_stride_is_subsampling_and_dilation_is_zeros_between_taps() -> None:
    x, w = random(1, 2, 12), random(3, 2, 3, seed=1)
    assert torch.equal(F.conv1d(x, w, stride=3), F.conv1d(x, w)[..., ::3])
    spread = torch.zeros(3, 2, 5, dtype=torch.float64)
    spread[..., ::2] = w
    assert torch.allclose(F.conv1d(x, w, dilation=2), F.conv1d(x, spread), atol=1e-12)
    layer = nn.Conv2d(3, 10, 5)
    assert layer.bias is not None and layer.bias.shape == (10,)  # one for each feature map
    assert layer.weight[0].shape == (3, 5, 5)  # each filter spans all channels


def test_true_convolution_flips_the_kernel() -> None:
    assert true_convolve(LINE, W).tolist() == [4, 11, 18, 25, 26]
    for mode in ("same", "full", "valid"):
        for shape, kernel in (((9,), (3,)), ((7, 8), (3, 5)), ((5, 6, 7), (3, 1, 3))):
            x, k = random(*shape), random(*kernel, seed=1)
            truth = scipy.signal.convolve(x.numpy(), k.numpy(), mode=mode)
            if len(shape) == 3:  # a volume has channels
                found = true_convolve(x[None, None], k[None, None], mode)[0, 0]
            else:
                found = true_convolve(x, k, mode)
            assert np.allclose(found.numpy(), truth, atol=1e-6)
    x, k = random(1, 2, 9), random(3, 2, 3, seed=1)
    flipped = F.conv1d(x.flip(-1), k)
    assert torch.allclose(flipped, true_convolve(x, k, "valid").flip(-1), atol=1e-12)
    with pytest.raises(ShapeError, match=r"\(1, 2, 9\).*\(3, 1, 3\)"):
        true_convolve(x, k[:, :1])
    with pytest.raises(ValueError, match="mode is"):
        true_convolve(x, k, "most")


def test_borders() -> None:
    assert conv1d(LINE, W, padding=1, padding_mode="circular") == [15, 17, 24, 31, 18]
    assert conv1d(LINE, W, padding=1, padding_mode="reflect") == [12, 17, 24, 31, 30]
    assert conv1d(LINE, W, padding=1, padding_mode="replicate") == [11, 17, 24, 31, 34]
    assert conv1d(LINE, torch.tensor([1.0, 0, -1]), padding="valid") == [-2, -2, -2]
    assert len(conv1d(LINE, W, padding="valid")) == 5 - 3 + 1
    assert len(conv1d(LINE, W, padding="same")) == 5


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        ((5, 3), 3), ((7, 3, 2, 1), 4), ((224, 7, 2, 3), 112), ((32, 5, 1, 2), 32),
        ((28, 5, 1, 2), 28), ((224, 11, 4, 1), 54), ((54, 3, 2), 26),
    ],
)  # fmt: skip
def test_output_sizes(settings: tuple[int, ...], size: int) -> None:
    assert conv_output_size(*settings) == size


def test_sizes_agree_with_torch() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        n, k, s, d = (int(v) for v in rng.integers(1, [40, 6, 5, 4]))
        p = int(rng.integers(0, 4))
        if n + 2 * p < d * (k - 1) + 1:
            with pytest.raises(ValueError, match=f"an input of {n} with padding {p}"):
                conv_output_size(n, k, s, p, d)
            continue
        with torch.device("meta"):
            out = nn.Conv1d(1, 1, k, s, p, d)(torch.empty(1, 1, n))
            assert conv_output_size(n, k, s, p, d) == out.shape[-1]
            op = int(rng.integers(0, max(s, d)))
            back = nn.ConvTranspose1d(1, 1, k, s, p, op, dilation=d)
            size = (n - 1) * s - 2 * p + d * (k - 1) + op + 1
            if size >= 1:
                found = conv_transpose_output_size(n, k, s, p, op, d)
                assert found == back(torch.empty(1, 1, n)).shape[-1]
    with pytest.raises(ValueError, match="a side of 0"):
        conv_transpose_output_size(1, 2, 1, 1)
    with pytest.raises(ValueError, match="at least 1"):
        conv_output_size(5, 0)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Conv1d(2, 3, 3, padding=1), (2, 6)),
        (nn.Conv2d(4, 2, 3, stride=2, padding=1, dilation=2), (4, 7, 6)),
        (nn.Conv2d(2, 4, 3, groups=2, padding=1, padding_mode="circular"), (2, 4, 5)),
        (nn.Conv3d(1, 2, 2), (1, 3, 3, 3)),
    ],
)
def test_a_convolution_is_a_matrix(layer: nn.Conv1d, shape: tuple[int, ...]) -> None:
    layer = layer.double()
    matrix, b = conv_matrix(layer, shape)
    x = random(5, *shape)
    assert torch.allclose(layer(x).flatten(1), x.flatten(1) @ matrix.T + b, atol=1e-6)
    with pytest.raises(ShapeError, match="takes"):
        conv_matrix(layer, (9, *shape[1:]))


def test_rows_of_the_matrix_are_shifted_kernels() -> None:
    layer = nn.Conv1d(2, 1, 3).double()
    matrix, _ = conv_matrix(layer, (2, 8))
    assert ((matrix != 0).sum(1) == 3 * 2).all()  # K·C
    blocks = matrix.view(6, 2, 8)
    assert torch.equal(blocks[1:, :, 1:], blocks[:-1, :, :-1])  # Toeplitz


def test_windows_and_a_linear_map() -> None:
    layer = nn.Conv2d(4, 5, 3, stride=2, padding=1).double()
    x = random(2, 4, 7, 6)
    windows = im2col(x, layer)
    assert windows.shape[1] == 36
    assert layer.bias is not None
    y = layer.weight.flatten(1) @ windows + layer.bias[:, None]
    assert torch.allclose(y.view(2, 5, 4, 3), layer(x), atol=1e-12)
    with pytest.raises(Unsupported, match="ungrouped"):
        im2col(x, nn.Conv2d(4, 4, 3, groups=2))


def test_one_by_one_is_linear_per_pixel() -> None:
    conv, x = nn.Conv2d(3, 2, 1).double(), random(2, 3, 4, 5)
    assert conv.bias is not None
    per_pixel = F.linear(x.movedim(1, -1), conv.weight.view(2, 3), conv.bias).movedim(-1, 1)
    assert torch.allclose(conv(x), per_pixel, atol=1e-12)
    net = ChannelMLP(4, 2, 8, n_layers=3)  # 4 → 8 → 8 → 2
    assert sum(p.numel() for p in net.parameters()) == 130
    assert isinstance(list(net.layers)[-1], nn.Conv2d)  # no activation at the end
    one = ChannelMLP(4, 2, n_layers=1)
    assert len(one.layers) == 1 and one(torch.zeros(1, 4, 2, 2)).shape == (1, 2, 2, 2)
    assert ChannelMLP(3, n_dim=1)(torch.zeros(2, 3, 7)).shape == (2, 3, 7)
    with pytest.raises(ShapeError, match=r"\(N, 4, 2 spatial axes\).*\(1, 3, 2, 2\)"):
        net(torch.zeros(1, 3, 2, 2))


def test_pooling_flavours() -> None:
    assert nn.MaxPool2d(2)(SQUARE).flatten().tolist() == [6, 8, 14, 16]
    assert nn.AvgPool2d(2)(SQUARE).flatten().tolist() == [3.5, 5.5, 11.5, 13.5]
    assert MinPool2d(2)(SQUARE).flatten().tolist() == [1, 3, 9, 11]
    assert Subsample(2)(SQUARE).flatten().tolist() == [1, 3, 9, 11]
    pool = nn.MaxPool2d(3, 2)  # overlapping
    assert pool(torch.zeros(1, 7, 26, 26)).shape == (1, 7, 12, 12)
    assert pool(torch.zeros(1, 7, 12, 12)).shape == (1, 7, 5, 5)


def test_global_and_adaptive_pooling() -> None:
    line = LINE.view(1, 1, 5)
    assert nn.AdaptiveAvgPool1d(3)(line).flatten().tolist() == [1.5, 3, 4.5]
    assert nn.AdaptiveMaxPool1d(3)(line).flatten().tolist() == [2, 4, 5]
    with torch.device("meta"):
        flat, gap = nn.Linear(512 * 7 * 7, 1000), PoolHead(512, 1000)
    assert sum(p.numel() for p in flat.parameters()) == 25_089_000
    assert sum(p.numel() for p in gap.parameters()) == 513_000
    head = PoolHead(3, 4)
    assert head(torch.zeros(1, 3, 64, 64)).shape == head(torch.zeros(1, 3, 96, 80)).shape == (1, 4)


def test_interpolation_and_unpooling() -> None:
    small = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    wide = F.interpolate(small, scale_factor=2, mode="bilinear", align_corners=False)
    assert wide[0, 0, 0].tolist() == [1, 1.25, 1.75, 2]
    plane = torch.add(*torch.meshgrid(2 * torch.arange(6.0), 3 * torch.arange(6.0), indexing="ij"))
    doubled = F.interpolate(plane[None, None], scale_factor=2, mode="bilinear", align_corners=False)
    at = (torch.arange(12.0) + 0.5) / 2 - 0.5
    truth = 2 * at[:, None] + 3 * at
    assert torch.allclose(doubled[0, 0, 1:-1, 1:-1], truth[1:-1, 1:-1], atol=1e-5)
    x = random(2, 3, 4, 4)
    assert torch.allclose(F.avg_pool2d(F.interpolate(x, scale_factor=2), 2), x)
    y, places = F.max_pool2d(x.abs(), 2, return_indices=True)
    assert torch.equal(F.max_pool2d(F.max_unpool2d(y, places, 2), 2), y)


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_resize_then_convolve_keeps_a_constant(mode: str) -> None:
    net = ResizeConv2d(1, 1, 3, mode=mode).double()
    out = net(torch.full((1, 1, 5, 6), 2.0, dtype=torch.float64))
    assert out.shape == (1, 1, 10, 12)
    assert torch.allclose(out, out[0, 0, 4, 4].expand_as(out))
    with pytest.raises(ValueError, match="odd kernel_size"):
        ResizeConv2d(1, 1, 2)
    with pytest.raises(ValueError, match="mode is one of"):
        ResizeConv2d(1, 1, 3, mode="cubic")


def test_transposed_convolution_pastes_kernels() -> None:
    A = torch.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])
    assert F.conv_transpose2d(A, A)[0, 0].tolist() == [[0, 0, 1], [0, 4, 6], [4, 12, 9]]
    assert F.conv_transpose2d(A, A, stride=2)[0, 0, 3].tolist() == [4, 6, 6, 9]
    x, y, w = random(2, 3, 9, 9), random(2, 4, 4, 4, seed=1), random(4, 3, 3, 3, seed=2)
    ahead = (F.conv2d(x, w, stride=2) * y).sum()
    back = (x * F.conv_transpose2d(y, w, stride=2)).sum()
    assert torch.allclose(ahead, back, atol=1e-10)  # the adjoint


def test_overlaps() -> None:
    assert overlap_count(5, 3, 2).tolist() == [1, 1, 2, 1, 2, 1, 2, 1, 2, 1, 1]
    assert set(overlap_count(5, 4, 2)[2:-2].tolist()) == {2}
    for k in range(1, 8):
        for s in range(1, 5):
            counts = overlap_count(12, k, s)
            inside = counts[k : len(counts) - k]
            assert (inside.min() == inside.max()) == (k % s == 0)
            pasted = F.conv_transpose1d(torch.ones(1, 1, 12), torch.ones(1, 1, k), stride=s)
            assert torch.equal(pasted[0, 0].long(), counts)
    line = overlap_count(4, 3, 2)
    plane = F.conv_transpose2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3), stride=2)
    assert torch.equal(plane[0, 0].long(), torch.outer(line, line))


def test_a_linear_head_is_a_convolution() -> None:
    layer = nn.Linear(3 * 4 * 5, 7).double()
    conv = linear_to_conv(layer, (3, 4, 5))
    x = random(2, 3, 4, 5)
    assert torch.allclose(conv(x).flatten(1), layer(x.flatten(1)), atol=1e-12)
    assert conv(random(1, 3, 8, 9)).shape == (1, 7, 5, 5)
    with pytest.raises(ShapeError, match="60 inputs does not read maps"):
        linear_to_conv(layer, (3, 4, 4))

"""Tiles: the scores of the whole picture, wherever the tiles know enough."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from groundstate.infer.tiles import tiled
from groundstate.nn.zoo.unet import UNet


@pytest.mark.parametrize("up", ["transpose", "resize"])
@pytest.mark.parametrize(("depth", "tile"), [(1, 48), (2, 104)])
@pytest.mark.parametrize("size", [(203, 150), (160, 160), (33, 300)])
def test_tiles_that_are_large_enough_give_the_whole(
    up: str, depth: int, tile: int, size: tuple[int, int]
) -> None:
    torch.manual_seed(0)
    net = UNet(2, 3, base=4, depth=depth, up=up).eval()
    x = torch.rand(2, 2, *size)
    with torch.no_grad():
        torch.testing.assert_close(tiled(net, x, tile, align=2**depth), net(x), atol=1e-5, rtol=0)


def test_small_tiles_give_the_whole_in_their_interior() -> None:
    torch.manual_seed(0)
    net = UNet(1, 2, base=4, depth=3).eval()
    x = torch.rand(1, 1, 256, 256)
    with torch.no_grad():
        whole, found = net(x), tiled(net, x, 128, align=8)
    # the first tile alone decides about its first pixels, which see 46 pixels around them
    near = slice(0, 128 - 64 - 46)
    torch.testing.assert_close(found[..., near, near], whole[..., near, near], atol=1e-5, rtol=0)
    assert (found - whole).abs().max() < 0.1  # and nowhere is there a seam


def test_volumes_sides_and_small_pictures() -> None:
    torch.manual_seed(0)
    net = UNet(1, 2, base=2, depth=1, n_dim=3).eval()
    x = torch.rand(1, 1, 20, 40, 50)
    with torch.no_grad():
        torch.testing.assert_close(tiled(net, x, (20, 34, 36), align=2), net(x), atol=1e-5, rtol=0)
        small = x[..., :7]
        torch.testing.assert_close(tiled(net, small, 64, align=2), net(small))
    with pytest.raises(ValueError, match="one for each of 3 spatial axes"):
        tiled(net, x, (4, 4), align=2)


def test_dilated_layers_and_layers_that_see_everything() -> None:
    torch.manual_seed(0)
    wide = nn.Conv2d(1, 2, 3, padding=8, dilation=8)
    x = torch.rand(1, 1, 90, 90)
    with torch.no_grad():
        torch.testing.assert_close(tiled(wide, x, 48), wide(x), atol=1e-6, rtol=0)
        everything = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.GroupNorm(1, 2))
        assert tiled(everything, x, 48).isfinite().all()

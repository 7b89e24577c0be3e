"""Standard channels: mean 0, unit contrast, and the order of memory that the layers behind are quick in."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from groundstate.nn.blocks.channels import StandardizeChannels, standardized


@pytest.mark.parametrize("channels", [1, 3])
def test_layers_behind_it_see_the_channels_of_a_pixel_side_by_side(channels: int) -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(4, channels, 6, 6, generator=g)
    layer = StandardizeChannels(channels, together=True).set(
        torch.arange(channels) + 1.0, torch.full((channels,), 2.0)
    )
    out = layer(x)
    mean = torch.arange(channels).view(1, -1, 1, 1) + 1.0
    torch.testing.assert_close(out, (x - mean) / 2, rtol=0, atol=0)
    assert nn.Conv2d(channels, 5, 3)(out).is_contiguous(memory_format=torch.channels_last)


def test_gradients_and_many_at_once() -> None:
    layer = StandardizeChannels(2, True).set([0.5, 1.0], [0.25, 2.0]).double()
    x = torch.randn(3, 2, 4, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layer, x)
    many = torch.randn(5, 3, 2, 4, 4, dtype=torch.float64)
    torch.testing.assert_close(torch.vmap(layer)(many), torch.stack([layer(one) for one in many]))


def test_only_networks_that_pool_by_maxima_ask_for_it() -> None:
    pools = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Sequential(nn.MaxPool2d(2)))
    assert standardized(pools, [0.5], [2.0])[0].config() == {"channels": 1, "together": True}
    assert not standardized(nn.Conv2d(1, 4, 3), [0.5], [2.0])[0].together

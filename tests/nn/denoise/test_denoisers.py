"""Denoisers: shapes, a head that starts at 0, levels and labels that matter."""

import pytest
import torch
from torch import nn

from groundstate.errors import ShapeError
from groundstate.nn import DiTDenoiser, MLPDenoiser, UNetDenoiser
from groundstate.nn.conv.film import FilmBlock, PlaceAttention
from groundstate.nn.zoo.unet import UNet

SHAPE = (2, 8, 8)
MAKE = {
    "mlp": lambda **s: MLPDenoiser(128, hidden=(16, 8), **s),
    "unet": lambda **s: UNetDenoiser(SHAPE, base=8, depth=2, **s),
    "dit": lambda **s: DiTDenoiser(SHAPE, patch=4, dim=16, layers=2, heads=2, **s),
}


@pytest.fixture(params=list(MAKE))
def make(request):
    torch.manual_seed(0)
    return MAKE[request.param]


def moved(net: nn.Module) -> nn.Module:
    """After one step of descent towards the row itself."""
    noise = torch.Generator().manual_seed(0)
    x = torch.randn(16, 128, generator=noise)
    t = torch.arange(1, 17) * 50
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)
    y = torch.eye(3)[torch.arange(16) % 3] if net.embed.q else None
    for _ in range(2):  # gates and the head both start at 0
        optimiser.zero_grad()
        (net(x, t, y) - x * t[:, None] / 800).square().mean().backward()
        optimiser.step()
    return net


def test_outputs_have_the_shape_of_inputs_and_start_at_zero(make):
    net, x, t = make(q=3), torch.randn(4, 128), torch.tensor([1, 10, 500, 1000])
    out = net(x, t, torch.eye(3)[[0, 1, 2, 0]])
    assert out.shape == x.shape and out.abs().max() == 0
    assert make(outputs=2)(x, t).shape == (4, 256)


def test_levels_matter_after_a_step(make):
    net, x = moved(make()).eval(), torch.ones(2, 128)
    out = net(x, torch.tensor([10, 900]))
    assert not torch.allclose(out[0], out[1])


def test_labels_and_unknown_labels_matter(make):
    net, x, t = moved(make(q=3)).eval(), torch.ones(4, 128), torch.full((4,), 300)
    y = torch.cat([torch.eye(3), torch.zeros(1, 3)])
    with torch.no_grad():
        net.embed.unknown.fill_(1.0)
    out = net(x, t, y)
    assert len({round(float(v), 6) for v in out[:, 0].detach()}) == 4
    torch.testing.assert_close(net(x, t)[0], out[3])  # no label at all is an unknown one


def test_rows_do_not_see_each_other(make):
    net, x = moved(make()).eval(), torch.randn(5, 128)
    t = torch.tensor([1, 20, 300, 400, 999])
    whole = net(x, t)
    alone = torch.cat([net(x[i : i + 1], t[i : i + 1]) for i in range(5)])
    torch.testing.assert_close(whole, alone, rtol=1e-4, atol=1e-5)


def test_settings_make_the_same_network_again(make):
    net = make(q=3)
    again = type(net)(**net.config())
    again.load_state_dict(net.state_dict())
    assert sum(p.numel() for p in again.parameters()) == sum(p.numel() for p in net.parameters())


def test_images_and_rows_are_the_same_thing():
    net, x = moved(UNetDenoiser(SHAPE, base=8)), torch.randn(2, *SHAPE)
    t = torch.tensor([3, 4])
    torch.testing.assert_close(net(x, t).flatten(1), net(x.flatten(1), t))
    assert UNetDenoiser((7, 9), base=8)(torch.zeros(2, 7, 9), t).shape == (2, 7, 9)


def test_tokens_are_looked_at():
    torch.manual_seed(0)
    net = UNetDenoiser(SHAPE, base=8, token_dim=5)
    nn.init.normal_(net.net.head.weight)
    for module in net.modules():
        if isinstance(module, PlaceAttention):
            nn.init.normal_(module.out.weight)
    x, t = torch.randn(2, *SHAPE), torch.tensor([3, 4])
    one, two = net(x, t, tokens=torch.zeros(2, 3, 5)), net(x, t, tokens=torch.randn(2, 3, 5))
    assert not torch.allclose(one, two)


def test_blocks_start_as_the_identity():
    x = torch.randn(2, 8, 4, 4)
    torch.testing.assert_close(FilmBlock(8, 8, 2, 3)(x, torch.randn(2, 3)), x)
    torch.testing.assert_close(PlaceAttention(8)(x), x)


def test_wrong_shapes_are_named():
    with pytest.raises(ShapeError, match="use MLPDenoiser"):
        UNetDenoiser((5,))
    with pytest.raises(ShapeError, match="square"):
        DiTDenoiser((4, 8))
    with pytest.raises(ShapeError, match="are denoised"):
        UNetDenoiser(SHAPE, base=8)(torch.zeros(1, 5), torch.ones(1))
    with pytest.raises(ValueError, match="block is"):
        UNet(1, 1, block="other")


def test_one_level_for_all_rows_is_embedded_once() -> None:
    net = MLPDenoiser(3, hidden=(8, 8))
    torch.nn.init.normal_(net.head.weight)
    x, t = torch.randn(5, 3), torch.tensor(7)
    torch.testing.assert_close(net(x, t.expand(5)), net(x, torch.full((5,), 7)))

"""Jets are gradients of gradients, in one pass."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from groundstate import physics
from groundstate.errors import NotApplicable
from groundstate.nn.coordinate import CoordinateNet, derivatives
from groundstate.nn.coordinate.jets import jet

WANTED = [(0,), (1,), (0, 0), (0, 1), (1, 1)]


def points(n: int = 9, d: int = 2) -> torch.Tensor:
    return 2 * torch.rand(n, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64) - 1


@pytest.mark.parametrize("fourier", [0, 3])
@pytest.mark.parametrize("activation", ["tanh", "sine", "gelu", "sigmoid", "silu", "softplus"])
def test_jets_are_nested_gradients(activation: str, fourier: int) -> None:
    """Value, derivatives and gradient in θ, to 1e-10 of their size."""
    net = CoordinateNet(2, 2, (8, 7), activation, fourier, omega=2.0, sigma=0.3).double()
    found = [derivatives(net, points(), WANTED, how) for how in ("jet", "nested")]
    for index in [(), *WANTED]:
        torch.testing.assert_close(found[0][index], found[1][index], rtol=1e-10, atol=1e-10)
    sums = [sum((k + 1) * d[i].sin().sum() for k, i in enumerate([(), *WANTED])) for d in found]
    theta = list(net.parameters())
    grads = [torch.autograd.grad(s, theta, materialize_grads=True) for s in sums]
    for a, b in zip(*grads):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_pieces_and_dtypes_of_the_written_passes() -> None:
    """More points than one piece holds, one point, float32, a plain Sequential, a value alone."""
    net = nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 1))
    for n, dtype, tol in (
        (3001, torch.float64, 1e-12),
        (1, torch.float64, 1e-12),
        (50, torch.float32, 1e-4),
    ):
        net.to(dtype)
        x = points(n).to(dtype)
        a, b = (derivatives(net, x, WANTED, how) for how in ("jet", "nested"))
        for index in [(), *WANTED]:
            torch.testing.assert_close(a[index], b[index], rtol=tol, atol=tol)
    net.double()
    with torch.no_grad():
        torch.testing.assert_close(jet(net, points(), [])[()], net(points()))


def test_a_sine_by_hand() -> None:
    x = torch.linspace(-3, 3, 41, dtype=torch.float64)[:, None]
    (u,) = physics.fields(torch.sin, x, "x")
    torch.testing.assert_close(physics.D(u, "xx"), -torch.sin(x[:, 0]), atol=1e-10, rtol=0)
    torch.testing.assert_close(u.xxx, -torch.cos(x[:, 0]), atol=1e-10, rtol=0)


def test_operators_leave_time_out() -> None:
    x = points(6, 3)  # t, x, y

    def f(p: torch.Tensor) -> torch.Tensor:
        t, a, b = p.unbind(1)
        return torch.stack([t * a**2 * b, a * b**3], 1)

    u, v = physics.fields(f, x, "txy", ("u", "v"))
    t, a, b = x.unbind(1)
    torch.testing.assert_close(physics.grad(u), torch.stack([2 * t * a * b, t * a**2], 1))
    torch.testing.assert_close(physics.div([u, v]), 2 * t * a * b + 3 * a * b**2)
    torch.testing.assert_close(physics.laplacian(v), 6 * a * b)
    torch.testing.assert_close(physics.D(u, "ty"), a**2)
    torch.testing.assert_close(2 - u * v / 3, 2 - f(x)[:, 0] * f(x)[:, 1] / 3)
    torch.testing.assert_close(torch.exp(u), f(x)[:, 0].exp())
    with pytest.raises(
        AttributeError, match=r"u\.z: a derivative is named by the coordinates t, x, y"
    ):
        _ = u.z
    with pytest.raises(ValueError, match="one field for each coordinate"):
        physics.div([u])


def test_what_has_no_jet_is_nested() -> None:
    net = nn.Sequential(nn.Linear(1, 3), nn.LayerNorm(3), nn.Linear(3, 1)).double()
    x = points(4, 1)
    with pytest.raises(NotApplicable, match="LayerNorm"):
        derivatives(net, x, [(0,)], "jet")
    assert derivatives(net, x, [(0, 0, 0)])[0, 0, 0].shape == (4, 1)
    with pytest.raises(ValueError, match="auto, jet, nested"):
        derivatives(net, x, [], "magic")


def test_siren_starts_and_scales() -> None:
    net = CoordinateNet(2, 1, (64, 64), "sine", low=(0, 0), high=(1, 3))
    first, second = net.layers[1], net.layers[3]
    assert float(first.weight.detach().abs().max()) <= 1 / 2
    assert float(second.weight.detach().abs().max()) <= math.sqrt(6 / 64) / 30
    assert net.layers[0](torch.tensor([[0.0, 3.0]])).tolist() == [[-1.0, 1.0]]
    assert sum(p.numel() for p in CoordinateNet(2, 1, (20,) * 8).parameters()) == 3021
    with pytest.raises(ValueError, match="activation is one of"):
        CoordinateNet(2, 1, (4,), "step")

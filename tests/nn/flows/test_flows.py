"""Flows: exact inverses, exact log-determinants, densities that integrate to one."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError
from groundstate.nn.flows import (
    FLOWS,
    IAF,
    MAF,
    NSF,
    ActNorm,
    Autoregressive,
    Coupling,
    Flow,
    Glow,
    Inverse,
    MaskedMLP,
    Permutation,
    Planar,
    RealNVP,
    Scale,
    Transform,
    rational_quadratic,
)


def stirred(flow: nn.Module, seed: int = 0, scale: float = 0.1) -> nn.Module:
    """A flow whose parameters are not at their start."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in flow.parameters():
            p.add_(scale * torch.randn(p.shape, generator=g, dtype=torch.float32).to(p.dtype))
    return flow


MAKE: dict[str, Callable[[int, int], Flow]] = {
    **{name: lambda d, c, make=make: make(d, c, generator=torch.Generator().manual_seed(1))
       for name, make in FLOWS.items() if name != "cnf"},  # tested beside

    "nsf coupling": lambda d, c: NSF(d, c, coupling=True),
    "maf random": lambda d, c: MAF(d, c, masks="random"),
    "realnvp random": lambda d, c: RealNVP(d, c, masks="random"),
}  # fmt: skip


def rows(n: int, d: int, seed: int = 3) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("context", [0, 2])
@pytest.mark.parametrize("name", MAKE)
def test_inverse_and_log_determinant(name: str, context: int) -> None:
    flow = stirred(MAKE[name](4, context).double())
    assert isinstance(flow, Flow)
    x, given = rows(6, 4), rows(6, context, 5) if context else None
    z, ladj = flow(x, given)
    back, minus = flow.inverse(z, given)
    assert torch.allclose(back, x, atol=1e-10) and torch.allclose(minus, -ladj, atol=1e-9)
    for i in range(3):
        one = None if given is None else given[i : i + 1]
        J = torch.autograd.functional.jacobian(lambda v, one=one: flow(v[None], one)[0][0], x[i])
        K = torch.autograd.functional.jacobian(
            lambda v, one=one: flow.inverse(v[None], one)[0][0], z[i]
        )
        assert torch.linalg.slogdet(J)[1].item() == pytest.approx(ladj[i].item(), abs=1e-8)
        assert torch.allclose(J @ K, torch.eye(4, dtype=J.dtype), atol=1e-7)


@pytest.mark.parametrize("name", MAKE)
def test_single_precision_inverse(name: str) -> None:
    flow = stirred(MAKE[name](3, 0), scale=0.1)
    x = rows(50, 3).float()
    z, _ = flow(x)
    assert torch.allclose(flow.inverse(z)[0], x, atol=1e-5)  # type: ignore[operator]


@pytest.mark.parametrize("name", MAKE)
def test_identity_at_the_start_and_every_parameter_learns(name: str) -> None:
    flow = MAKE[name](3, 2).double()
    x, y = rows(40, 3), rows(40, 2, 7)
    z, ladj = flow(x, y)
    assert torch.allclose(z, x, atol=1e-6) and torch.allclose(
        ladj, torch.zeros_like(ladj), atol=1e-6
    )
    stirred(flow, scale=0.1)
    (-flow.log_prob(x, y).mean()).backward()
    for parameter, p in flow.named_parameters():
        assert p.grad is not None and p.grad.abs().max() > 0, parameter


@pytest.mark.parametrize("name", MAKE)
def test_two_dimensional_density_integrates_to_one(name: str) -> None:
    flow = stirred(MAKE[name](2, 0).double(), scale=0.03)
    side = torch.linspace(-10, 10, 401, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side)
    with torch.no_grad():
        total = sum(flow.log_prob(part).exp().sum() for part in grid.split(65536))  # type: ignore[operator]
    assert float(total) * float(side[1] - side[0]) ** 2 == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("name", MAKE)
def test_draws_have_the_density(name: str) -> None:
    """exp(log q − log p) of draws of p has mean one, and entropy is the mean of −log p."""
    flow = stirred(MAKE[name](2, 0).double(), scale=0.15)
    with torch.no_grad():
        x = flow.sample(4000, generator=torch.Generator().manual_seed(0))  # type: ignore[operator]
        z, _ = flow(x)
    assert abs(z.mean()) < 4 / math.sqrt(8000) and z.var().item() == pytest.approx(1, abs=0.07)
    same = flow.sample(4000, generator=torch.Generator().manual_seed(0))  # type: ignore[operator]
    assert torch.allclose(same, x)


def test_temperature_scales_the_base() -> None:
    flow = Flow([Scale(torch.tensor([2.0, 1.0]))])
    a = flow.sample(10, T=0.25, generator=torch.Generator().manual_seed(0))
    b = flow.sample(10, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(a, 0.5 * b)


@pytest.mark.parametrize("order", [None, (2, 0, 3, 1)])
@pytest.mark.parametrize("context", [0, 2])
def test_masked_network_sees_the_past_alone(order: tuple[int, ...] | None, context: int) -> None:
    net = MaskedMLP(4, (1, 3, 2, 1), (7, 9), "tanh", context, order, zero=False).double()
    x, y = rows(1, 4)[0], rows(1, context)[0] if context else None
    J = torch.autograd.functional.jacobian(lambda v: net(v, y), x)  # (7, 4)
    place = {feature: i for i, feature in enumerate(net.order)}
    for feature, part in enumerate(net.rows):
        for other in range(4):
            seen = J[part, other].abs().max() > 0
            assert bool(seen) == (place[other] < place[feature])
    if y is not None:
        J = torch.autograd.functional.jacobian(lambda v: net(x, v), y)
        assert all(bool((J[part] != 0).any()) for part in net.rows)


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("hidden", [(), (3,), (7, 9)])
@pytest.mark.parametrize("context", [0, 2])
def test_steps_of_a_masked_network_are_its_pass(
    hidden: tuple[int, ...], context: int, grad: bool
) -> None:
    net = MaskedMLP(5, 2, hidden, "tanh", context, (3, 1, 0, 4, 2), zero=False).double()
    x, y = rows(3, 5), rows(3, context) if context else None
    with torch.set_grad_enabled(grad):
        whole, steps, value = net(x, y).unflatten(1, (5, 2)), net.stepper(3, y), None
        for i in net.order:
            assert torch.allclose(steps.next(value), whole[:, i], atol=1e-12)
            value = x[:, i]


def test_one_feature() -> None:
    flow = stirred(NSF(1).double())
    assert isinstance(flow, Flow)
    x = rows(5, 1)
    assert torch.allclose(flow.inverse(flow(x)[0])[0], x, atol=1e-10)
    with pytest.raises(ShapeError, match="at least 2 features"):
        RealNVP(1)


def test_maf_has_a_triangular_jacobian() -> None:
    f = stirred(Autoregressive(4, "affine").double())
    J = torch.autograd.functional.jacobian(lambda v: f(v[None])[0][0], rows(1, 4)[0])
    assert bool((J.triu(1) == 0).all()) and bool((J.diagonal() > 0).all())


def test_linear_maf_of_a_gaussian_is_its_cholesky_factor() -> None:
    S = torch.tensor([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]], dtype=torch.float64)
    m = torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64)
    L = torch.linalg.cholesky(S)
    f = Autoregressive(3, "affine", hidden_layer_sizes=()).double()
    flow = Flow([f])
    X = rows(1000, 3)
    X = torch.cat((X, -X))  # no third moments: scales that change with x cannot help
    X = (X - X.mean(0)) @ torch.linalg.inv(
        torch.linalg.cholesky((X - X.mean(0)).T @ (X - X.mean(0)) / len(X))
    ).T
    X = X @ L.T + m  # moments are exactly m and S
    best = torch.optim.LBFGS(flow.parameters(), max_iter=300, tolerance_grad=1e-12, tolerance_change=0,
                             line_search_fn="strong_wolfe")  # fmt: skip

    def loss() -> Tensor:
        best.zero_grad()
        value = -flow.log_prob(X).mean()
        value.backward()
        return value

    best.step(loss)  # type: ignore[no-untyped-call]
    J = torch.autograd.functional.jacobian(lambda v: f(v[None])[0][0], m)
    assert torch.allclose(J, torch.linalg.inv(L), atol=1e-5)
    assert torch.allclose(flow(m[None])[0], torch.zeros(1, 3, dtype=m.dtype), atol=1e-5)


def test_iaf_is_maf_the_other_way() -> None:
    maf, iaf = stirred(MAF(3).double()), stirred(IAF(3).double())
    x = rows(5, 3)
    z = x
    for f in maf.transform.transforms:  # type: ignore[union-attr]
        z = f.inverse(z)[0]
    assert torch.allclose(iaf(x)[0], z, atol=1e-10)


# --- numbers -----------------------------------------------------------------------------


def test_planar_numbers() -> None:
    f = Planar.of(w=[1.0, -1.0], u=[0.5, 0.25], b=0.2).double()
    with torch.no_grad():
        f.parameter.copy_(torch.tensor([1.0, -1.0, 0.5, 0.25, 0.2], dtype=torch.float64))
    z = torch.tensor([[0.3, -0.7]], dtype=torch.float64)
    assert f.parts()[1][0].tolist() == pytest.approx([0.287970, 0.462030], abs=1e-6)
    x, ladj = f(z)
    assert x[0].tolist() == pytest.approx([0.540067, -0.314826], abs=1e-6)
    assert ladj.item() == pytest.approx(-0.054553, abs=1e-6)
    assert torch.allclose(f.inverse(x)[0], z, atol=1e-12)


def test_planar_inverse_has_the_right_gradient() -> None:
    f = stirred(Planar(3).double(), scale=1.0)
    x = rows(4, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda v, *_: f.inverse(v), (x, f.parameter))  # type: ignore[operator]


def test_coupling_numbers() -> None:
    class Constant(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.new_tensor([3 * math.atanh(0.5 / 3), -1.0]).expand(len(x), 2)

    f = Coupling(2, net=Constant())
    z, ladj = f(torch.tensor([[1.0, 2.0]], dtype=torch.float64))
    assert z[0].tolist() == pytest.approx([1, 2.297443], abs=1e-6)
    assert ladj.item() == pytest.approx(0.5)


def test_spline_numbers() -> None:
    knots = ([-1.0, -0.2, 1.0], [-1.0, 0.0, 1.0], [1.0, 0.5, 1.0])
    y, slope = rational_quadratic([-0.6, 0.4], *knots)
    assert y.tolist() == pytest.approx([-0.4375, 0.421053], abs=1e-6)
    assert slope.tolist() == pytest.approx([0.446287, -0.131028], abs=1e-6)
    x, minus = rational_quadratic(y, *knots, inverse=True)
    assert x.tolist() == pytest.approx([-0.6, 0.4]) and minus.tolist() == pytest.approx(
        (-slope).tolist()
    )


def test_splines_are_continuous_and_end_as_the_identity() -> None:
    f = stirred(Autoregressive(1, "spline").double(), scale=1.0)
    x = torch.linspace(-6, 6, 20001, dtype=torch.float64)[:, None].requires_grad_()
    z, ladj = f(x)
    (slope,) = torch.autograd.grad(z.sum(), x)
    assert torch.allclose(slope.log()[:, 0], ladj, atol=1e-9) and (z.diff(dim=0) > 0).all()
    assert (ladj.diff().abs() < 0.2).all()
    outside = x.abs()[:, 0] > 5
    assert torch.equal(z[outside], x[outside])


# --- images ------------------------------------------------------------------------------


def test_glow_of_images() -> None:
    flow = stirred(Glow((2, 4, 4), 1, n_transforms=2, hidden_layer_sizes=(6,)).double(), scale=0.1)
    assert isinstance(flow, Flow)
    x, y = rows(3, 32), rows(3, 1)
    z, ladj = flow(x, y)
    assert torch.allclose(flow.inverse(z, y)[0], x, atol=1e-9)
    J = torch.autograd.functional.jacobian(lambda v: flow(v[None], y[:1])[0][0], x[0])
    assert torch.linalg.slogdet(J)[1].item() == pytest.approx(ladj[0].item(), abs=1e-8)
    with pytest.raises(ShapeError, match="even sides"):
        Glow((1, 7, 7))


def test_actnorm_starts_from_data() -> None:
    x = 3 + 2 * rows(500, 8)
    x[:, 3] = 4.0  # a coordinate that does not move
    f = ActNorm(8).double()
    f.initialise(x)
    z, _ = f(x)
    moving = [0, 1, 2, 4, 5, 6, 7]
    assert torch.allclose(z.mean(0), torch.zeros(8, dtype=z.dtype), atol=1e-9)
    assert torch.allclose(z[:, moving].std(0, correction=0), torch.ones(7, dtype=z.dtype))
    flow = Glow((2, 4, 4), n_transforms=2).double()
    images = 5 + 3 * rows(200, 32)
    flow.initialise(images)
    z, _ = flow(images)
    assert abs(z.mean()) < 1e-6 and z.var().item() == pytest.approx(1, abs=0.02)


# --- errors ------------------------------------------------------------------------------


def test_errors_say_what_is_wrong() -> None:
    flow = MAF(3)
    with pytest.raises(ShapeError, match=r"rows \(B, 3\), got \(2, 4\)"):
        flow.log_prob(torch.zeros(2, 4))
    with pytest.raises(ShapeError, match="context of 0 numbers, got 2"):
        flow.log_prob(torch.zeros(2, 3), torch.zeros(2, 2))
    with pytest.raises(ShapeError, match="same number of features"):
        Flow([Scale(2), Scale(3)])
    with pytest.raises(ValueError, match="at least one transform"):
        Flow([])
    with pytest.raises(ValueError, match="permutation"):
        Permutation([0, 0])
    with pytest.raises(ValueError, match="'alternating' or 'random'"):
        MAF(2, masks="odd")
    with pytest.raises(ShapeError, match="some do and some do not"):
        Coupling(2, mask=[True, True])


def test_a_flow_is_a_base_of_a_flow() -> None:
    inner = Flow([Scale(torch.tensor([2.0]))])
    both = Flow([Scale(torch.tensor([3.0]))], inner)
    one = Flow([Scale(torch.tensor([3.0])), Scale(torch.tensor([2.0]))])
    x = torch.tensor([[0.7]])
    assert torch.allclose(both.log_prob(x), one.log_prob(x))
    assert both.sample(3).shape == (3, 1)


def test_contract_of_a_transform() -> None:
    assert isinstance(Inverse(Scale(2)), Transform)
    turned = Permutation([1, 2, 0])
    x = torch.arange(3.0)[None]
    assert torch.equal(turned.inverse(turned(x)[0])[0], x)

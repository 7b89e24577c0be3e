from __future__ import annotations

import itertools
import math

import pytest
import torch
from tests.infer.helpers_infer import (
    F64,
    Chain3,
    NormalNormal,
    Quadratic,
    Spins,
    TwoModes,
    bilinear,
    close,
    gaussian2,
    linear_gaussian,
    seed,
)
from torch import Tensor
from torch.distributions import MultivariateNormal, Normal

from groundstate.energy import (
    Binary,
    DecoderEnergy,
    Energy,
    Finite,
    Real,
    TableEnergy,
    offers,
)
from groundstate.errors import Unreliable, Unsupported
from groundstate.infer import (
    Annealed,
    Categorical,
    Chain,
    ClosedForm,
    Eliminate,
    Enumerate,
    Gaussian,
    Importance,
    Langevin,
    MeanField,
    Quadrature,
    Variational,
    fit_proposal,
    log_likelihood,
    log_partition,
    marginalise,
    posterior,
)
from groundstate.math.distributions.operations import draw

X2 = {"x": torch.tensor([[2.0]], dtype=F64)}


# --- closed form, elimination, enumeration -------------------------------------------------


def test_free_energy_of_the_linear_gaussian_and_its_gradient():
    e = linear_gaussian()
    x = torch.tensor([[2.0, 1.0]], dtype=F64)
    found = marginalise(e, "z", {"x": x}, method=ClosedForm())
    close(found.value, [0.154223])
    assert found.kind == "exact"
    (g,) = torch.autograd.grad(found.value.sum(), e.W)
    distribution = posterior(e, "z", {"x": x})
    z = draw(distribution, 200_000, seed())[:, 0]
    xs = x.expand(len(z), 2)
    (mean,) = torch.autograd.grad(e(x=xs, z=z).mean(), e.W)  # E_q of the gradient of e
    torch.testing.assert_close(g, mean, atol=0.02, rtol=0)


def test_conditional_identity_holds_at_any_value_and_agrees_with_log_partition():
    e = linear_gaussian()
    x = torch.tensor([[2.0, 1.0], [0.0, -1.0]], dtype=F64)
    exact = marginalise(e, "z", {"x": x}, T=0.7, method=ClosedForm()).value
    distribution = posterior(e, "z", {"x": x}, T=0.7)
    for value in (-3.0, 0.0, 5.0):
        z = torch.full((2, 1), value, dtype=F64)
        torch.testing.assert_close(
            e(x=x, z=z) + 0.7 * distribution.log_prob(z), exact, atol=1e-10, rtol=0
        )


def test_free_energies_of_the_bilinear_energy():
    e = bilinear()
    x = Binary(2).enumerate(dtype=F64)
    expected = [-1.367370, -2.755001, -1.861426, -2.890466]
    for method in (None, ClosedForm(), Enumerate()):
        close(marginalise(e, "z", {"x": x}, method=method).value, expected)
    for method in (None, Enumerate(), Eliminate(("z", "x")), Eliminate(("x", "z"))):
        close(log_partition(e, ("x", "z"), method=method), [3.786021])


def test_elimination_enumerates_the_smaller_layer():
    from groundstate.energy import BilinearEnergy

    e = BilinearEnergy(40, 6, generator=seed(1)).double()
    cost, order = Eliminate().plan(e, ("x", "z"))
    assert order == ("x", "z") and cost <= 64
    small = BilinearEnergy(9, 4, generator=seed(1), scale=1.0).double()
    by_layers = log_partition(small, ("x", "z"), method=Eliminate())
    torch.testing.assert_close(
        by_layers, log_partition(small, ("x", "z"), method=Enumerate()), atol=1e-10, rtol=0
    )


@pytest.mark.parametrize("n", [1, 4, 10])
def test_sum_of_products_is_product_of_sums(n):
    class Factors(Energy):
        def __init__(self) -> None:
            super().__init__(z=Binary(n))
            self.register_buffer("t", torch.randn(n, 2, generator=seed(n), dtype=F64))

        def forward(self, z: Tensor) -> Tensor:
            return (self.t[:, 0] * (1 - z) + self.t[:, 1] * z).sum(1)

    e = Factors()
    product = torch.logsumexp(-e.t, 1).sum()
    close(log_partition(e, "z", method=Enumerate()), [product.item()], 1e-10)


def test_eliminating_separate_variables_costs_a_sum():
    class Chainlike(Energy):
        """u - v - w, each finite: u and w are conditionally independent given v."""

        def __init__(self) -> None:
            super().__init__(u=Finite(3), v=Finite(4), w=Finite(5))
            self.register_buffer("a", torch.randn(3, 4, generator=seed(1), dtype=F64))
            self.register_buffer("b", torch.randn(4, 5, generator=seed(2), dtype=F64))

        def forward(self, u: Tensor, v: Tensor, w: Tensor) -> Tensor:
            return self.a[u, v] + self.b[v, w]

    e = Chainlike()
    exact = -torch.logsumexp(-(e.a[:, :, None] + e.b[None]).flatten(), 0)
    for order in itertools.permutations("uvw"):
        close(marginalise(e, ("u", "v", "w"), method=Eliminate(order)).value, [exact.item()])
    with pytest.raises(Unsupported, match="does not name the free variables"):
        marginalise(e, ("u", "v", "w"), method=Eliminate(("u", "v")))


def test_enumerated_free_energy_is_differentiable_in_any_chunking():
    class Net(Energy):
        def __init__(self) -> None:
            super().__init__(x=Real(3), z=Binary(7))
            self.W = torch.nn.Parameter(torch.randn(3, 7, generator=seed(), dtype=F64))

        def forward(self, x: Tensor, z: Tensor) -> Tensor:
            return torch.tanh((x @ self.W) * z).sum(1) + z.cumsum(1).prod(1) * 0.01

    e = Net()
    x = torch.randn(5, 3, generator=seed(1), dtype=F64)
    grads = []
    for chunk in (2**24, 1000, 100):
        F = marginalise(e, "z", {"x": x}, method=Enumerate(chunk=chunk)).value
        grads.append((F.detach(), torch.autograd.grad(F.sum(), e.W)[0]))
    for F, g in grads[1:]:
        torch.testing.assert_close(F, grads[0][0])
        torch.testing.assert_close(g, grads[0][1])


def test_chain_free_energy_and_marginals():
    e = Chain3()
    close(marginalise(e, "y", method=Chain()).value, [-0.449719])
    close(posterior(e, "y").marginals[0, :, 1], [0.335598, 0.574443, 0.695875])
    close(marginalise(e, "y", method=Enumerate()).value, [-0.449719])


def test_partition_function_of_a_gaussian():
    close(log_partition(Quadratic(), "x", method=Quadrature()), [2.387183])
    close(log_partition(gaussian2(), "x"), [0.0])
    with pytest.raises(Unsupported, match="named with method=: Quadrature, Variational, Import"):
        log_partition(Quadratic(), "x")


# --- temperature limits --------------------------------------------------------------------


def test_temperatures_of_a_table():
    e = TableEnergy(torch.tensor([1.0, 2.0, 4.0], dtype=F64))
    expected = {
        1.0: [0.705385, 0.259496, 0.035119],
        0.2: [0.993307, 0.006693, 3.0e-7],
        math.inf: [1 / 3] * 3,
        0.0: [1.0, 0.0, 0.0],
    }
    for T, p in expected.items():
        close(posterior(e, "x", T=T).probs, [p])
    entropies = [posterior(e, "x", T=T).entropy().item() for T in (0.05, 0.2, 1.0, 5.0, 1e3)]
    assert entropies == sorted(entropies)


def test_free_energy_at_every_temperature():
    e = TableEnergy(torch.tensor([1.0, 2.0, 3.0], dtype=F64))
    for T, F in {10: -9.019428, 1: 0.592394, 0.1: 0.999995, 0.01: 1.0, 0: 1.0}.items():
        close(marginalise(e, "x", T=T).value, [F])
    close(marginalise(e, "x", T=math.inf).value, [2.0])
    close(marginalise(Chain3(), "y", T=math.inf).value, [0.5 + 0.35 + 0.5 + 0.25 * 2.0])
    with pytest.raises(ValueError, match="T=inf is the uniform distribution"):
        marginalise(Quadratic(), "x", T=math.inf)


def test_zero_temperature_has_the_envelope_gradient():
    e = bilinear()
    x = torch.tensor([[1.0, 1.0]], dtype=F64)
    F = marginalise(e, "z", {"x": x}, T=0).value
    F.sum().backward()
    table = e.table("z", x=x).detach()
    z = Binary(2).enumerate(dtype=F64)[table.argmin(1)]
    close(F, [table.min().item()])
    torch.testing.assert_close(e.W.grad, -x.T @ z)


# --- quadrature ----------------------------------------------------------------------------


def test_quadrature_of_the_linear_gaussian_to_ten_digits():
    e = linear_gaussian()
    x = torch.randn(6, 2, generator=seed(), dtype=F64)
    exact = marginalise(e, "z", {"x": x}).value
    found = marginalise(e, "z", {"x": x}, method=Quadrature())
    assert (found.value - exact).abs().max().item() < 1e-10
    assert found.kind == "estimate" and found.stderr.max().item() < 1e-9
    both = marginalise(e, "z", {"x": x}, T=2.5, method=Quadrature(32)).value
    torch.testing.assert_close(both, marginalise(e, "z", {"x": x}, T=2.5).value, atol=1e-9, rtol=0)
    ours = torch.autograd.grad(found.value.sum(), e.W)[0]
    torch.testing.assert_close(ours, torch.autograd.grad(exact.sum(), e.W)[0])


def test_quadrature_on_lines_half_lines_and_boxes():
    class Box(Energy):
        def __init__(self, **box: float) -> None:
            super().__init__(x=Real(1, **box))
            self.register_buffer("one", torch.ones((), dtype=F64))

        def forward(self, x: Tensor) -> Tensor:
            return x.sum(1) + x.square().sum(1)

    from scipy.integrate import quad

    for box in ({}, {"low": 0.0}, {"high": 1.0}, {"low": -8.0, "high": 8.0}):
        low, high = box.get("low", -math.inf), box.get("high", math.inf)
        Z, _ = quad(lambda v: math.exp(-v - v * v), low, high)
        found = marginalise(Box(**box), "x", method=Quadrature())
        error = abs(found.value.item() + math.log(Z))
        assert error <= found.stderr.item() + 1e-9
        assert error < 1e-5
    with pytest.raises(Unsupported, match="have 4 dimensions together, more than 3"):
        marginalise(gaussian4(), "x", method=Quadrature())


def gaussian4() -> Energy:
    class Four(Energy):
        def __init__(self) -> None:
            super().__init__(x=Real(4))
            self.register_buffer("one", torch.ones((), dtype=F64))

        def forward(self, x: Tensor) -> Tensor:
            return x.square().sum(1)

    return Four()


def test_quadrature_is_the_ground_truth_for_bounds_on_a_decoder():
    e = DecoderEnergy(2, 1, generator=seed(2)).double()
    x = torch.randn(4, 2, generator=seed(), dtype=F64)
    truth = marginalise(e, "z", {"x": x}, method=Quadrature()).value.detach()
    bound = marginalise(e, "z", {"x": x}, method=Variational(), generator=seed())
    assert bound.kind == "upper"
    assert bool((bound.value.detach() >= truth - 4 * bound.stderr).all())
    weighted = marginalise(e, "z", {"x": x}, method=Importance(n=4000), generator=seed())
    assert bool(((weighted.value - truth).abs() <= 4 * weighted.stderr + 1e-6).all())


# --- importance ----------------------------------------------------------------------------

P = math.exp(-2.265512)  # p(x=2) of the normal-normal model


def weights(q: Normal, n: int) -> Tensor:
    from groundstate.infer.base import ask

    query = ask(NormalNormal(), "z", X2, generator=seed(3))
    return Importance(q).weigh(query, n)[2][:, 0].detach().exp()


def normal(mean: float, variance: float) -> Normal:
    one = torch.ones(1, dtype=F64)
    return Normal(mean * one, variance**0.5 * one)


def test_variances_of_importance_weights():
    naive = weights(normal(0, 1), 400_000)
    assert naive.mean().item() == pytest.approx(0.103777, abs=4e-4)
    assert naive.var().item() == pytest.approx(0.0134518, rel=0.02)
    better = weights(normal(1, 1), 400_000)
    assert better.var().item() == pytest.approx(0.00166607, rel=0.02)
    fraction = better.sum() ** 2 / better.square().sum() / len(better)
    assert fraction.item() == pytest.approx(0.866025, abs=0.002)


def test_the_posterior_is_the_best_proposal():
    w = weights(normal(1, 0.5), 1000)
    assert w.std().item() < 1e-12
    assert w.mean().item() == pytest.approx(P, abs=1e-6)
    e = linear_gaussian()
    x = torch.tensor([[2.0, 1.0]], dtype=F64)
    found = marginalise(
        e, "z", {"x": x}, method=Importance(posterior(e, "z", {"x": x})), generator=seed()
    )
    close(found.value, [0.154223])
    assert found.stderr.item() < 1e-12 and found.info["ess"].item() == pytest.approx(1000)


def test_a_narrow_proposal_warns_with_its_tail_index():
    method = Importance(normal(1, 0.05), n=20_000)
    with pytest.warns(Unreliable, match=r"heavy tail in 1 of 1 rows \(Pareto k up to"):
        found = marginalise(NormalNormal(), "z", X2, method=method, generator=seed(0))
    assert found.info["pareto_k"].item() > 0.7


def test_pareto_smoothing_keeps_a_good_estimate():
    plain = Importance(normal(1, 1), n=5000)
    smooth = Importance(normal(1, 1), n=5000, smooth="psis")
    a = marginalise(NormalNormal(), "z", X2, method=plain, generator=seed(1))
    b = marginalise(NormalNormal(), "z", X2, method=smooth, generator=seed(1))
    assert abs(a.value.item() - b.value.item()) < 4 * a.stderr.item()
    close(b.value, [2.265512], 4 * a.stderr.item())


@pytest.mark.parametrize("how", ["laplace", "moments", "reverse_kl"])
def test_fitted_proposals_are_near_the_posterior(how):
    q = fit_proposal(NormalNormal(), "z", X2, how=how, generator=seed())
    assert q.mean.item() == pytest.approx(1.0, abs=0.05)
    assert q.variance.item() == pytest.approx(0.5, abs=0.06)
    found = marginalise(NormalNormal(), "z", X2, method=Importance(q), generator=seed(1))
    close(found.value, [2.265512], 0.02)


def test_proposals_of_the_wrong_shape_or_for_other_variables_are_refused():
    from groundstate.errors import ShapeError

    with pytest.raises(ShapeError, match=r"shape \(3,\); expected \(1,\) for all rows together"):
        marginalise(
            NormalNormal(), "z", X2, method=Importance(Normal(torch.zeros(3), torch.ones(3)))
        )
    with pytest.raises(Unsupported, match="no distribution for 'z'"):
        marginalise(NormalNormal(), ("x", "z"), method=Importance({"x": normal(0, 1)}))
    with pytest.raises(Unsupported, match="need proposal="):
        marginalise(Spins(3), "x", method=Importance())


@pytest.mark.parametrize(("n", "value"), [(1, -2.4189), (5, -2.284), (50, -2.2666), (500, -2.2656)])
def test_importance_weighted_log_likelihood_rises_to_the_truth(n, value):
    rows = 200_000 // n
    x = torch.full((rows, 1), 2.0, dtype=F64)
    found = log_likelihood(NormalNormal(), x, normal(1, 1), n, generator=seed(n))
    stderr = found.std().item() / math.sqrt(rows)
    assert found.mean().item() == pytest.approx(value, abs=4 * stderr + 2e-4)


def test_log_likelihood_needs_a_normaliser():
    x = torch.zeros(2, 2, dtype=F64)
    q = normal(0, 1)
    expected = -marginalise(linear_gaussian(), "z", {"x": x}).value
    expected = expected - log_partition(linear_gaussian(), ("x", "z"))
    found = log_likelihood(linear_gaussian(), x, q, 100_000, generator=seed())
    torch.testing.assert_close(found, expected, atol=0.02, rtol=0)
    with pytest.raises(Unsupported, match="not normalised"):
        unnormalised = NormalNormal()
        unnormalised.normalised = frozenset()
        log_likelihood(unnormalised, X2, q)


# --- annealed ------------------------------------------------------------------------------

WIDE = MultivariateNormal(torch.zeros(2, dtype=F64), 16 * torch.eye(2, dtype=F64))


def test_annealing_finds_both_modes_and_beats_plain_importance():
    method = Annealed(WIDE, n=2000, n_temps=100, moves=2)
    found = marginalise(TwoModes(), "x", method=method, generator=seed())
    assert -found.value.item() == pytest.approx(math.log(4 * math.pi), abs=0.05)
    assert found.kind == "estimate" and found.stderr.item() < 0.05
    plain = marginalise(TwoModes(), "x", method=Importance(WIDE, n=2000), generator=seed())
    assert found.info["ess"].item() > 3 * plain.info["ess"].item()


def test_annealing_with_langevin_moves_and_on_discrete_spaces():
    method = Annealed(WIDE, n=500, n_temps=50, kernel=Langevin(step_size=0.3))
    found = marginalise(TwoModes(), "x", method=method, generator=seed())
    assert abs(-found.value.item() - math.log(4 * math.pi)) < 4 * found.stderr.item() + 0.02
    e = Spins(6)
    exact = marginalise(e, "x").value
    found = marginalise(e, "x", method=Annealed(n=500, n_temps=40), generator=seed())
    assert (found.value - exact).abs().item() < 4 * found.stderr.item()
    with pytest.raises(Unsupported, match="Enumerate has no Markov kernel"):
        marginalise(e, "x", method=Annealed(kernel=Enumerate()))


# --- variational ---------------------------------------------------------------------------


def test_mean_field_gap_of_a_two_by_two_joint():
    joint = torch.tensor([[0.4, 0.1], [0.2, 0.3]], dtype=F64)
    found = marginalise(TableEnergy(-joint.log()), ("x", "y"), method=Variational())
    close(found.value, [0.091986])
    assert found.kind == "upper"


def test_the_family_of_all_distributions_is_exact():
    e = bilinear()
    x = Binary(2).enumerate(dtype=F64)
    exact = marginalise(e, "z", {"x": x}).value
    full = marginalise(e, "z", {"x": x}, method=Variational(Categorical(), tol=1e-9))
    torch.testing.assert_close(full.value, exact, atol=1e-9, rtol=0)
    mean_field = marginalise(e, "z", {"x": x}, method=Variational(MeanField(), tol=1e-9))
    torch.testing.assert_close(mean_field.value, exact, atol=1e-9, rtol=0)  # factorised posterior


def test_gaussian_families_on_a_gaussian():
    e = Quadratic()
    exact = -log_partition(e, "x", method=Quadrature()).item()
    full = marginalise(e, "x", method=Variational(Gaussian("full")), generator=seed())
    assert full.value.item() == pytest.approx(exact, abs=4 * full.stderr.item() + 1e-9)
    diag = marginalise(e, "x", method=Variational(Gaussian("diag")), generator=seed())
    # KL of the best factorised Gaussian: minus half the log determinant of the correlation
    gap = -0.5 * math.log(1 - 0.25)
    assert diag.value.item() - exact == pytest.approx(gap, abs=4 * diag.stderr.item())
    distribution = posterior(e, "x", method=Variational(Gaussian("iso")))
    assert float(distribution.variance.max() - distribution.variance.min()) < 1e-9


def test_variational_bounds_boxes_mixed_and_long_spaces():
    class Mixed(Energy):
        def __init__(self) -> None:
            super().__init__(x=Real(1, low=0.0), z=Finite(2))
            self.register_buffer("one", torch.ones((), dtype=F64))

        def forward(self, x: Tensor, z: Tensor) -> Tensor:
            return (x[:, 0] - 1 - 2 * z).square()

    bound = marginalise(Mixed(), ("x", "z"), method=Variational(), generator=seed())
    truth = torch.linspace(0, 10, 20001, dtype=F64)
    Z = sum(torch.trapezoid((-((truth - 1 - 2 * k) ** 2)).exp(), truth) for k in (0, 1))
    assert bound.value.item() >= -math.log(float(Z)) - 4 * bound.stderr.item()
    assert bound.value.item() <= -math.log(float(Z)) + 1.0
    e = Spins(16, 3)
    e.J /= 8
    long = marginalise(e, "x", method=Variational(max_iter=200), generator=seed())
    exact = marginalise(e, "x").value
    assert exact.item() - 4 * long.stderr.item() <= long.value.item() <= exact.item() + 1.0


def test_bound_gradient_is_the_expected_gradient():
    e = linear_gaussian()
    x = torch.randn(3, 2, generator=seed(), dtype=F64)
    F = marginalise(e, "z", {"x": x}, method=Variational(n=512), generator=seed()).value
    G = marginalise(e, "z", {"x": x}).value
    ours, exact = (torch.autograd.grad(v.sum(), e.W)[0] for v in (F, G))
    torch.testing.assert_close(ours, exact, atol=0.2, rtol=0)


def test_declared_distributions_of_partial_temperature_fall_back_to_a_method_that_runs():
    class OnlyOne(Energy):
        def __init__(self) -> None:
            super().__init__(y=Finite(2))
            self.register_buffer("t", torch.tensor([0.0, 1.0], dtype=F64))

        def forward(self, y: Tensor) -> Tensor:
            return self.t[y]

        @offers.log_partition("y")
        def log_z(self, T: float = 1.0) -> Tensor:
            if T != 1:
                raise Unsupported("known at T=1 only")
            return torch.logsumexp(-self.t, 0, keepdim=True)

    cold = marginalise(OnlyOne(), "y", T=0.5).value
    close(cold, [-0.5 * math.log(1 + math.exp(-2))])

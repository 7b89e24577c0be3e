from __future__ import annotations

import math

import pytest
import torch
from tests.infer.helpers_infer import (
    F64,
    Chain3,
    Quadratic,
    Spins,
    close,
    gaussian2,
    linear_gaussian,
    seed,
)
from torch.distributions import Cauchy, Normal

from groundstate.energy import (
    BilinearEnergy,
    CentroidEnergy,
    DensityEnergy,
    LinearEnergy,
    TableEnergy,
)
from groundstate.errors import ShapeError, Unreliable, Unsupported
from groundstate.infer import (
    ClosedForm,
    Coordinate,
    Enumerate,
    Gradient,
    Proximity,
    adapt,
    energy_moments,
    expect,
    expect_sum,
    impute,
    log_partition,
    marginalise,
    minimise,
    posterior,
    sample,
)
from groundstate.math.distributions.operations import draw


def table(*e: float) -> TableEnergy:
    return TableEnergy(torch.tensor(e, dtype=F64))


# --- moments of the energy -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "energies", "mean", "variance"),
    [((0.75, 0.25), (1, 3), 1.5, 0.75), ((0.5, 0.3, 0.2), (1, 2, 4), 1.9, 1.29)],
)
def test_moments_under_a_prior(weights, energies, mean, variance):
    w = torch.tensor(weights, dtype=F64)
    for given in (w, torch.distributions.Categorical(probs=w)):
        m = energy_moments(table(*energies), "x", weights=given)
        close(m.mean, [mean], 1e-12)
        close(m.variance, [variance], 1e-12)
        assert m.free_energy is None


def test_boltzmann_moments_and_their_identities():
    e = table(1, 2, 3)
    m = energy_moments(e, "x")
    close(m.mean, [1.424790])
    close(m.variance, [0.424405])
    close(m.entropy, [0.832396])
    close(m.free_energy, [0.592394])
    for T in (0.5, 2.0):
        m = energy_moments(e, "x", T=T)
        close(m.free_energy, (m.mean - T * m.entropy).tolist(), 1e-12)
        h, beta = 1e-4, 1 / T
        log_z = [log_partition(e, "x", T=1 / (beta + k * h)) for k in (-1, 0, 1)]
        close((log_z[2] - log_z[0]) / (2 * h), (-m.mean).tolist(), 1e-6)
        close((log_z[2] - 2 * log_z[1] + log_z[0]) / h**2, m.variance.tolist(), 1e-5)


def test_variance_is_zero_only_when_the_energy_does_not_depend_on_the_variable():
    assert energy_moments(table(2, 2, 2), "x").variance.item() == 0.0
    w = torch.tensor([0.5, 0.5, 0.0], dtype=F64)
    assert energy_moments(table(2, 2, 9), "x", weights=w).variance.item() == 0.0
    assert energy_moments(table(2, 2, 9), "x").variance.item() > 0


def test_latent_uncertainty_of_two_centroids():
    e = CentroidEnergy(2, 1).double()
    a = 1.5
    with torch.no_grad():
        e.mu.copy_(torch.tensor([[-a], [a]]))
    x = torch.linspace(-3, 3, 7, dtype=F64)[:, None]
    m = energy_moments(e, "z", {"x": x}, weights=torch.tensor([0.5, 0.5], dtype=F64))
    torch.testing.assert_close(m.mean, 0.5 * (x[:, 0] ** 2 + a**2), atol=1e-12, rtol=0)
    torch.testing.assert_close(m.variance, a**2 * x[:, 0] ** 2, atol=1e-12, rtol=0)
    far = energy_moments(e, "z", {"x": torch.tensor([[30.0]], dtype=F64)})
    assert far.variance.item() < 1e-9


def test_moments_of_real_variables_come_with_an_error():
    e = linear_gaussian()
    x = torch.tensor([[2.0, 1.0]], dtype=F64)
    m = energy_moments(e, "z", {"x": x}, n=20_000, generator=seed())
    minimum = minimise(e, "z", {"x": x}).energy
    assert abs(m.mean.item() - minimum.item() - 0.5) < 4 * m.stderr.item()  # half a T per dimension
    distribution = Normal(torch.zeros(1, 1, dtype=F64), torch.ones(1, 1, dtype=F64))
    assert energy_moments(e, "z", {"x": x}, weights=distribution, n=100).stderr is not None
    with pytest.raises(ShapeError, match="must end in K=3"):
        energy_moments(table(1, 2, 3), "x", weights=torch.tensor([0.5, 0.5], dtype=F64))
    with pytest.raises(Unsupported, match="a table of weights needs finite variables"):
        energy_moments(e, "z", {"x": x}, weights=torch.tensor([0.5, 0.5], dtype=F64))


# --- Monte Carlo -----------------------------------------------------------------------------


def test_naive_marginal_likelihood():
    z = Normal(torch.tensor(0.0, dtype=F64), torch.tensor(1.0, dtype=F64))
    found = expect(
        lambda v: Normal(v, 1.0).log_prob(torch.tensor(2.0)).exp(), z, 400_000, generator=seed()
    )
    assert found.mean.item() == pytest.approx(0.103777, abs=4 * found.stderr.item())
    assert found.variance.item() == pytest.approx(0.0134518, rel=0.02)
    assert found.stderr.item() == pytest.approx(math.sqrt(found.variance.item() / 400_000))


def test_blocks_merge_to_the_same_moments():
    distribution = Normal(torch.tensor(3.0, dtype=F64), torch.tensor(2.0, dtype=F64))
    stored = draw(distribution, 5000, seed())
    whole = expect(None, stored)
    parts = expect(None, stored, block=77)
    torch.testing.assert_close(whole.mean, parts.mean)
    torch.testing.assert_close(whole.variance, parts.variance)
    torch.testing.assert_close(whole.variance, stored.var())


def test_error_falls_with_slope_one_half_and_a_cauchy_distribution_is_flagged():
    ok = expect(None, Normal(0.0, 1.0), 100_000, generator=seed())
    n, s = (torch.tensor(v, dtype=F64).log() for v in zip(*ok.running, strict=True))
    slope = ((n - n.mean()) * (s - s.mean())).sum() / (n - n.mean()).square().sum()
    assert slope.item() == pytest.approx(-0.5, abs=0.05) and ok.reliable
    for s in range(20):
        with pytest.warns(Unreliable, match="the standard error does not fall"):
            bad = expect(None, Cauchy(0.0, 1.0), 20_000, generator=seed(s))
        assert not bad.reliable
        assert expect(lambda v: v.exp(), Normal(0.0, 1.0), 20_000, generator=seed(s)).reliable


def test_a_long_sum_is_a_random_term_times_its_count():
    count = 10_000
    exact = sum(1 / (1 + i) for i in range(count))
    found = expect_sum(lambda i: 1 / (1 + i.double()), count, 200_000, generator=seed())
    assert abs(found.mean.item() - exact) < 4 * found.stderr.item()


def test_expectations_of_draws_and_weighted_draws():
    from groundstate.infer import Importance

    e = linear_gaussian()
    x = torch.tensor([[2.0, 1.0]], dtype=F64)
    exact = posterior(e, "z", {"x": x}).mean.item()
    drawn = sample(e, "z", {"x": x}, 4000, generator=seed())
    found = expect(None, drawn)
    assert abs(found.mean.item() - exact) < 4 * found.stderr.item()
    q = Normal(torch.ones(1, dtype=F64), torch.ones(1, dtype=F64))
    weighted = sample(e, "z", {"x": x}, 4000, method=Importance(q), generator=seed())
    found = expect(None, weighted)
    assert abs(found.mean.item() - exact) < 4 * found.stderr.item()
    with pytest.raises(ValueError, match="at least 2 draws"):
        expect(None, torch.zeros(1))


# --- missing values --------------------------------------------------------------------------

X1 = torch.tensor([[1.0, math.nan]], dtype=F64)
MASK = {"x": torch.tensor([[False, True]])}
KNOWN = {"x": torch.tensor([[1.0, 0.0]], dtype=F64)}


def test_the_missing_coordinate_of_a_gaussian():
    e = gaussian2()
    log_z = 2.387183
    found = minimise(e, MASK, KNOWN, method=ClosedForm())
    close(found["x"], [[1.0, 0.5]])
    close(found.energy, [0.25 + log_z])
    close(marginalise(e, MASK, KNOWN).value, [-0.871671 + log_z])
    distribution = posterior(e, MASK, KNOWN)
    close(distribution.variance, [[0.0, 1.5]])
    drawn = sample(e, MASK, KNOWN, 20_000, generator=seed())["x"][:, 0]
    assert bool((drawn[:, 0] == 1).all())
    assert drawn[:, 1].var().item() == pytest.approx(1.5, rel=0.05)


@pytest.mark.parametrize("method", [None, Gradient(tol=1e-9), Coordinate(inner=Gradient(tol=1e-9))])
def test_local_methods_move_only_the_unknown_coordinates(method):
    found = minimise(Quadratic(), MASK, KNOWN, method=method)
    close(found["x"], [[1.0, 0.5]])
    close(found.energy, [0.25])


def test_enumeration_lists_only_the_unknown_coordinates():
    e = Spins(5)
    x = torch.tensor([[1.0, 0, 1, 0, 1], [0.0, 0, 0, 1, 1]], dtype=F64)
    mask = torch.tensor([[True, False, True, False, False], [False, False, False, False, True]])
    found = minimise(e, {"x": mask}, {"x": x}, method=Enumerate(limit=4))
    F = marginalise(e, {"x": mask}, {"x": x}).value
    for row in range(2):
        unknown = mask[row].nonzero()[:, 0]
        options = []
        for code in range(2 ** len(unknown)):
            v = x[row].clone()
            for k, i in enumerate(unknown.tolist()):
                v[i] = code >> (len(unknown) - 1 - k) & 1
            options.append(v)
        energies = e(x=torch.stack(options))
        close(found.energy[row], energies.min().item(), 1e-9)
        assert torch.equal(found["x"][row], options[int(energies.argmin())])
        close(F[row], -torch.logsumexp(-energies, 0).item(), 1e-9)
    drawn = sample(e, {"x": mask}, {"x": x}, 30, generator=seed())["x"]
    assert bool((drawn == x)[:, ~mask].all())


def test_a_partly_known_sequence_is_a_chain_with_held_items():
    e = Chain3()
    mask = torch.tensor([[True, False, True]])
    given = {"y": torch.tensor([[0, 0, 0]])}
    by_chain = minimise(e, {"y": mask}, given)
    listed = minimise(e, {"y": mask}, given, method=Enumerate())
    assert torch.equal(by_chain["y"], listed["y"]) and by_chain["y"][0, 1] == 0
    torch.testing.assert_close(
        marginalise(e, {"y": mask}, given).value,
        marginalise(e, {"y": mask}, given, method=Enumerate()).value,
    )


def test_impute_by_minimum_mean_and_draw():
    e = gaussian2()
    close(impute(e, X1), [[1.0, 0.5]])
    close(impute(e, X1, "mean"), [[1.0, 0.5]])
    many = X1.expand(4000, 2)
    drawn = impute(e, many, "sample", generator=seed())
    assert drawn[:, 1].var().item() == pytest.approx(1.5, rel=0.1)
    full = torch.ones(3, 2, dtype=F64)
    assert impute(e, full) is full
    with pytest.raises(ValueError, match="how must be minimise, sample or mean"):
        impute(e, X1, "guess")


def test_impute_discrete_values_and_sums_out_latents():
    e = BilinearEnergy(4, 3, generator=seed(), scale=2.0).double()
    x = torch.tensor([[1.0, math.nan, 0.0, math.nan]], dtype=F64)
    mean = impute(e, x, "mean")
    joint = e.marginal("z")
    mask = torch.isnan(x)
    draws = sample(joint, {"x": mask}, {"x": x.nan_to_num()}, 20_000, generator=seed())["x"]
    torch.testing.assert_close(mean, draws.mean(0), atol=0.02, rtol=0)
    best = impute(e, x)
    assert bool(((best == 0) | (best == 1)).all())
    assert bool((best == x)[~mask].all())


def test_mean_imputation_shrinks_what_draws_restore():
    g = gaussian2()
    x = draw(g.distribution, 3000, seed(5))
    hidden = x.clone()
    mask = torch.zeros_like(x, dtype=torch.bool)
    mask[:, 1] = torch.rand(3000, generator=seed()) < 0.3
    hidden[mask] = math.nan
    by_mean, by_draw = impute(g, hidden, "mean"), impute(g, hidden, "sample", generator=seed())
    filled_mean, filled_draw = by_mean[mask].var(), by_draw[mask].var()
    assert filled_mean.item() < 0.4 * 2 < 0.8 * 2 < filled_draw.item()
    torch.testing.assert_close(by_mean[mask], 0.5 * x[:, 0][mask[:, 1]], atol=1e-6, rtol=0)


# --- moving the input ------------------------------------------------------------------------


def test_one_step_on_the_input_closes_the_gap():
    e = LinearEnergy(2, 2)
    with torch.no_grad():
        e.W.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
    x = torch.tensor([[0.3, 0.4]], requires_grad=True)
    gap = (e(x=x, y=torch.tensor([0])) - e(x=x, y=torch.tensor([1]))).sum()
    assert gap.item() == pytest.approx(0.5)
    (g,) = torch.autograd.grad(gap, x)
    moved = (x - 0.1 * g).detach()
    after = e(x=moved, y=torch.tensor([0])) - e(x=moved, y=torch.tensor([1]))
    assert after.item() == pytest.approx(0.0, abs=1e-6)  # it fell by eta times the squared norm, 5


def test_adaptation_with_a_spring_balances_energy_and_distance():
    e = linear_gaussian()
    start = torch.tensor([[3.0, -2.0], [0.0, 0.0]], dtype=F64)
    z = {"z": torch.tensor([[0.5], [1.0]], dtype=F64)}
    target = z["z"] @ e.W.detach().T + e.b.detach()
    free = adapt(e, start, z)
    torch.testing.assert_close(free["x"], target, atol=1e-5, rtol=0)
    c = 2.0
    held = adapt(e, start, z, c=c)
    torch.testing.assert_close(held["x"], (target + 2 * c * start) / (1 + 2 * c), atol=1e-5, rtol=0)
    with pytest.raises(Unsupported, match="a spring needs a real variable"):
        Proximity(Spins(3).spaces["x"])


def test_density_energies_know_their_own_mode():
    e = DensityEnergy(Normal(torch.tensor([1.0, 2.0]), torch.ones(2)))
    assert minimise(e, "x")["x"].tolist() == [[1.0, 2.0]]

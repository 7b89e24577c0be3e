"""EM: the numbers of the worked example, monotonicity, temperatures, mini-batches, shards."""

from __future__ import annotations

import math

import pytest
import torch
from sklearn.cluster import KMeans
from torch import Tensor, nn

from groundstate.compute.reduce import run_local
from groundstate.energy import (
    BilinearEnergy,
    CentroidEnergy,
    Energy,
    Finite,
    LatentClassEnergy,
    LinearEnergy,
    LinearGaussianEnergy,
    Real,
    offers,
)
from groundstate.errors import NotConverged, Unsupported
from groundstate.learn import (
    EM,
    L1,
    L2,
    LBFGS,
    NLL,
    Callback,
    Checkpoint,
    Naive,
    Perceptron,
    Snapshots,
    SoftMin,
    Stochastic,
    fit,
)
from groundstate.learn.base import Problem
from groundstate.learn.fit import choose
from groundstate.learn.posterior.hidden import Completion

X = torch.tensor([[-2.0], [-1.0], [1.0], [3.0]], dtype=torch.float64)
START = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)


def centroids(start: Tensor = START) -> CentroidEnergy:
    energy = CentroidEnergy(*start.shape).to(start.dtype)
    energy.mu.data.copy_(start)
    return energy


def blobs(n: int = 600, k: int = 5, d: int = 2, spread: float = 4.0, seed: int = 0) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    middle = spread * torch.randn(k, d, generator=g, dtype=torch.float64)
    which = torch.randint(k, (n,), generator=g)
    return middle[which] + torch.randn(n, d, generator=g, dtype=torch.float64)


def assert_near(a: Tensor, b: Tensor, atol: float) -> None:
    torch.testing.assert_close(a.detach(), b.detach(), rtol=0.0, atol=atol)


def assert_monotone(history, slack: float = 1e-10) -> None:
    likelihood, between = history.extra["log_likelihood"], history.extra["bound"]
    assert len(likelihood) == len(between) + 1
    for t, bound in enumerate(between):
        assert bound >= likelihood[t] - slack  # the M-step cannot lower the bound
        assert likelihood[t + 1] >= bound - slack  # nor the E-step


def test_worked_example():
    energy = centroids()
    history = fit(energy, {"x": X}, NLL(), EM(max_iter=1, tol=None, audit=True))
    assert history.extra["log_likelihood"] == pytest.approx([-2.168465, -1.909317], abs=1e-6)
    assert history.extra["bound"] == pytest.approx([-1.954753], abs=1e-6)
    assert energy.mu.flatten().tolist() == pytest.approx([-1.369727, 1.844792], abs=1e-6)
    history = fit(energy, {"x": X}, NLL(), EM(tol=1e-14))
    assert energy.mu.flatten().tolist() == pytest.approx([-1.396994, 2.027614], abs=1e-6)
    assert history.extra["log_likelihood"][-1] == pytest.approx(-1.901677, abs=1e-6)
    assert history.objective[-1] == -history.extra["log_likelihood"][-1]
    assert history.converged and history.n_iter == len(history.objective)


@pytest.mark.parametrize("seed", range(4))
def test_never_lowers_the_bound(seed):
    x = blobs(seed=seed)
    g = torch.Generator().manual_seed(seed)
    energy = centroids(x[torch.randperm(len(x), generator=g)[:5]])
    assert_monotone(fit(energy, {"x": x}, NLL(), EM(tol=1e-9, audit=True, max_iter=1000)))


def test_stationary_point_of_the_likelihood():
    x, energy = blobs(), centroids(blobs()[:5])
    fit(energy, {"x": x}, NLL(), EM(tol=1e-15, max_iter=5000))
    loss = NLL()(energy, {"x": x}).loss.mean()
    (g,) = torch.autograd.grad(loss, energy.mu)
    assert float(g.abs().max()) < 1e-6


def test_finds_local_optima():
    x = blobs(300, 5, spread=5.0)
    found = set()
    for seed in range(20):
        g = torch.Generator().manual_seed(seed)
        energy = centroids(x[torch.randperm(len(x), generator=g)[:5]])
        history = fit(energy, {"x": x}, NLL(), EM(tol=1e-7, max_iter=1000))
        found.add(round(history.objective[-1], 3))
    assert len(found) >= 2


def test_temperatures_of_the_responsibilities():
    complete = Completion(centroids(), "z")
    distribution, _ = complete.distribution({"x": X}, 100.0)
    assert distribution.probs[:, 0].detach().tolist() == pytest.approx(
        [0.509999, 0.505, 0.495, 0.485005], abs=1e-6
    )
    distribution, _ = complete.distribution({"x": X}, 0.1)
    sure = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert float((distribution.probs.detach() - sure).abs().max()) == pytest.approx(
        2.1e-9, abs=1e-10
    )


def test_entropy_of_responsibilities_grows_with_temperature():
    complete = Completion(centroids(), "z")
    entropies = [
        float(complete.distribution({"x": X}, T)[0].entropy().mean().detach())
        for T in (0.01, 0.1, 1.0, 10.0, 1e6)
    ]
    assert entropies == sorted(entropies)
    assert entropies[0] < 1e-6 and entropies[-1] == pytest.approx(math.log(2), abs=1e-6)


@pytest.mark.parametrize(
    "rule, solver", [(NLL(), EM(T=0.0)), (Naive(latent="minimise"), EM()), (Naive(), EM(T=0))]
)
def test_cold_em_is_k_means(rule, solver):
    energy = centroids()
    fit(energy, {"x": X}, rule, solver)
    assert energy.mu.flatten().tolist() == [-1.5, 2.0]
    inertia = 2 * float(energy.minimal("z")(x=X).detach().sum())
    assert inertia == 2.5
    peer = KMeans(2, init=START.numpy(), n_init=1).fit(X.numpy())
    assert inertia == pytest.approx(peer.inertia_)


def test_k_means_parity_with_sklearn():
    x = blobs()
    start = x[:5].clone()
    energy = centroids(start)
    fit(energy, {"x": x}, Naive(latent="minimise"), EM(tol=0.0, max_iter=300))
    peer = KMeans(5, init=start.numpy(), n_init=1, tol=0.0, max_iter=300).fit(x.numpy())
    assert_near(energy.mu, torch.tensor(peer.cluster_centers_), 1e-9)


def test_annealing_schedule():
    energy = centroids()
    history = fit(energy, {"x": X}, NLL(), EM(T=lambda t: max(1.0, 8.0 * 0.5**t), tol=1e-12))
    assert energy.mu.sort(0).values.flatten().tolist() == pytest.approx(
        [-1.396994, 2.027614], abs=1e-4
    )
    assert history.converged and history.n_iter > 3


def test_agrees_with_gradient_learning():
    x = blobs()
    by_em, by_lbfgs = centroids(x[:5]), centroids(x[:5])
    fit(by_em, {"x": x}, NLL(), EM(tol=1e-13, max_iter=5000))
    fit(by_lbfgs, {"x": x}, NLL(), LBFGS(max_iter=1000, tol=1e-9))
    one = float(NLL()(by_em, {"x": x}).loss.mean().detach())
    two = float(NLL()(by_lbfgs, {"x": x}).loss.mean().detach())
    assert one == pytest.approx(two, abs=1e-6)


def test_weights_are_repetitions_and_order_does_not_matter():
    x = blobs(100, 3)
    weight = torch.arange(100, dtype=torch.float64) % 3
    a, b = centroids(x[:3]), centroids(x[:3])
    fit(a, {"x": x}, NLL(), EM(), sample_weight=weight)
    repeated = x.repeat_interleave(weight.long(), 0)
    shuffled = repeated[torch.randperm(len(repeated), generator=torch.Generator().manual_seed(1))]
    fit(b, {"x": shuffled}, NLL(), EM())
    assert_near(a.mu, b.mu.detach(), 1e-12)


def test_chunks_and_streams_change_nothing():
    x = blobs(100, 3)
    whole, chunked, streamed = (centroids(x[:3]) for _ in range(3))
    fit(whole, {"x": x}, NLL(), EM())
    fit(chunked, {"x": x}, NLL(), EM(chunk_rows=7))
    fit(streamed, [{"x": piece} for piece in x.split(9)], NLL(), EM())
    assert_near(chunked.mu, whole.mu.detach(), 1e-12)
    assert_near(streamed.mu, whole.mu.detach(), 1e-12)


def _shard(rank: int, x: Tensor) -> Tensor:
    torch.use_deterministic_algorithms(True)
    energy = centroids(x[:3])
    mine = x[:40] if rank == 0 else x[40:]
    fit(energy, {"x": mine}, NLL(), EM(tol=1e-6))
    return energy.mu.detach()


@pytest.mark.slow
def test_two_processes_give_the_result_of_one():
    x = blobs(100, 3)
    alone = centroids(x[:3])
    fit(alone, {"x": x}, NLL(), EM(tol=1e-6))
    for mu in run_local(_shard, 2, x):
        assert_near(mu, alone.mu.detach(), 1e-10)


def test_real_latent_reaches_principal_subspace():
    g = torch.Generator().manual_seed(0)
    scale = torch.tensor([3.0, 2.0, 0.1, 0.1], dtype=torch.float64)
    x = torch.randn(400, 4, generator=g, dtype=torch.float64) * scale + 1.0
    energy = LinearGaussianEnergy(4, 2, generator=g).double()
    history = fit(energy, {"x": x}, NLL(), EM(tol=1e-12, max_iter=2000, audit=True))
    assert_monotone(history)
    assert_near(energy.b, x.mean(0), 1e-4)
    # unit noise and unit prior: W Wᵀ + I has the two leading eigenvalues of the covariance
    values = torch.linalg.eigvalsh(torch.cov(x.T, correction=0))[-2:]
    model = torch.linalg.eigvalsh(energy.W @ energy.W.T + torch.eye(4))[-2:]
    assert_near(model, values, 1e-4)


@pytest.mark.parametrize("make", [centroids, lambda: LinearGaussianEnergy(1, 1).double()])
def test_inner_solver_lowers_what_statistics_minimise(make):
    closed, inner = make(), make()
    a = fit(closed, {"x": X}, NLL(), EM(max_iter=3, tol=None))
    b = fit(inner, {"x": X}, NLL(), EM(max_iter=3, tol=None, inner=LBFGS(tol=1e-10), audit=True))
    assert_monotone(b)
    assert b.objective == pytest.approx(a.objective, abs=1e-7)


def test_generalised_em_with_a_normaliser_that_moves():
    g = torch.Generator().manual_seed(0)
    x = torch.randn(120, 2, generator=g, dtype=torch.float64)
    y = (x[:, 0] * x[:, 1] > 0).long()  # needs two styles per class
    energy = LatentClassEnergy(2, 2, 3, scale=0.5, generator=g).double()
    data = {"x": x, "y": y}
    solver = EM(inner=LBFGS(max_iter=5), max_iter=40, tol=1e-4, audit=True)
    history = fit(energy, data, SoftMin(), solver, penalty=L2(0.1))
    assert_monotone(history, 1e-9)
    assert history.objective[-1] < 0.6 * history.extra["log_likelihood"][0] * -1
    loss = float(SoftMin()(energy, data).loss.detach().sum() + L2(0.1)(energy).detach()) / 120
    assert history.objective[-1] == pytest.approx(loss, abs=1e-9)


def test_stochastic_em_is_near_full_em():
    x = blobs(5000, 5)
    full, online = centroids(x[:5]), centroids(x[:5])
    fit(full, {"x": x}, NLL(), EM(tol=1e-6, max_iter=1000))
    history = fit(online, {"x": x}, NLL(), EM(batch_size=100, max_iter=5, tol=None), random_state=0)
    assert len(history.objective) == 5 and history.n_iter == 5
    a, b = (float(NLL()(e, {"x": x}).loss.mean().detach()) for e in (full, online))
    assert b <= a * 1.01


def test_stochastic_em_with_one_full_batch_is_em():
    a, b = centroids(), centroids()
    fit(a, {"x": X}, NLL(), EM(max_iter=4, tol=None))
    fit(b, {"x": X}, NLL(), EM(batch_size=4, max_iter=4, tol=None, step=lambda t: 1.0))
    assert_near(a.mu, b.mu.detach(), 1e-14)


def test_stochastic_em_weights_are_repetitions():
    x = blobs(60, 3)
    weight = 1.0 + torch.arange(60, dtype=torch.float64) % 2
    a, b = centroids(x[:3]), centroids(x[:3])
    solver = EM(batch_size=10, max_iter=3, tol=None)
    fit(a, {"x": x}, NLL(), solver, sample_weight=weight, random_state=0)
    fit(b, {"x": x.repeat_interleave(weight.long(), 0)}, NLL(), solver, random_state=0)
    assert_near(a.mu, b.mu.detach(), 1e-10)


def test_gradient_step_on_mini_batches_is_the_trainer():
    x = blobs(200, 3)
    a, b = centroids(x[:3]), centroids(x[:3])
    trainer = Stochastic(lr=0.01, max_epochs=3, tol=None)
    fit(a, {"x": x}, NLL(), EM(batch_size=20, inner=trainer), random_state=0)
    fit(
        b,
        {"x": x},
        NLL(),
        Stochastic(lr=0.01, batch_size=20, max_epochs=3, tol=None),
        random_state=0,
    )
    assert torch.equal(a.mu, b.mu)


@pytest.mark.parametrize("batch_size", [None, 16])
def test_resumes_to_the_same_bits(tmp_path, batch_size):
    x = blobs(100, 3)
    solver = EM(max_iter=6, tol=None, batch_size=batch_size)
    straight, first, second = (centroids(x[:3]) for _ in range(3))
    whole = fit(straight, {"x": x}, NLL(), solver, random_state=0)
    short = EM(max_iter=3, tol=None, batch_size=batch_size)
    fit(first, {"x": x}, NLL(), short, callbacks=[Checkpoint(tmp_path)], random_state=0)
    resumed = fit(second, {"x": x}, NLL(), solver, callbacks=[Checkpoint(tmp_path)], random_state=0)
    assert torch.equal(second.mu, straight.mu)
    assert resumed.objective == whole.objective
    assert resumed.extra["log_likelihood"] == whole.extra["log_likelihood"]


class Coins(Energy):
    r"""Bernoulli components, e = −log π_z − Σ_j log p(x_j | z); normalised over x and z."""

    normalised = frozenset({"x", "z"})

    def __init__(self, k: int, d: int) -> None:
        super().__init__(x=Real(d), z=Finite(k))
        g = torch.Generator().manual_seed(0)
        self.p = nn.Parameter(torch.rand(k, d, generator=g, dtype=torch.float64) * 0.5 + 0.25)
        self.log_pi = nn.Parameter(torch.full((k,), -math.log(k), dtype=torch.float64))

    def reset(self, key, data, weight):
        self.p.data.copy_(torch.rand(self.p.shape, generator=key.torch(), dtype=self.p.dtype))

    def forward(self, x, z):
        p = self.p[z]
        return -self.log_pi[z] - (x * p.log() + (1 - x) * (1 - p).log()).sum(-1)

    @offers.stats
    def stats(self, weights, x, z):
        r = z.probs if weights is None else z.probs * weights[:, None]
        return {"n": r.sum(0), "x": r.T @ x}

    @offers.from_stats
    def from_stats(self, stats):
        p = (stats["x"] + 1e-9) / (stats["n"][:, None] + 2e-9)
        self.p.data.copy_(p)
        self.log_pi.data.copy_((stats["n"] / stats["n"].sum()).log())


def coin_data() -> Tensor:
    g = torch.Generator().manual_seed(3)
    p = torch.tensor([[0.9, 0.9, 0.1, 0.1], [0.1, 0.1, 0.9, 0.9], [0.9, 0.1, 0.9, 0.1]])
    which = torch.randint(3, (300,), generator=g)
    return (torch.rand(300, 4, generator=g) < p[which]).double()


def test_other_components_and_restarts():
    x = coin_data()
    energy = Coins(3, 4)
    assert type(choose(Problem(energy, NLL(), {"x": x}))).__name__ == "EM"
    one = fit(energy, {"x": x}, NLL(), EM(tol=1e-8, max_iter=1000, audit=True))
    assert_monotone(one, 1e-8)  # the tiny pseudo-count is no exact maximiser
    again = Coins(3, 4)
    many = fit(again, {"x": x}, NLL(), EM(tol=1e-8, max_iter=1000, n_init=6), random_state=0)
    assert many.objective[-1] <= one.objective[-1] + 1e-12
    assert many.objective[-1] == pytest.approx(
        float(NLL()(again, {"x": x}).loss.mean().detach()), abs=1e-10
    )


def test_callbacks_end_all_restarts():
    class Enough(Callback):
        calls = 0

        def on_epoch(self, run):
            self.calls += 1
            return self.calls == 2

    enough = Enough()
    solver = EM(max_iter=50, tol=1e-12, n_init=4)
    history = fit(Coins(3, 4), {"x": coin_data()}, NLL(), solver, callbacks=[enough])
    assert enough.calls == 2 and history.n_iter == 2 and history.stop == "callback"


def test_callbacks_watch_and_stop():
    snapshots = Snapshots(every=1)
    fit(centroids(), {"x": X}, NLL(), EM(max_iter=3, tol=None), callbacks=[snapshots])
    assert len(snapshots.draws) == 3


def test_says_when_it_did_not_converge():
    with pytest.warns(NotConverged, match="raise max_iter"):
        fit(centroids(), {"x": X}, NLL(), EM(max_iter=1, tol=1e-9))


@pytest.mark.parametrize(
    "make, rule, solver, data, message",
    [
        (lambda: LinearEnergy(1, 2), SoftMin(), EM(), {"x": 0, "y": 0}, "nothing is hidden"),
        (lambda: BilinearEnergy(2, 2), NLL(), EM(), {"x": 0}, "no stats and from_stats"),
        (lambda: CentroidEnergy(2, 1), Perceptron(), EM(), {"x": 0}, "not Perceptron"),
        (lambda: CentroidEnergy(2, 1), NLL(), EM(n_init=2), {"x": 0}, "needs CentroidEnergy.reset"),
        (lambda: CentroidEnergy(2, 1), SoftMin(latent="minimise"), EM(), {"x": 0}, "depends on θ"),
        (
            lambda: CentroidEnergy(2, 1),
            NLL(),
            EM(batch_size=2, inner=LBFGS()),
            {"x": 0},
            "pass Stochastic",
        ),
    ],
)
def test_says_why_it_cannot_run(make, rule, solver, data, message):
    energy = make()
    batch = {k: energy.spaces[k].draw(4, generator=torch.Generator()) for k in data}
    reason = solver.reason_against(Problem(energy, rule, batch))
    assert reason is not None and message in reason


def test_unknown_targets_are_refused():
    data = {"x": torch.zeros(3, 2), "y": torch.tensor([0, 1, -1])}
    problem = Problem(LatentClassEnergy(2, 2, 2), SoftMin(over=("x", "y")), data)
    reason = EM(inner=LBFGS()).reason_against(problem)
    assert reason is not None and "some y are unknown" in reason


def test_penalty_without_closed_form_is_refused():
    with pytest.raises(Unsupported, match="no closed form with the penalty L1"):
        fit(centroids(), {"x": X}, NLL(), EM(), penalty=L1(1.0))


def test_penalised_real_latent():
    energy = LinearGaussianEnergy(1, 1).double()
    history = fit(energy, {"x": X}, NLL(), EM(tol=1e-12, audit=True, max_iter=500), penalty=L2(3.0))
    assert_monotone(history)
    loss = float(NLL()(energy, {"x": X}).loss.sum().detach() + L2(3.0)(energy).detach()) / 4
    assert history.objective[-1] == pytest.approx(loss, abs=1e-10)


def test_observed_latent_needs_no_em():
    data = {"x": X, "z": torch.tensor([0, 0, 1, 1])}
    assert type(choose(Problem(centroids(), NLL(), data))).__name__ == "Closed"


def test_settings_are_checked():
    with pytest.raises(ValueError, match="max_iter must be at least 1"):
        EM(max_iter=0)
    with pytest.raises(ValueError, match="temperature must be in"):
        EM(T=-1.0)


def test_forbidden_values_get_no_responsibility():
    class Fenced(CentroidEnergy):
        @offers.table("z")
        def energies(self, x):
            e = super().energies(x)
            return torch.where(torch.tensor([True, False]) & (x > 0), torch.inf, e)

    energy = Fenced(2, 1).double()
    energy.mu.data.copy_(START)
    distribution, F = Completion(energy, "z").distribution({"x": X}, 1.0)
    assert distribution.probs[2:, 0].detach().tolist() == [0.0, 0.0] and bool(
        torch.isfinite(F).all()
    )

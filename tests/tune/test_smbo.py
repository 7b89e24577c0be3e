"""Samplers: expected improvement, the Boltzmann proposal, SMBO and the cross-entropy method."""

from __future__ import annotations

from typing import Any

import numpy as np
import optuna
import pytest
import torch
from scipy import stats

from groundstate.errors import DataError, Unsupported
from groundstate.infer import minimise, sample
from groundstate.tune import (
    CEMSampler,
    PriorSampler,
    Proposal,
    SMBOSampler,
    expected_improvement,
    log_expected_improvement,
    sampled_improvement,
)
from groundstate.tune.samplers.cube import Cube
from groundstate.tune.samplers.process import Prior, Process, _Objective, fit_process
from groundstate.tune.samplers.rounds import standardise

optuna.logging.set_verbosity(optuna.logging.WARNING)
F = optuna.distributions.FloatDistribution


def branin(trial: Any) -> float:
    x, y = trial.suggest_float("x", -5, 10), trial.suggest_float("y", 0, 15)
    curve = (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2
    return float(curve + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10 - 0.397887357729738)


A = np.array([[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8],
              [17, 8, 0.05, 10, 0.1, 14]])  # fmt: skip
P = 1e-4 * np.array([[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
                     [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]])  # fmt: skip


def hartmann(trial: Any) -> float:
    x = np.array([trial.suggest_float(f"x{i}", 0, 1) for i in range(6)])
    heights = np.array([1.0, 1.2, 3.0, 3.2])
    return float(3.322368011415515 - heights @ np.exp(-(A * (x - P) ** 2).sum(1)))


def search(sampler: Any, objective: Any, n: int) -> optuna.Study:
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=n)
    return study


def test_expected_improvement_numbers() -> None:
    assert expected_improvement(0.5, 0.2, 0.4) == pytest.approx(0.0395593, abs=5e-8)
    draws = np.random.default_rng(0).normal(0.5, 0.2, 10**6)
    assert sampled_improvement(draws, 0.4) == pytest.approx(0.03955, abs=3e-4)
    m, s = np.linspace(-2, 2, 41)[:, None], np.linspace(0, 2, 21)
    assert (expected_improvement(m, s, 0.1) >= 0).all()
    assert expected_improvement(0.1, 0.0, 0.1) == 0
    np.testing.assert_allclose(
        np.exp(log_expected_improvement(m, s + 0.05, 0.1)),
        expected_improvement(m, s + 0.05, 0.1),
        rtol=1e-9,
        atol=1e-15,  # far out the plain form loses its digits
    )


def test_log_improvement_far_out() -> None:
    # h(z) = phi(z) (1/z^2 - 3/z^4 + 15/z^6 - ...) in the lower tail
    z = -np.array([50.0, 299.0, 301.0, 1e4, 1e9])
    series = (
        -0.5 * z**2 - 0.5 * np.log(2 * np.pi) - 2 * np.log(-z) + np.log1p(-3 / z**2 + 15 / z**4)
    )
    np.testing.assert_allclose(log_expected_improvement(-z, 1.0, 0.0), series, rtol=1e-9)


def test_no_improvement_at_a_noiseless_observed_point() -> None:
    Z = np.linspace(0, 1, 6)[:, None]
    process = Process(Z, np.sin(6 * Z[:, 0]), np.zeros(1, np.intp), np.log([0.3, 1.0, 1e-12]))
    ei = expected_improvement(*process.predict(Z), float(np.sin(6 * Z[:, 0]).min()))
    assert ei.max() < 1e-4


def test_likelihood_gradient_and_slopes() -> None:
    rng = np.random.default_rng(0)
    Z, groups = rng.random((15, 4)), np.array([0, 1, 2, 2])
    y = np.sin(3 * Z[:, 0]) + Z[:, 1]
    objective = _Objective(Z, y, groups, Prior.of(3))
    theta = rng.normal(size=5) * 0.3 - 0.5
    found = objective(theta)[1]
    for i, e in enumerate(1e-5 * np.eye(5)):
        slope = (objective(theta + e)[0] - objective(theta - e)[0]) / 2e-5
        assert found[i] == pytest.approx(slope, abs=1e-5)
    process = fit_process(Z, y, groups)
    U = rng.random((3, 4))
    _, _, dm, ds = process.slopes(U)
    for c, e in enumerate(1e-6 * np.eye(4)):
        up, down = process.predict(U + e), process.predict(U - e)
        np.testing.assert_allclose(dm[:, c], (up[0] - down[0]) / 2e-6, atol=1e-5)
        np.testing.assert_allclose(ds[:, c], (up[1] - down[1]) / 2e-6, atol=1e-5)


def test_one_more_cholesky_row_is_the_whole_factor() -> None:
    rng = np.random.default_rng(1)
    Z, groups = rng.random((12, 2)), np.arange(2)
    process = fit_process(Z, Z @ [1.0, -2.0], groups)
    z, U = rng.random(2), rng.random((5, 2))
    mean = process.predict(z[None])[0]
    whole = Process(np.vstack([Z, z]), np.append(process.y, mean), groups, process.theta)
    for mine, theirs in zip(process.append(z).predict(U), whole.predict(U)):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)
    assert process.append(z).predict(z[None])[1] < process.predict(z[None])[1]


def test_proposal_frequencies_are_a_softmax() -> None:
    log_ei = np.log([0.05, 0.4, 0.2, 0.39, 1e-9])
    proposal = Proposal(log_ei, beta=3.0, alpha=1.0, distance=[0, 0.5, 0.1, 0.9, 0.3])
    expected = np.exp(3.0 * np.exp(log_ei) / 0.4 - np.array([0, 0.5, 0.1, 0.9, 0.3]))
    expected /= expected.sum()
    np.testing.assert_allclose(proposal.probabilities(), expected, rtol=1e-12)
    drawn = np.bincount(proposal.propose(10**5, key=0), minlength=5) / 1e5
    np.testing.assert_allclose(drawn, expected, atol=1e-2)
    core = sample(proposal.energy(), "y", n=10**5, generator=torch.Generator().manual_seed(0))
    drawn = np.bincount(core.values["y"].flatten().numpy(), minlength=5) / 1e5
    np.testing.assert_allclose(drawn, expected, atol=1e-2)
    assert int(minimise(proposal.energy(), "y").values["y"]) == int(expected.argmax())


def test_proposal_limits() -> None:
    log_ei = np.log([0.1, 0.3, 0.2])
    np.testing.assert_allclose(Proposal(log_ei, beta=0.0).probabilities(), 1 / 3)
    prior = [0.5, 0.25, 0.25]
    np.testing.assert_allclose(Proposal(log_ei, 0.0, prior=prior).probabilities(), prior)
    assert Proposal(log_ei, beta=np.inf).probabilities().tolist() == [0, 1, 0]
    raw = Proposal(log_ei, beta=2.0, ei_scale="raw").probabilities()
    np.testing.assert_allclose(raw, np.exp([0.2, 0.6, 0.4]) / np.exp([0.2, 0.6, 0.4]).sum())
    distance = np.linspace(0, 1, 50)
    steps = [
        Proposal(np.zeros(50), 1.0, alpha, distance).probabilities() @ distance
        for alpha in (0.0, 2.0, 8.0)
    ]
    assert steps[0] > steps[1] > steps[2] and steps[0] == pytest.approx(0.5)
    with pytest.raises(DataError, match="beta is at least 0"):
        Proposal(log_ei, beta=-1.0)


def test_branin_regret() -> None:
    found = [search(SMBOSampler(seed=s), branin, 35).best_value for s in range(5)]
    assert np.median(found) <= 0.02


def test_hartmann_regret() -> None:
    found = [search(SMBOSampler(seed=s), hartmann, 50).best_value for s in range(3)]
    assert np.median(found) <= 0.15


@pytest.mark.parametrize("surrogate", ["forest", "ensemble"])
def test_other_surrogates_beat_random_search(surrogate: Any) -> None:
    def bowl(trial: Any) -> float:
        return sum((trial.suggest_float(name, -1, 1) - 0.3) ** 2 for name in "xyz")

    found = [
        np.median([search(make(s), bowl, 18).best_value for s in range(count)])
        for make, count in (
            (lambda s: SMBOSampler(surrogate, seed=s, n_startup=8), 1),
            (lambda s: PriorSampler(s), 9),
        )
    ]
    assert found[0] < found[1]


def test_beta_zero_is_the_prior() -> None:
    def objective(trial: Any) -> float:
        return trial.suggest_float("x", 1e-3, 1e3, log=True)

    study = search(SMBOSampler(beta=0.0, seed=0), objective, 200)
    theirs = search(optuna.samplers.RandomSampler(seed=0), objective, 200)
    x = [np.log(t.params["x"]) for t in study.trials]
    assert stats.ks_2samp(x, [np.log(t.params["x"]) for t in theirs.trials]).pvalue > 0.05


def test_larger_alpha_steps_less_far() -> None:
    def mean_step(alpha: float) -> float:
        study = search(SMBOSampler(seed=0, beta=1.0, alpha=alpha), branin, 30)
        steps = []
        for trial in study.trials[10:]:
            best = min(study.trials[: trial.number], key=lambda t: float(t.value or 0))
            ends = [(trial.params[k] - best.params[k]) / 15 for k in ("x", "y")]
            steps.append(np.hypot(*ends))
        return float(np.mean(steps))

    assert mean_step(50.0) < 0.7 * mean_step(0.0)


def test_same_seed_same_trials_and_pending_trials_differ() -> None:
    first, second = (search(SMBOSampler(seed=5), branin, 16) for _ in range(2))
    assert [t.params for t in first.trials] == [t.params for t in second.trials]
    asked = [first.ask() for _ in range(3)]  # running at once: each knows the ones before
    points = [(t.suggest_float("x", -5, 10), t.suggest_float("y", 0, 15)) for t in asked]
    assert len(set(points)) == 3


def test_a_round_depends_on_earlier_rounds_only() -> None:
    """Three trials asked together get what they get when told one by one."""

    def run(together: bool) -> list[dict[str, Any]]:
        study = optuna.create_study(sampler=SMBOSampler(seed=1, batch=3))
        study.optimize(branin, n_trials=10)
        for _ in range(2):
            if together:
                asked = [study.ask() for _ in range(3)]
                for trial in reversed(asked):
                    study.tell(trial, branin(trial))
            else:
                study.optimize(branin, n_trials=3)
        return [t.params for t in study.trials]

    assert run(True) == run(False)


def test_mixed_discrete_space_repeats_nothing() -> None:
    def objective(trial: Any) -> float:
        k = trial.suggest_int("k", 1, 6)
        kind = trial.suggest_categorical("kind", ["a", "b", "c"])
        return (k - 4) ** 2 + {"a": 1.0, "b": 0.0, "c": 2.0}[kind]

    study = search(SMBOSampler(seed=0, n_startup=5), objective, 16)
    assert study.best_value == 0.0
    tried = [tuple(t.params.values()) for t in study.trials[5:]]
    assert len(set(tried)) == len(tried)


def test_standardised_risks_keep_order_and_forget_units() -> None:
    r = np.random.default_rng(0).lognormal(sigma=2.0, size=31)
    y = standardise(r)
    assert (np.argsort(y) == np.argsort(r)).all()
    assert y.mean() == pytest.approx(0, abs=1e-12) and y.std() == pytest.approx(1)
    np.testing.assert_allclose(standardise(7.0 + 1e3 * r), y, atol=1e-9)
    better = r <= np.median(r)  # of which the proportions stay
    steps, told = np.diff(np.sort(r[better])), np.diff(np.sort(y[better]))
    np.testing.assert_allclose(told / told.sum(), steps / steps.sum(), atol=1e-12)
    assert (standardise(np.full(4, 0.3)) == 0).all()
    assert np.isfinite(standardise(np.array([1.0, 1.0, 1.0, 5.0]))).all()


def test_one_diverging_setting_does_not_set_the_scale() -> None:
    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        return (x - 0.6) ** 2 if x < 0.9 else 1e6

    found = [search(SMBOSampler(seed=s), objective, 20).best_value for s in range(4)]
    assert max(found) < 1e-3


def test_failed_and_pruned_trials_count() -> None:
    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        if x > 0.7:
            raise ValueError("out of memory")
        trial.report((x - 0.5) ** 2, 1)
        if x < 0.2:
            raise optuna.TrialPruned
        return (x - 0.5) ** 2

    study = optuna.create_study(sampler=SMBOSampler(seed=0))
    study.optimize(objective, n_trials=20, catch=(ValueError,))
    assert abs(study.best_params["x"] - 0.5) < 0.02
    assert sum(t.state == optuna.trial.TrialState.FAIL for t in study.trials[10:]) <= 2


def test_maximising_and_several_objectives() -> None:
    study = optuna.create_study(direction="maximize", sampler=SMBOSampler(seed=0))
    study.optimize(lambda trial: -((trial.suggest_float("x", -3, 3) - 1) ** 2), n_trials=18)
    assert abs(study.best_params["x"] - 1) < 0.05
    many = optuna.create_study(directions=["minimize"] * 2, sampler=SMBOSampler(seed=0))
    with pytest.raises(Unsupported, match="the study has 2 objectives"):
        many.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 0.0), n_trials=1)
    with pytest.raises(DataError, match="surrogate is one of gp, forest, ensemble"):
        SMBOSampler(surrogate="svm")  # type: ignore[arg-type]


def test_cem_on_a_quadratic() -> None:
    centre = np.array([0.2, 0.4, 0.6, 0.7, 0.3])

    def objective(trial: Any) -> float:
        x = np.array([trial.suggest_float(f"x{i}", 0, 1) for i in range(5)])
        return float(np.square(x - centre).sum())

    samplers = [CEMSampler(seed=s) for s in range(3)]
    studies = [search(sampler, objective, 200) for sampler in samplers]
    assert np.median([s.best_value for s in studies]) < 0.002  # about .0004; random .047
    from groundstate.tune.samplers.cube import Axis

    for i in range(5):
        distributions = [
            samplers[0].distribution(studies[0], g, f"x{i}", Axis(F(0, 1))) for g in (0, 10)
        ]
        assert (
            abs(distributions[1][0] - centre[i]) < 0.05
            and distributions[1][1] < 0.3 * distributions[0][1]
        )


def test_cem_without_learning_is_random_search() -> None:
    kept = search(CEMSampler(smoothing=1.0, seed=3), branin, 50)
    plain = search(PriorSampler(3), branin, 50)
    assert [t.params for t in kept.trials] == [t.params for t in plain.trials]
    with pytest.raises(DataError, match="elite in"):
        CEMSampler(elite=0.0)


def test_cem_learns_categories() -> None:
    def objective(trial: Any) -> float:
        kind = trial.suggest_categorical("kind", ["a", "b", "c"])
        return {"a": 1.0, "b": 0.0, "c": 2.0}[kind] + trial.suggest_float("x", 0, 1)

    study = search(CEMSampler(seed=0), objective, 100)
    late = [t.params["kind"] for t in study.trials[60:]]
    assert late.count("b") / len(late) > 0.8


def test_sixty_random_draws_hit_the_best_five_percent() -> None:
    chance = 1 - 0.95**60
    assert chance == pytest.approx(0.953930, abs=5e-7)
    u = np.array(
        [
            [PriorSampler(s).key.fold("prior", "x", i).uniform(1)[0] for i in range(60)]
            for s in range(200)
        ]
    )
    assert (u.min(1) < 0.05).mean() == pytest.approx(0.954, abs=0.045)


def test_cube_round_trip() -> None:
    space = {
        "a": F(1e-3, 1e3, log=True),
        "b": optuna.distributions.IntDistribution(1, 100, log=True),
        "c": optuna.distributions.CategoricalDistribution(["x", None, True]),
        "d": F(0.0, 1.0, step=0.25),
        "e": optuna.distributions.CategoricalDistribution([1, 10, 100]),
        "f": optuna.distributions.IntDistribution(0, 8, step=2),
    }
    cube = Cube(space)
    rng = np.random.default_rng(0)
    for u in cube.snap(rng.random((50, 6))):
        setting = cube.setting(u)
        for name, value in setting.items():
            assert space[name]._contains(space[name].to_internal_repr(value))
        np.testing.assert_allclose(cube.point(setting), u, atol=1e-9)
    Z = cube.embed(cube.snap(rng.random((4, 6))))
    assert Z.shape == (4, 8)  # of the unordered categories three columns

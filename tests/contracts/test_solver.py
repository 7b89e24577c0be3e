"""What every solver promises; a registered solver is tested by being there."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from groundstate.energy import (
    BilinearEnergy,
    CentroidEnergy,
    Energy,
    FactorAnalysisEnergy,
    FieldEnergy,
    GaussianMixtureEnergy,
    KernelCodeEnergy,
    KernelLossEnergy,
    KernelMachineEnergy,
    LinearCodeEnergy,
    LinearEnergy,
    LinearGaussianEnergy,
    LinearLossEnergy,
    MixtureDensityEnergy,
    NetClassEnergy,
    ProbabilisticPCAEnergy,
    ProcessEnergy,
    SmootherClassEnergy,
    SmootherEnergy,
    SquaredEnergy,
)
from groundstate.energy.compose.committee import CommitteeClassEnergy, CommitteeMeanEnergy
from groundstate.energy.graphical.by_class import ByClassEnergy
from groundstate.energy.graphical.linear_gaussian_network import LinearGaussianNetworkEnergy
from groundstate.energy.kernels.gaussian_process.inducing import InducingProcessEnergy
from groundstate.energy.kernels.gaussian_process.iterative import IterativeProcessEnergy
from groundstate.energy.kernels.squared import KernelSquaredEnergy
from groundstate.energy.latent.table_mixture import TableMixtureEnergy
from groundstate.energy.linear.bayesian import BayesianLinearEnergy
from groundstate.energy.linear.glm import GLMEnergy
from groundstate.energy.linear.learned_noise import GaussianNoiseEnergy
from groundstate.energy.trees.additive import AdditiveClassEnergy, AdditiveEnergy
from groundstate.energy.trees.boosted import BoostedClassEnergy, BoostedEnergy
from groundstate.energy.trees.branching import BranchingEnergy
from groundstate.energy.trees.leaves import TreeClassEnergy, TreeMeanEnergy
from groundstate.energy.trees.outputs import TreeOutputsEnergy
from groundstate.energy.trees.votes import VoteEnergy
from groundstate.errors import Unsupported
from groundstate.learn import (
    L1,
    L2,
    NLL,
    FunctionNorm,
    History,
    Margin,
    Naive,
    OneVsOne,
    OneVsRest,
    OneVsRestLoss,
    Perceptron,
    PersistentCD,
    Rule,
    SoftMin,
    fit,
)
from groundstate.learn.base import Penalty, Problem
from groundstate.learn.solvers.gp.kernel_ridge import RidgeNorm
from groundstate.math.kernels import RBF, White
from groundstate.math.losses import EpsilonInsensitive, Huber, LogLoss, Quantile
from groundstate.nn.blocks.natural_splines import NaturalSplines
from groundstate.registry import solvers

G = torch.Generator().manual_seed(0)
X = torch.randn(60, 3, generator=G, dtype=torch.float64)
Y = (X[:, 0] > 0).long() + (X[:, 1] > 0.5).long()


def remembering(energy: Any, values: Tensor) -> Energy:
    energy.double().set(X, values, None, energy.kernel)
    smoother: Energy = energy
    return smoother


PROBLEMS: dict[str, tuple[Energy, Rule, Mapping[str, Tensor], Penalty | None]] = {
    "committee": (CommitteeClassEnergy(3, 3), SoftMin(), {"x": X, "y": Y}, None),
    "mean committee": (CommitteeMeanEnergy(3, 2), Naive(), {"x": X, "y": X[:, :2] * 2 + 1}, None),
    "additive classes": (AdditiveClassEnergy(3, 3), SoftMin(), {"x": X, "y": Y}, None),
    "additive": (AdditiveEnergy(3), Naive(), {"x": X, "y": X[:, :1] * 2 + 1}, None),
    "vote": (VoteEnergy(3, 3), SoftMin(), {"x": X, "y": Y}, None),
    "branches": (BranchingEnergy(3, 3, spread=True), SoftMin(), {"x": X, "y": Y}, None),
    "tree": (TreeClassEnergy(3, 3), SoftMin(), {"x": X, "y": Y}, None),
    "tree of labels": (
        TreeOutputsEnergy(3, (3, 2)), SoftMin(), {"x": X, "y": torch.stack([Y, Y % 2], 1)}, None,
    ),
    "tree of means": (TreeMeanEnergy(3, 2), Naive(), {"x": X, "y": X[:, :2] * 2 + 1}, None),
    "boosted classes": (BoostedClassEnergy(3, 3), SoftMin(), {"x": X, "y": Y}, None),
    "boosted values": (BoostedEnergy(3), Naive(), {"x": X, "y": X[:, :1] * 2 + 1}, None),
    "softmax": (LinearEnergy(3, 3), SoftMin(), {"x": X, "y": Y}, L2(1.0)),
    "sparse softmax": (LinearEnergy(3, 3), SoftMin(), {"x": X, "y": Y}, L1(1.0)),
    # zero weights have perceptron loss zero, and only separable rows end at zero
    "perceptron": (LinearEnergy(3, 3, scale=1.0), Perceptron(), {"x": X, "y": X.argmax(1)}, None),
    "hinge": (LinearEnergy(3, 3), OneVsRest(power=1), {"x": X, "y": Y}, L2(1.0, intercept=True)),
    "squared hinge": (LinearEnergy(3, 3), OneVsRest(), {"x": X, "y": Y}, L2(1.0, intercept=True)),
    "best wrong class": (LinearEnergy(3, 3), Margin(), {"x": X, "y": Y}, L2(1.0, intercept=True)),
    "few weights": (LinearEnergy(3, 3), OneVsRest(), {"x": X, "y": Y}, L1(1.0)),
    "net": (NetClassEnergy(3, 3, (4,)), SoftMin(), {"x": X, "y": Y}, None),
    "counts": (GLMEnergy(3, 2), NLL(), {"x": X, "y": (X[:, :2].abs() * 3).round()}, L2(1.0)),
    "noise": (GaussianNoiseEnergy(3), NLL(), {"x": X, "y": X[:, :1] + X[:, 1:2] * X[:, 2:]}, None),
    "one noise": (
        GaussianNoiseEnergy(3, noise="constant"), NLL(),
        {"x": X, "y": X[:, :1] + X[:, 1:2] * X[:, 2:]}, None,
    ),
    "distribution of weights": (
        BayesianLinearEnergy(3), NLL(), {"x": X, "y": X[:, :1] + X[:, 1:2] * X[:, 2:]}, None,
    ),
    "curves": (
        SquaredEnergy(3, net=NaturalSplines([0, 0, 0])), Naive(), {"x": X, "y": X[:, :1].sin()}, None,
    ),
    "least squares": (SquaredEnergy(3, 2), Naive(), {"x": X, "y": X[:, :2] * 2 + 1}, None),
    "lasso": (SquaredEnergy(3, 2), Naive(), {"x": X, "y": X[:, :2] * 2 + 1}, L1(1.0)),
    "ridge": (SquaredEnergy(3, 2), Naive(), {"x": X, "y": X[:, :2] * 2 + 1}, L2(1.0)),
    "huber line": (
        LinearLossEnergy(3, Huber(0.5)), Naive(), {"x": X, "y": X[:, :1] * 2 + 1}, L2(1.0),
    ),
    "quantile line": (
        LinearLossEnergy(3, Quantile(0.3)), Naive(), {"x": X, "y": X[:, :1] * 2 + X[:, 1:2] ** 3},
        L1(1.0),
    ),
    "tube": (
        LinearLossEnergy(3, EpsilonInsensitive(0.2)), Naive(),
        {"x": X, "y": X[:, :1] * 2 + X[:, 1:2] ** 3}, L2(1.0, intercept=True),
    ),
    "kernel tube": (
        KernelLossEnergy(3, RBF(1.0), EpsilonInsensitive(0.2)), Naive(),
        {"x": X, "y": X[:, :1].sin()}, FunctionNorm(1.0),
    ),
    "each against the rest": (
        LinearEnergy(3, 3), OneVsRestLoss(LogLoss()), {"x": X, "y": Y}, L2(1.0),
    ),
    "mixture": (CentroidEnergy(2, 3), NLL(over="x"), {"x": X}, None),
    "kernel machine": (
        KernelMachineEnergy(3, 3, RBF(1.0)), OneVsOne(), {"x": X, "y": Y}, FunctionNorm(1.0),
    ),
    "field": (
        FieldEnergy(X[:5], RBF(1.0) + White(0.5)), Naive(over="y"), {"y": X[:, [0, 1, 0, 1, 2]]}, None,
    ),
    "local mean": (
        remembering(SmootherEnergy(3, 2, RBF(1.0)), X[:, :2]), Naive(over="y"),
        {"x": X, "y": X[:, :2]}, None,
    ),
    "local classes": (
        remembering(SmootherClassEnergy(3, 3, RBF(1.0)), torch.eye(3)[Y]), SoftMin(),
        {"x": X, "y": Y}, None,
    ),
    "process": (
        ProcessEnergy(3, 2, RBF(1.0) + White(0.5)), Naive(over="y"), {"x": X, "y": X[:, :2]}, None,
    ),
    "process by iteration": (
        IterativeProcessEnergy(3, 2, RBF(1.0) + White(0.5)), Naive(over="y"),
        {"x": X, "y": X[:, :2]}, None,
    ),
    "process by points": (
        InducingProcessEnergy(3, 2, RBF(1.0) + White(0.5)), Naive(over="y"),
        {"x": X, "y": X[:, :2]}, None,
    ),
    "kernel ridge": (
        KernelSquaredEnergy(3, 2, RBF(1.0), n=4), Naive(over="y"), {"x": X, "y": X[:, :2]},
        RidgeNorm(0.5),
    ),
    "factors": (LinearGaussianEnergy(3, 1), NLL(over="x"), {"x": X}, None),
    "k-means": (CentroidEnergy(2, 3), Naive(latent="minimise"), {"x": X}, None),
    "gaussians": (GaussianMixtureEnergy(2, 3), NLL(), {"x": X}, None),
    "plane of a kernel": (
        KernelCodeEnergy(3, 1, RBF(1.0)), Naive(latent="minimise"), {"x": X}, None,
    ),
    "plane": (LinearCodeEnergy(3, 1), Naive(latent="minimise"), {"x": X}, None),
    "noise of their own": (FactorAnalysisEnergy(3, 1), NLL(), {"x": X}, None),
    "noisy factors": (ProbabilisticPCAEnergy(3, 1), NLL(), {"x": X}, None),
    "mixture density": (
        MixtureDensityEnergy(3, 1, 1, net=()), NLL(), {"x": X, "y": X[:, :1] + X[:, 1:2] ** 2}, None,
    ),
    "network": (LinearGaussianNetworkEnergy([[], [0], [0]]), NLL(), {"x": X}, None),
    "networks of classes": (
        ByClassEnergy([LinearGaussianNetworkEnergy([[], [0], [0]]) for _ in range(3)]), NLL(over="x"),
        {"x": X, "y": torch.eye(3).double()[Y]}, None,
    ),
    "columns of any kind": (TableMixtureEnergy(2, [0, 0, 0]), NLL(over="x"), {"x": X}, None),
    "bits": (BilinearEnergy(3, 2), PersistentCD(n_chains=8), {"x": (X > 0).double()}, None),
}  # fmt: skip
PAIRS = [(s, p) for s in solvers.names() for p in PROBLEMS]


def parts(name: str, problem: str) -> tuple[Any, Energy, Rule, dict[str, Tensor], Penalty | None]:
    energy, rule, data, penalty = PROBLEMS[problem]
    energy, rule = copy.deepcopy(energy).double(), copy.deepcopy(rule)
    make = solvers[name].make
    assert make is not None
    return make(energy), energy, rule, dict(data), penalty


def theta(energy: Energy) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in energy.parameters()])


def run(
    name: str, problem: str, weight: Tensor | None = None, index: Any = None
) -> tuple[Any, ...]:
    solver, energy, rule, data, penalty = parts(name, problem)
    if index is not None:
        data = {k: v[index] for k, v in data.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an iteration limit is no failure here
        history = fit(
            energy, data, rule, solver, sample_weight=weight, penalty=penalty, random_state=0
        )
    return history, energy


def runs(name: str, problem: str) -> bool:
    solver, energy, rule, data, penalty = parts(name, problem)
    return solver.reason_against(Problem(energy, rule, data, None, penalty)) is None


@pytest.mark.parametrize("name", solvers.names())
def test_every_solver_runs_somewhere(name: str) -> None:
    assert any(runs(name, problem) for problem in PROBLEMS)


@pytest.mark.parametrize(("name", "problem"), PAIRS)
def test_runs_and_says_so_or_refuses_with_a_reason(name: str, problem: str) -> None:
    solver, energy, rule, data, penalty = parts(name, problem)
    reason = solver.reason_against(Problem(energy, rule, data, None, penalty))
    if reason is not None:
        with pytest.raises(Unsupported, match="what would run"):
            fit(energy, data, rule, solver, penalty=penalty)
        return
    before = float(Problem(energy, rule, data, None, penalty).objective())
    history, fitted = run(name, problem)
    assert isinstance(history, History) and history.solver == name and history.n_iter >= 1
    after = float(Problem(fitted, rule, data, None, penalty).objective())
    assert math.isfinite(after)
    if rule.is_objective and name != "SGLD":  # a sampler may go up
        assert after <= before + 1e-9


@pytest.mark.parametrize(("name", "problem"), [p for p in PAIRS if runs(*p)])
def test_same_seed_same_bits(name: str, problem: str) -> None:
    assert torch.equal(theta(run(name, problem)[1]), theta(run(name, problem)[1]))


@pytest.mark.parametrize(("name", "problem"), [p for p in PAIRS if runs(*p)])
def test_weights_are_repetitions_in_any_order(name: str, problem: str) -> None:
    weight = torch.ones(60, dtype=torch.float64)
    weight[::4], weight[1] = 2.0, 0.0
    index = torch.repeat_interleave(torch.arange(60), weight.long())
    index = index[torch.randperm(len(index), generator=torch.Generator().manual_seed(1))]
    weighted, repeated = run(name, problem, weight)[1], run(name, problem, None, index)[1]
    torch.testing.assert_close(theta(weighted), theta(repeated), rtol=2e-3, atol=2e-4)

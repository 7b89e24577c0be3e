"""Which solver learns which energy by which rule, and which objectives are written out for L-BFGS.

Rows name classes by path ("module:class"). An energy and a rule are compared with the names of their
classes and the classes these derive from, so a row is read without importing anything, and what it names
is imported when it is asked. Nothing depends on which modules a program has loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from groundstate.energy.base import Energy
from groundstate.learn.base import Rule
from groundstate.registry import path_of, resolve


@dataclass(frozen=True)
class Serves:
    """``offer`` is for ``rule`` on ``energy``; each is a path, or the class itself."""

    offer: Any
    energy: str | type
    rule: str | type


def serving(rows: Iterable[Serves], energy: Energy, rule: Rule) -> Iterator[Any]:
    """What rows offer for an energy and a rule, the most specific pair first, then in their order."""
    energies, kinds = _ancestry(type(energy)), _ancestry(type(rule))
    found = [
        (energies[row.energy] + kinds[row.rule], row.offer)
        for row in rows
        if row.energy in energies and row.rule in kinds
    ]
    for _, offer in sorted(found, key=lambda pair: pair[0]):
        yield resolve(offer) if isinstance(offer, str) else offer


def _ancestry(kind: type) -> dict[str | type, int]:
    """The classes that a class derives from and their paths, each with its place in the order."""
    return {key: place for place, base in enumerate(kind.__mro__) for key in (base, path_of(base))}


def _table(*rows: tuple[str, ...]) -> tuple[Serves, ...]:
    """A row for every pair of (offer, energies of one module, rules); names begin in their rooms."""
    pairs = []
    for offer, energies, *rules in rows:
        module, _, names = energies.partition(":")
        pairs += [
            Serves(
                f"groundstate.learn.solvers.{offer}",
                f"groundstate.energy.{module}:{name}",
                f"groundstate.learn.rules.{rule}",
            )
            for name in names.split()
            for rule in rules
        ]
    return tuple(pairs)


NAIVE = "naive:Naive"
SOFTMIN = "softmin:SoftMin"
NLL = "softmin:NLL"
PERCEPTRON = "margins.perceptron:Perceptron"
MARGIN = "margins.margin:Margin"
ONE_VS_REST = "margins.one_vs_rest:OneVsRest"
ONE_VS_REST_LOSS = "margins.one_vs_rest:OneVsRestLoss"
ONE_VS_ONE = "margins.one_vs_one:OneVsOne"
PERSISTENT_CD = "contrastive:PersistentCD"

SOLVERS: tuple[Serves, ...] = _table(
    # linear
    ("linear.least_squares:LeastSquares", "basic.squared:SquaredEnergy", NAIVE, SOFTMIN),
    ("lasso.coordinate_descent:CoordinateDescent", "basic.squared:SquaredEnergy", NAIVE, SOFTMIN),
    ("linear.evidence:EvidenceUpdates", "linear.bayesian:BayesianLinearEnergy", NAIVE, SOFTMIN),
    ("glm.irls:IRLS", "linear.glm:GLMEnergy", NAIVE, SOFTMIN),
    ("glm.learned_noise:NoiseScoring", "linear.learned_noise:GaussianNoiseEnergy", NAIVE, SOFTMIN),
    ("svm.tube_numba:TubeDual", "linear.loss:LinearLossEnergy", NAIVE),
    ("svm.interior_numba:TubeInterior", "linear.loss:LinearLossEnergy", NAIVE),
    ("online_numba:OnlineDescent", "linear.loss:LinearLossEnergy", NAIVE),
    ("linear.residuals:ResidualNewton", "linear.loss:LinearLossEnergy", NAIVE),
    ("linear.quantile:QuantileProgram", "linear.loss:LinearLossEnergy", NAIVE),
    ("logistic.sparse:ProximalNewton", "basic.linear:LinearEnergy", SOFTMIN),
    ("logistic.newton:Newton", "basic.linear:LinearEnergy", SOFTMIN),
    ("perceptron_numba:OnlinePerceptron", "basic.linear:LinearEnergy", PERCEPTRON),
    ("online_numba:OnlineDescent", "basic.linear:LinearEnergy", ONE_VS_REST_LOSS),
    ("svm.hinge.l1_numba:SquaredHingeL1", "basic.linear:LinearEnergy", ONE_VS_REST),
    ("svm.dual_coordinate:HingeDual", "basic.linear:LinearEnergy", ONE_VS_REST),
    ("svm.hinge.newton:SquaredHingeNewton", "basic.linear:LinearEnergy", ONE_VS_REST),
    ("svm.crammer_singer:CrammerSinger", "basic.linear:LinearEnergy", MARGIN),
    # kernels and processes
    ("svm.smo.solver:SMO", "kernels.machine:KernelMachineEnergy", ONE_VS_ONE),
    ("svm.smo.tube:TubeSMO", "kernels.loss:KernelLossEnergy", NAIVE),
    ("smoother:Smoothing", "kernels.smoother:SmootherEnergy", NAIVE),
    ("smoother:Smoothing", "kernels.smoother:SmootherClassEnergy", SOFTMIN),
    ("gp.kernel_ridge:KernelLeastSquares", "kernels.squared:KernelSquaredEnergy", NAIVE),
    ("gp.evidence:Evidence", "kernels.gaussian_process.exact:FieldEnergy", NAIVE),
    ("gp.evidence:Conditioning", "kernels.gaussian_process.exact:ProcessEnergy", NAIVE),
    ("gp.inducing:Inducing", "kernels.gaussian_process.inducing:InducingProcessEnergy", NAIVE),
    ("gp.iterative:IterativeConditioning",
     "kernels.gaussian_process.iterative:IterativeProcessEnergy", NAIVE),
    ("gp.laplace:Laplace",
     "kernels.gaussian_process.laplace:LaplaceEnergy LaplaceClassEnergy", SOFTMIN),
    # classes and neighbours
    ("centroids:Centroids", "classes.centroids:CentroidClassEnergy", SOFTMIN),
    ("complement:Complement", "classes.naive_bayes.complement:ComplementClassEnergy", SOFTMIN),
    ("neighbors:Memorise", "neighbors.votes:NeighborEnergy", NAIVE, SOFTMIN),
    ("neighbors:Memorise", "neighbors.index:NeighborIndexEnergy", NAIVE),
    ("metrics.neighborhood:NeighborhoodComponents",
     "neighbors.linear_metric:LinearMetricEnergy", SOFTMIN),
    ("metrics.large_margin:LargeMargin", "neighbors.linear_metric:LinearMetricEnergy", MARGIN),
    ("metrics.relevant_components:RelevantComponents",
     "neighbors.linear_metric:LinearMetricEnergy", NAIVE),
    # trees and committees
    ("trees.solver:GrowTrees", "trees.leaves:TreeMeanEnergy TreeClassEnergy", NAIVE, SOFTMIN),
    ("trees.classes:GrowOutputs", "trees.outputs:TreeOutputsEnergy", NAIVE, SOFTMIN),
    ("trees.branching:GrowBranches", "trees.branching:BranchingEnergy", NAIVE, SOFTMIN),
    ("boosting.newton:HistogramBoosting", "trees.boosted:BoostedEnergy", NAIVE, SOFTMIN),
    ("boosting.newton:HistogramBoosting", "trees.boosted:BoostedClassEnergy", SOFTMIN),
    ("boosting.functional:GradientBooster", "trees.additive:AdditiveEnergy", NAIVE, SOFTMIN),
    ("boosting.functional:GradientBooster", "trees.additive:AdditiveClassEnergy", SOFTMIN),
    ("boosting.ada_boost:AdaBoost", "trees.votes:VoteEnergy", NAIVE, PERCEPTRON, SOFTMIN),
    ("committee:FitMembers",
     "compose.committee:CommitteeMeanEnergy CommitteeClassEnergy", NAIVE, SOFTMIN),
    # hidden variables
    ("latent.boltzmann:BoltzmannSGD", "basic.bilinear:BilinearEnergy", PERSISTENT_CD),
    ("latent.kmeans.lloyd:Lloyd", "basic.centroid:CentroidEnergy", NAIVE),
    ("latent.mixtures.mixture_em:MixtureEM",
     "latent.gaussian_mixture:GaussianMixtureEnergy", SOFTMIN),
    ("latent.factors.eigen_factors:EigenFactors",
     "latent.probabilistic_pca:ProbabilisticPCAEnergy", SOFTMIN),
    ("latent.factors.factor_profile:FactorProfile",
     "latent.probabilistic_pca:FactorAnalysisEnergy", SOFTMIN),
    ("latent.factors.principal_axes:PrincipalAxes", "latent.codes:LinearCodeEnergy", NAIVE),
    ("latent.factors.kernel_axes:KernelAxes", "latent.kernel_codes:KernelCodeEnergy", NAIVE),
    ("latent.embedding.graph:LaplacianAxes", "latent.embedding.graph_map:LaplacianEnergy", NAIVE),
    ("latent.embedding.graph:LocalAlignment", "latent.embedding.graph_map:BarycentreEnergy", NAIVE),
    ("latent.embedding.scaling:ClassicalScaling", "latent.embedding.strain:StrainEnergy", NAIVE),
    ("latent.embedding.scaling:GeodesicScaling", "latent.embedding.strain:GeodesicEnergy", NAIVE),
    ("latent.embedding.smacof:Smacof", "latent.embedding.stress:StressEnergy", NAIVE),
    ("latent.embedding.tsne:NeighborDescent",
     "latent.embedding.neighbor_map:NeighborMapEnergy", NAIVE),
    ("latent.embedding.umap:FuzzyDescent", "latent.embedding.fuzzy_map:FuzzyMapEnergy", NAIVE),
    ("networks.mixture_density:MixtureDensityTraining",
     "networks.mixture_density:MixtureDensityEnergy", NLL),
)  # fmt: skip

# solvers of any energy and rule that they do not refuse, asked after those of the pair
GENERAL: tuple[str, ...] = (
    "groundstate.learn.solvers.closed:Closed",
    "groundstate.learn.solvers.em.em:EM",
    "groundstate.learn.solvers.lbfgs:LBFGS",
    "groundstate.learn.solvers.proximal:Proximal",
    "groundstate.learn.train.stochastic:Stochastic",
)

# objectives with their gradient, which L-BFGS takes instead of automatic differentiation
WRITTEN: tuple[Serves, ...] = _table(
    ("lbfgs_dense:NetworkRows",
     "networks.network:NetworkEnergy NetworkClassEnergy", NAIVE, SOFTMIN),
    ("lbfgs_dense:NetworkRows", "basic.net_class:NetClassEnergy", SOFTMIN),
    ("lbfgs_dense:NetworkRows", "basic.squared:SquaredEnergy", NAIVE),
    ("logistic.lbfgs:SoftmaxRows", "basic.linear:LinearEnergy", SOFTMIN),
)  # fmt: skip

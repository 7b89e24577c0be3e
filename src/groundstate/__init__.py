r"""groundstate: all of machine learning as one energy and three operations on it.

An energy $e(x, y, z; \theta)$ says how badly an observation x, an outcome y and a hidden z fit
together under the parameters θ; low is good. Choosing its form is *parametrise*, choosing θ is
*learn*, and filling in what is not observed is *infer*.

Estimators are imported from here and loaded on first use, so that ``import groundstate`` is quick
and does not import torch; tools are imported from their room (``groundstate.infer``, ...).
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from groundstate.lazy import declared, lazy

if TYPE_CHECKING:
    from groundstate.evaluate import column_profiles as column_profiles
    from groundstate.evaluate import drift as drift
    from groundstate.evaluate import metrics as metrics
    from groundstate.evaluate import partial_dependence as partial_dependence
    from groundstate.evaluate import permutation_importance as permutation_importance
    from groundstate.evaluate import shapley_values as shapley_values
    from groundstate.evaluate.conformal.split_conformal import conformal as conformal
    from groundstate.math import diffusion as diffusion
    from groundstate.math import distances as distances
    from groundstate.math import distributions as distributions
    from groundstate.math import divergences as divergences
    from groundstate.math import graphs as graphs
    from groundstate.math import info as info
    from groundstate.math import kernels as kernels
    from groundstate.math import linalg as linalg
    from groundstate.math import manifold as manifold
    from groundstate.math import neighbors as neighbors
    from groundstate.math import ode as ode
    from groundstate.math import optim as optim
    from groundstate.math import stats as stats
    from groundstate.math import transport as transport
    from groundstate.models import physics as physics
    from groundstate.models import text as text
    from groundstate.models import vision as vision
    from groundstate.models.bayes.bernoulli_nb import BernoulliNB as BernoulliNB
    from groundstate.models.bayes.categorical_nb import CategoricalNB as CategoricalNB
    from groundstate.models.bayes.complement_nb import ComplementNB as ComplementNB
    from groundstate.models.bayes.gaussian_nb import GaussianNB as GaussianNB
    from groundstate.models.bayes.multinomial_nb import MultinomialNB as MultinomialNB
    from groundstate.models.clusters.agglomerative_clustering import (
        AgglomerativeClustering as AgglomerativeClustering,
    )
    from groundstate.models.clusters.dbscan import DBSCAN as DBSCAN
    from groundstate.models.clusters.hdbscan import HDBSCAN as HDBSCAN
    from groundstate.models.clusters.kmeans import KMeans as KMeans
    from groundstate.models.clusters.mini_batch_kmeans import MiniBatchKMeans as MiniBatchKMeans
    from groundstate.models.clusters.soft_kmeans import SoftKMeans as SoftKMeans
    from groundstate.models.clusters.starts import kmeans_parallel as kmeans_parallel
    from groundstate.models.clusters.starts import kmeans_plusplus as kmeans_plusplus
    from groundstate.models.diagnosis import diagnose as diagnose
    from groundstate.models.discriminant.linear_discriminant_analysis import (
        LinearDiscriminantAnalysis as LinearDiscriminantAnalysis,
    )
    from groundstate.models.discriminant.quadratic_discriminant_analysis import (
        QuadraticDiscriminantAnalysis as QuadraticDiscriminantAnalysis,
    )
    from groundstate.models.ensembles.bagging.bagging_classifier import (
        BaggingClassifier as BaggingClassifier,
    )
    from groundstate.models.ensembles.bagging.bagging_regressor import (
        BaggingRegressor as BaggingRegressor,
    )
    from groundstate.models.ensembles.boosting.ada_boost_classifier import (
        AdaBoostClassifier as AdaBoostClassifier,
    )
    from groundstate.models.ensembles.boosting.gradient_boosting_classifier import (
        GradientBoostingClassifier as GradientBoostingClassifier,
    )
    from groundstate.models.ensembles.boosting.gradient_boosting_regressor import (
        GradientBoostingRegressor as GradientBoostingRegressor,
    )
    from groundstate.models.ensembles.boosting.hist_gradient_boosting_classifier import (
        HistGradientBoostingClassifier as HistGradientBoostingClassifier,
    )
    from groundstate.models.ensembles.boosting.hist_gradient_boosting_regressor import (
        HistGradientBoostingRegressor as HistGradientBoostingRegressor,
    )
    from groundstate.models.ensembles.forests.extra_trees_classifier import (
        ExtraTreesClassifier as ExtraTreesClassifier,
    )
    from groundstate.models.ensembles.forests.extra_trees_regressor import (
        ExtraTreesRegressor as ExtraTreesRegressor,
    )
    from groundstate.models.ensembles.forests.random_forest_classifier import (
        RandomForestClassifier as RandomForestClassifier,
    )
    from groundstate.models.ensembles.forests.random_forest_regressor import (
        RandomForestRegressor as RandomForestRegressor,
    )
    from groundstate.models.ensembles.seeds.seed_ensemble_classifier import (
        SeedEnsembleClassifier as SeedEnsembleClassifier,
    )
    from groundstate.models.ensembles.seeds.seed_ensemble_regressor import (
        SeedEnsembleRegressor as SeedEnsembleRegressor,
    )
    from groundstate.models.ensembles.snapshots.snapshot_ensemble_classifier import (
        SnapshotEnsembleClassifier as SnapshotEnsembleClassifier,
    )
    from groundstate.models.ensembles.snapshots.snapshot_ensemble_regressor import (
        SnapshotEnsembleRegressor as SnapshotEnsembleRegressor,
    )
    from groundstate.models.ensembles.stacking.stacking_classifier import (
        StackingClassifier as StackingClassifier,
    )
    from groundstate.models.ensembles.stacking.stacking_regressor import (
        StackingRegressor as StackingRegressor,
    )
    from groundstate.models.ensembles.voting.voting_classifier import (
        VotingClassifier as VotingClassifier,
    )
    from groundstate.models.ensembles.voting.voting_regressor import (
        VotingRegressor as VotingRegressor,
    )
    from groundstate.models.explain import explain as explain
    from groundstate.models.factors.factor_analysis import FactorAnalysis as FactorAnalysis
    from groundstate.models.factors.fast_ica import FastICA as FastICA
    from groundstate.models.factors.incremental_pca import IncrementalPCA as IncrementalPCA
    from groundstate.models.factors.kernel_pca import KernelPCA as KernelPCA
    from groundstate.models.factors.nmf import NMF as NMF
    from groundstate.models.factors.pca import PCA as PCA
    from groundstate.models.factors.probabilistic_pca import ProbabilisticPCA as ProbabilisticPCA
    from groundstate.models.factors.truncated_svd import TruncatedSVD as TruncatedSVD
    from groundstate.models.factors.whitener import Whitener as Whitener
    from groundstate.models.generative.adversarial.conditional_gan import (
        ConditionalGAN as ConditionalGAN,
    )
    from groundstate.models.generative.adversarial.energy_gan import EnergyGAN as EnergyGAN
    from groundstate.models.generative.adversarial.gan import GAN as GAN
    from groundstate.models.generative.adversarial.translation_gan import (
        TranslationGAN as TranslationGAN,
    )
    from groundstate.models.generative.adversarial.wgan import WGAN as WGAN
    from groundstate.models.generative.autoencoders.autoencoder import Autoencoder as Autoencoder
    from groundstate.models.generative.autoencoders.conditional_vae import (
        ConditionalVAE as ConditionalVAE,
    )
    from groundstate.models.generative.autoencoders.contractive_autoencoder import (
        ContractiveAutoencoder as ContractiveAutoencoder,
    )
    from groundstate.models.generative.autoencoders.denoising_autoencoder import (
        DenoisingAutoencoder as DenoisingAutoencoder,
    )
    from groundstate.models.generative.autoencoders.hierarchical_vae import (
        HierarchicalVAE as HierarchicalVAE,
    )
    from groundstate.models.generative.autoencoders.sparse_autoencoder import (
        SparseAutoencoder as SparseAutoencoder,
    )
    from groundstate.models.generative.autoencoders.vae import VAE as VAE
    from groundstate.models.generative.autoencoders.vq_autoencoder import (
        VQAutoencoder as VQAutoencoder,
    )
    from groundstate.models.generative.autoregressive.autoregressive_density import (
        AutoregressiveDensity as AutoregressiveDensity,
    )
    from groundstate.models.generative.autoregressive.made import MADE as MADE
    from groundstate.models.generative.autoregressive.pixel_cnn import PixelCNN as PixelCNN
    from groundstate.models.generative.diffusion.ddpm import DDPM as DDPM
    from groundstate.models.generative.diffusion.latent_diffusion import (
        LatentDiffusion as LatentDiffusion,
    )
    from groundstate.models.generative.diffusion.score_model import ScoreModel as ScoreModel
    from groundstate.models.generative.diffusion.score_sde import ScoreSDE as ScoreSDE
    from groundstate.models.generative.energy.bernoulli_rbm import BernoulliRBM as BernoulliRBM
    from groundstate.models.generative.energy.energy_model import EnergyModel as EnergyModel
    from groundstate.models.generative.flows.cnf import CNF as CNF
    from groundstate.models.generative.flows.flow_matching import FlowMatching as FlowMatching
    from groundstate.models.generative.flows.normalizing_flow import (
        NormalizingFlow as NormalizingFlow,
    )
    from groundstate.models.generative.graphical.discrete_bayesian_network import (
        DiscreteBayesianNetwork as DiscreteBayesianNetwork,
    )
    from groundstate.models.generative.graphical.hidden_markov_model import (
        HiddenMarkovModel as HiddenMarkovModel,
    )
    from groundstate.models.generative.graphical.linear_gaussian_bayesian_network import (
        LinearGaussianBayesianNetwork as LinearGaussianBayesianNetwork,
    )
    from groundstate.models.generative.graphical.markov_random_field import (
        MarkovRandomField as MarkovRandomField,
    )
    from groundstate.models.generative.graphical.sum_product_network import (
        SumProductNetwork as SumProductNetwork,
    )
    from groundstate.models.generative.tables.table_generator import (
        TableGenerator as TableGenerator,
    )
    from groundstate.models.generative.tables.table_mixture import TableMixture as TableMixture
    from groundstate.models.graphs.edge_classifier import EdgeClassifier as EdgeClassifier
    from groundstate.models.graphs.graph_classifier import GraphClassifier as GraphClassifier
    from groundstate.models.graphs.graph_regressor import GraphRegressor as GraphRegressor
    from groundstate.models.graphs.message_sum_graph_classifier import (
        MessageSumGraphClassifier as MessageSumGraphClassifier,
    )
    from groundstate.models.graphs.node_classifier import NodeClassifier as NodeClassifier
    from groundstate.models.kernels.kernel_classifier import KernelClassifier as KernelClassifier
    from groundstate.models.kernels.kernel_regressor import KernelRegressor as KernelRegressor
    from groundstate.models.kernels.kernel_ridge import KernelRidge as KernelRidge
    from groundstate.models.linear.generalised.gamma_regressor import (
        GammaRegressor as GammaRegressor,
    )
    from groundstate.models.linear.generalised.glm import GLM as GLM
    from groundstate.models.linear.generalised.poisson_regressor import (
        PoissonRegressor as PoissonRegressor,
    )
    from groundstate.models.linear.generalised.tweedie_regressor import (
        TweedieRegressor as TweedieRegressor,
    )
    from groundstate.models.linear.least_squares.bayesian_ridge import (
        BayesianRidge as BayesianRidge,
    )
    from groundstate.models.linear.least_squares.gaussian_regressor import (
        GaussianRegressor as GaussianRegressor,
    )
    from groundstate.models.linear.least_squares.linear_regression import (
        LinearRegression as LinearRegression,
    )
    from groundstate.models.linear.least_squares.ridge import Ridge as Ridge
    from groundstate.models.linear.least_squares.ridge_cv import RidgeCV as RidgeCV
    from groundstate.models.linear.least_squares.smoothing_spline_regressor import (
        SmoothingSplineRegressor as SmoothingSplineRegressor,
    )
    from groundstate.models.linear.logistic.logistic_regression import (
        LogisticRegression as LogisticRegression,
    )
    from groundstate.models.linear.logistic.logistic_regression_cv import (
        LogisticRegressionCV as LogisticRegressionCV,
    )
    from groundstate.models.linear.robust.huber_regressor import HuberRegressor as HuberRegressor
    from groundstate.models.linear.robust.quantile_regressor import (
        QuantileRegressor as QuantileRegressor,
    )
    from groundstate.models.linear.sparse.elastic_net import ElasticNet as ElasticNet
    from groundstate.models.linear.sparse.elastic_net_cv import ElasticNetCV as ElasticNetCV
    from groundstate.models.linear.sparse.lasso import Lasso as Lasso
    from groundstate.models.linear.sparse.lasso_cv import LassoCV as LassoCV
    from groundstate.models.linear.stochastic.perceptron import Perceptron as Perceptron
    from groundstate.models.linear.stochastic.sgd_classifier import SGDClassifier as SGDClassifier
    from groundstate.models.linear.stochastic.sgd_regressor import SGDRegressor as SGDRegressor
    from groundstate.models.manifolds.classical_mds import ClassicalMDS as ClassicalMDS
    from groundstate.models.manifolds.isomap import Isomap as Isomap
    from groundstate.models.manifolds.landmark_mds import LandmarkMDS as LandmarkMDS
    from groundstate.models.manifolds.locally_linear_embedding import (
        LocallyLinearEmbedding as LocallyLinearEmbedding,
    )
    from groundstate.models.manifolds.mds import MDS as MDS
    from groundstate.models.manifolds.spectral_embedding import (
        SpectralEmbedding as SpectralEmbedding,
    )
    from groundstate.models.manifolds.tsne import TSNE as TSNE
    from groundstate.models.manifolds.umap import UMAP as UMAP
    from groundstate.models.metrics.itml import ITML as ITML
    from groundstate.models.metrics.lmnn import LMNN as LMNN
    from groundstate.models.metrics.local_metric import LocalMetric as LocalMetric
    from groundstate.models.metrics.locally_adaptive_normal import (
        LocallyAdaptiveNormal as LocallyAdaptiveNormal,
    )
    from groundstate.models.metrics.mahalanobis_transformer import (
        MahalanobisTransformer as MahalanobisTransformer,
    )
    from groundstate.models.metrics.mmc import MMC as MMC
    from groundstate.models.metrics.neighborhood_components_analysis import (
        NeighborhoodComponentsAnalysis as NeighborhoodComponentsAnalysis,
    )
    from groundstate.models.metrics.rca import RCA as RCA
    from groundstate.models.mixtures.bayesian_gaussian_mixture import (
        BayesianGaussianMixture as BayesianGaussianMixture,
    )
    from groundstate.models.mixtures.gaussian_mixture import GaussianMixture as GaussianMixture
    from groundstate.models.mixtures.mixture_model import MixtureModel as MixtureModel
    from groundstate.models.neighbors.k_neighbors_classifier import (
        KNeighborsClassifier as KNeighborsClassifier,
    )
    from groundstate.models.neighbors.k_neighbors_regressor import (
        KNeighborsRegressor as KNeighborsRegressor,
    )
    from groundstate.models.neighbors.kernel_density import KernelDensity as KernelDensity
    from groundstate.models.neighbors.nearest_centroid import NearestCentroid as NearestCentroid
    from groundstate.models.neighbors.nearest_neighbors import NearestNeighbors as NearestNeighbors
    from groundstate.models.neighbors.radius_neighbors_classifier import (
        RadiusNeighborsClassifier as RadiusNeighborsClassifier,
    )
    from groundstate.models.neighbors.radius_neighbors_regressor import (
        RadiusNeighborsRegressor as RadiusNeighborsRegressor,
    )
    from groundstate.models.networks.mixture_density_regressor import (
        MixtureDensityRegressor as MixtureDensityRegressor,
    )
    from groundstate.models.networks.mlp_classifier import MLPClassifier as MLPClassifier
    from groundstate.models.networks.mlp_regressor import MLPRegressor as MLPRegressor
    from groundstate.models.networks.neural_classifier import NeuralClassifier as NeuralClassifier
    from groundstate.models.networks.neural_regressor import NeuralRegressor as NeuralRegressor
    from groundstate.models.networks.pseudo_label_classifier import (
        PseudoLabelClassifier as PseudoLabelClassifier,
    )
    from groundstate.models.networks.tabular_mlp_classifier import (
        TabularMLPClassifier as TabularMLPClassifier,
    )
    from groundstate.models.networks.tabular_mlp_regressor import (
        TabularMLPRegressor as TabularMLPRegressor,
    )
    from groundstate.models.outliers.elliptic_envelope import EllipticEnvelope as EllipticEnvelope
    from groundstate.models.outliers.energy_outlier import EnergyOutlier as EnergyOutlier
    from groundstate.models.outliers.isolation_forest import IsolationForest as IsolationForest
    from groundstate.models.outliers.local_outlier_factor import (
        LocalOutlierFactor as LocalOutlierFactor,
    )
    from groundstate.models.physics.function_regressor import FunctionRegressor as FunctionRegressor
    from groundstate.models.population.many import fit_many as fit_many
    from groundstate.models.processes.gaussian_process_classifier import (
        GaussianProcessClassifier as GaussianProcessClassifier,
    )
    from groundstate.models.processes.gaussian_process_regressor import (
        GaussianProcessRegressor as GaussianProcessRegressor,
    )
    from groundstate.models.representations.clip import CLIP as CLIP
    from groundstate.models.representations.metric_embedding import (
        MetricEmbedding as MetricEmbedding,
    )
    from groundstate.models.representations.sim_clr import SimCLR as SimCLR
    from groundstate.models.sequences.auto_regressor import AutoRegressor as AutoRegressor
    from groundstate.models.sequences.forecaster import Forecaster as Forecaster
    from groundstate.models.sequences.mean_pool_sequence_classifier import (
        MeanPoolSequenceClassifier as MeanPoolSequenceClassifier,
    )
    from groundstate.models.sequences.seq2seq import Seq2Seq as Seq2Seq
    from groundstate.models.sequences.sequence_classifier import (
        SequenceClassifier as SequenceClassifier,
    )
    from groundstate.models.sequences.sequence_regressor import (
        SequenceRegressor as SequenceRegressor,
    )
    from groundstate.models.sequences.sequence_tagger import SequenceTagger as SequenceTagger
    from groundstate.models.svm.linear_svc import LinearSVC as LinearSVC
    from groundstate.models.svm.linear_svr import LinearSVR as LinearSVR
    from groundstate.models.svm.svc import SVC as SVC
    from groundstate.models.svm.svr import SVR as SVR
    from groundstate.models.tables.table import TablePredictor as TablePredictor
    from groundstate.models.text.bag_of_tokens_classifier import (
        BagOfTokensClassifier as BagOfTokensClassifier,
    )
    from groundstate.models.text.columns.text_cnn_classifier import (
        TextCNNClassifier as TextCNNClassifier,
    )
    from groundstate.models.text.columns.text_cnn_regressor import (
        TextCNNRegressor as TextCNNRegressor,
    )
    from groundstate.models.text.language_model import LanguageModel as LanguageModel
    from groundstate.models.text.masked_language_model import (
        MaskedLanguageModel as MaskedLanguageModel,
    )
    from groundstate.models.text.text_classifier import TextClassifier as TextClassifier
    from groundstate.models.text.text_tagger import TextTagger as TextTagger
    from groundstate.models.trees.c45_classifier import C45Classifier as C45Classifier
    from groundstate.models.trees.decision_tree_classifier import (
        DecisionTreeClassifier as DecisionTreeClassifier,
    )
    from groundstate.models.trees.decision_tree_regressor import (
        DecisionTreeRegressor as DecisionTreeRegressor,
    )
    from groundstate.models.trees.id3_classifier import ID3Classifier as ID3Classifier
    from groundstate.models.vision.image_classifier import ImageClassifier as ImageClassifier
    from groundstate.models.vision.linear_image_classifier import (
        LinearImageClassifier as LinearImageClassifier,
    )
    from groundstate.models.vision.object_detector import ObjectDetector as ObjectDetector
    from groundstate.models.vision.segmenter import Segmenter as Segmenter
    from groundstate.nn import architectures as architectures
    from groundstate.store import load as load
    from groundstate.studies import study as study

__version__ = "0.1.0.dev0"

_EXPORTS = declared(__file__)

_ROOMS = (
    "bench",
    "cli",
    "compute",
    "data",
    "energy",
    "errors",
    "evaluate",
    "experiments",
    "infer",
    "learn",
    "math",
    "models",
    "nn",
    "registry",
    "report",
    "store",
    "testing",
    "tune",
)

__all__ = ["__version__", *_EXPORTS, *_ROOMS]


class _Rooms:
    """``import groundstate.vision`` and ``from groundstate.vision import boxes`` find the folder that
    ``groundstate.vision`` is a short name of."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        first, _, rest = fullname.removeprefix(f"{__name__}.").partition(".")
        if not fullname.startswith(f"{__name__}.") or first not in _FOLDERS:
            return None
        from importlib.util import find_spec

        real = ".".join(filter(None, (_EXPORTS[first], first, rest)))
        found = find_spec(real)
        if found is None:
            return None
        folder = found.submodule_search_locations is not None
        loader: Any = _Room(real)
        return ModuleSpec(fullname, loader, is_package=folder)


class _Room:
    """Gives a module that is there under another name."""

    def __init__(self, real: str) -> None:
        self.real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self.real)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # importing writes the short name there


_FOLDERS = frozenset(
    name
    for name, home in _EXPORTS.items()
    if home in ("groundstate.math", "groundstate.models", "groundstate.evaluate")
    and os.path.isfile(os.path.join(__path__[0], home.split(".")[1], name, "__init__.py"))
)
sys.meta_path.insert(0, _Rooms())
lazy(__name__)

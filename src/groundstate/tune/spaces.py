"""The space of settings worth searching, for every estimator of the library, as one table."""

from __future__ import annotations

from typing import Any

from groundstate.errors import Unsupported
from groundstate.tune.space import Choice, Real, Setting, Space, Whole

_PENALTY = Real(1e-4, 1e4, log=True)
_SMALL = Real(1e-6, 1e1, log=True)
_SMOOTHING = Real(1e-3, 1e1, log=True)
_RATE = Real(0.01, 0.5, log=True)
_FOREST: dict[str, Setting] = {
    "max_features": Real(0.1, 1.0),
    "min_samples_leaf": Whole(1, 20, log=True),
}
_TREE: dict[str, Setting] = {
    "max_depth": Whole(1, 20, log=True),
    "min_samples_leaf": Whole(1, 50, log=True),
    "ccp_alpha": Real(1e-6, 1e-1, log=True),
}
_BOOSTING: dict[str, Setting] = {
    "learning_rate": _RATE,
    "n_estimators": Whole(20, 500, log=True),
    "max_depth": Whole(1, 8),
    "subsample": Real(0.4, 1.0),
    "min_samples_leaf": Whole(1, 50, log=True),
}
_HISTOGRAM: dict[str, Setting] = {
    "learning_rate": _RATE,
    "max_iter": Whole(20, 500, log=True),
    "max_leaf_nodes": Whole(4, 128, log=True),
    "min_samples_leaf": Whole(2, 100, log=True),
    "l2_regularization": Real(1e-6, 1e2, log=True),
}
_BAGS: dict[str, Setting] = {
    "n_estimators": Whole(5, 100, log=True),
    "max_features": Real(0.3, 1.0),
}
_NEIGHBORS: dict[str, Setting] = {
    "n_neighbors": Whole(1, 50, log=True),
    "weights": Choice("uniform", "distance"),
    "p": Choice(1, 2),
}
_NETWORK: dict[str, Setting] = {
    "alpha": Real(1e-6, 1e-1, log=True),
    "learning_rate_init": Real(1e-4, 3e-2, log=True),
}
_PERCEPTRONS: dict[str, Setting] = {
    **_NETWORK,
    "hidden_layer_sizes": Choice((32,), (100,), (64, 64)),
    "dropout": Real(0.0, 0.5),
}
_SNAPSHOTS: dict[str, Setting] = {
    "n_snapshots": Whole(5, 30),
    "burn_in": Whole(5, 50, log=True),
    "every": Whole(1, 20, log=True),
}

# keyed by class name; an empty row has nothing to tune
SPACES: dict[str, dict[str, Setting]] = {
    "AdaBoostClassifier": {
        "n_estimators": Whole(10, 300, log=True),
        "learning_rate": Real(0.01, 2.0, log=True),
    },
    "BaggingClassifier": _BAGS,
    "BaggingRegressor": _BAGS,
    "BayesianRidge": {name: Real(1e-8, 1e-2, log=True) for name in ("alpha_1", "lambda_1")},
    "BernoulliNB": {"alpha": _SMOOTHING, "fit_prior": Choice(True, False)},
    "BernoulliRBM": {
        "n_components": Whole(4, 256, log=True),
        "learning_rate": Real(1e-3, 0.3, log=True),
        "n_iter": Whole(5, 50, log=True),
    },
    "C45Classifier": {"cf": Real(0.01, 0.5, log=True), "min_samples_leaf": Whole(1, 20, log=True)},
    "CategoricalNB": {"alpha": _SMOOTHING, "fit_prior": Choice(True, False)},
    "DecisionTreeClassifier": {"criterion": Choice("gini", "entropy"), **_TREE},
    "DecisionTreeRegressor": _TREE,
    "ElasticNet": {"alpha": Real(1e-4, 1e2, log=True), "l1_ratio": Real(0.05, 1.0)},
    "ElasticNetCV": {"l1_ratio": Real(0.05, 1.0)},
    "ExtraTreesClassifier": _FOREST,
    "ExtraTreesRegressor": _FOREST,
    "GLM": {"alpha": _SMALL},
    "GammaRegressor": {"alpha": _SMALL},
    "GaussianMixture": {
        "n_components": Whole(1, 12),
        "covariance_type": Choice("full", "tied", "diag", "spherical"),
        "reg_covar": Real(1e-6, 1e-1, log=True),
    },
    "GaussianNB": {"var_smoothing": Real(1e-12, 1e-1, log=True)},
    "GaussianProcessRegressor": {
        "alpha": Real(1e-8, 1.0, log=True),
        "normalize_y": Choice(True, False),
    },
    "GaussianRegressor": {"noise": Choice("log-linear", "constant")},
    "GradientBoostingClassifier": _BOOSTING,
    "GradientBoostingRegressor": _BOOSTING,
    "HistGradientBoostingClassifier": _HISTOGRAM,
    "HistGradientBoostingRegressor": _HISTOGRAM,
    "ID3Classifier": {},
    "KMeans": {"n_clusters": Whole(2, 20), "init": Choice("k-means++", "random")},
    "KNeighborsClassifier": _NEIGHBORS,
    "KNeighborsRegressor": _NEIGHBORS,
    "KernelClassifier": {"normalize": Choice(True, False)},
    "KernelRegressor": {"normalize": Choice(True, False)},
    "KernelRidge": {
        "alpha": _SMALL,
        "kernel": Choice("rbf", "laplacian"),
        "gamma": Real(1e-4, 1e1, log=True),
    },
    "Lasso": {"alpha": Real(1e-4, 1e2, log=True)},
    "LassoCV": {"eps": Real(1e-4, 1e-1, log=True)},
    "LinearDiscriminantAnalysis": {"solver": Choice("lsqr"), "shrinkage": Real(0.0, 1.0)},
    "LinearRegression": {"fit_intercept": Choice(True, False)},
    "LinearSVC": {"C": _PENALTY, "loss": Choice("squared_hinge", "hinge")},
    "LogisticRegression": {"C": _PENALTY},
    "LogisticRegressionCV": {"fit_intercept": Choice(True, False)},
    "MLPClassifier": _PERCEPTRONS,
    "MLPRegressor": _PERCEPTRONS,
    "MixtureDensityRegressor": {
        "n_components": Whole(1, 10),
        "learning_rate": Real(1e-3, 3e-2, log=True),
        "hidden": Choice((32,), (64,), (64, 64)),
    },
    "MultinomialNB": {"alpha": _SMOOTHING, "fit_prior": Choice(True, False)},
    "NearestNeighbors": {"n_neighbors": Whole(1, 50, log=True), "p": Choice(1, 2)},
    "Perceptron": {
        "penalty": Choice(None, "l2", "l1", "elasticnet"),
        "alpha": Real(1e-7, 1e-1, log=True),
    },
    "NeuralClassifier": _NETWORK,
    "NeuralRegressor": _NETWORK,
    "PoissonRegressor": {"alpha": _SMALL},
    "ProbabilisticPCA": {"n_components": Whole(1, 3)},
    "QuadraticDiscriminantAnalysis": {"reg_param": Real(0.0, 1.0)},
    "RandomForestClassifier": _FOREST,
    "RandomForestRegressor": _FOREST,
    "Ridge": {"alpha": _PENALTY},
    "RidgeCV": {"fit_intercept": Choice(True, False)},
    "SVC": {
        "C": Real(1e-2, 1e3, log=True),
        "gamma": Real(1e-5, 1e1, log=True),
    },
    "SeedEnsembleClassifier": {"n_estimators": Whole(3, 30, log=True)},
    "SeedEnsembleRegressor": {"n_estimators": Whole(3, 30, log=True)},
    "SmoothingSplineRegressor": {"lam": Real(1e-8, 1e4, log=True)},
    "SnapshotEnsembleClassifier": _SNAPSHOTS,
    "SnapshotEnsembleRegressor": _SNAPSHOTS,
    "TweedieRegressor": {"alpha": _SMALL},
    "VotingClassifier": {"voting": Choice("hard", "soft")},
    "VotingRegressor": {},
}

# parameters that mean the same in every estimator that has them and no row of its own
COMMON: dict[str, Setting] = {
    "C": _PENALTY,
    "alpha": _SMALL,
    "gamma": Real(1e-4, 1e1, log=True),
    "learning_rate": Real(1e-4, 1e-1, log=True),
    "learning_rate_init": Real(1e-4, 1e-1, log=True),
    "weight_decay": Real(1e-6, 1e-1, log=True),
    "dropout": Real(0.0, 0.5),
    "n_neighbors": Whole(1, 50, log=True),
    "n_clusters": Whole(2, 20),
    "min_samples_leaf": Whole(1, 50, log=True),
    "max_depth": Whole(1, 20, log=True),
    "l1_ratio": Real(0.05, 1.0),
    "reg_covar": Real(1e-6, 1e-1, log=True),
}


def default_space(estimator: Any) -> Space:
    """The settings of an estimator that are worth searching, with their ranges.

    An estimator of a class without a row of its own gets the common parameters that it has with a
    number as their value. The last step of a pipeline gets its space under its name.

    Examples
    --------
    >>> import groundstate
    >>> default_space(groundstate.SVC()).names
    ['C', 'gamma']
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> default_space(make_pipeline(StandardScaler(), groundstate.Ridge())).names
    ['ridge__alpha']
    """
    if not hasattr(estimator, "get_params"):
        raise Unsupported(
            f"{type(estimator).__name__} has no get_params; pass an estimator with scikit-learn's "
            "contract"
        )
    steps = getattr(estimator, "steps", None)
    if steps:
        name, last = steps[-1]
        inner = default_space(last)
        return Space({f"{name}__{key}": inner[key] for key in inner})
    own = estimator.get_params(deep=False)
    for cls in type(estimator).__mro__:
        if cls.__name__ in SPACES:
            row = SPACES[cls.__name__]
            return Space({key: value for key, value in row.items() if key in own})
    return Space(
        {
            key: value
            for key, value in COMMON.items()
            if isinstance(own.get(key), (int, float)) and not isinstance(own[key], bool)
        }
    )


__all__ = ["COMMON", "SPACES", "default_space"]

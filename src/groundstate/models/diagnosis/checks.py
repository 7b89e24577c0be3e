"""The checks of fitted models without labels; thresholds are those of the field's rules of thumb."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone

from groundstate.learn.diagnose.runs import Finding
from groundstate.learn.solvers.latent.embedding.common import metric_of
from groundstate.math.graphs.paths import geodesic_distances
from groundstate.math.neighbors.graph import neighbors_graph
from groundstate.models.traits import asks_single_columns

F64 = NDArray[np.float64]
Look = Callable[[Any, F64], Finding | None]

SCALES = 100.0  # largest over smallest spread of the columns
FEW = 5.0  # rows for each column
TINY = 0.1  # of an even share of the rows
NOISE = 0.5  # of the rows, in no group
ODD = 0.25  # of the rows, called outliers
SPREAD = 0.01  # between the best two restarts
COLLAPSE = 10.0  # smallest variance in units of reg_covar
HEYWOOD = 1e-4  # noise as a share of the variance
MASS = 0.1  # of eigenvalues below zero
RESTARTS = 4
LONGEST = (0.01, 0.03, 0.1)  # of the edges: those that a short circuit would be among
SHORTER = 0.2  # of the longest path, which edges so long may save
WHOLE = 0.95  # of the pairs: without more edges nothing holds the graph together
SOURCES = 60  # rows that paths are measured from


@dataclass(frozen=True)
class Check:
    """One question to a fitted model, and the attributes and parameters it is answered from."""

    look: Look
    reads: tuple[str, ...]

    def applies(self, model: Any) -> bool:
        return all(hasattr(model, name) for name in self.reads)


CHECKS: list[Check] = []


def check(*reads: str) -> Callable[[Look], Look]:
    """Register a check that reads these attributes of a fitted model."""

    def add(look: Look) -> Look:
        CHECKS.append(Check(look, reads))
        return look

    return add


@check("n_features_in_")
def scales(model: Any, X: F64) -> Finding | None:
    if asks_single_columns(model) or hasattr(model, "whitening_") or X.shape[1] < 2:
        return None
    spread = np.nanstd(X, axis=0)
    spread = spread[spread > 0]
    ratio = float(spread.max() / spread.min()) if len(spread) > 1 else 1.0
    if ratio <= SCALES:
        return None
    return Finding(
        "scales", "the columns have very different spreads, so that the widest decides", ratio,
        SCALES, "scale them first, for example with sklearn.preprocessing.StandardScaler",
    )  # fmt: skip


@check("n_features_in_")
def few_rows(model: Any, X: F64) -> Finding | None:
    ratio = len(X) / X.shape[1]
    if ratio >= FEW:
        return None
    return Finding(
        "few rows", "there are few rows for the number of columns", ratio, FEW,
        "reduce the columns (PCA), take fewer free parameters, or bring more rows",
    )  # fmt: skip


@check("labels_", "cluster_centers_")
def tiny_cluster(model: Any, X: F64) -> Finding | None:
    labels = np.asarray(model.labels_)
    counts = np.bincount(labels[labels >= 0], minlength=len(model.cluster_centers_))
    share = float(counts.min() / (len(labels) / len(counts)))
    if share >= TINY:
        return None
    what = "a cluster is empty" if counts.min() == 0 else "a cluster holds very few rows"
    return Finding(
        "tiny cluster", what, share, TINY, "take fewer clusters, or look at its rows as outliers"
    )


@check("labels_", "min_samples")
def mostly_noise(model: Any, X: F64) -> Finding | None:
    """Of groups by density."""
    share = float(np.mean(np.asarray(model.labels_) == -1))
    if share <= NOISE:
        return None
    knob = "eps" if hasattr(model, "eps") else "min_cluster_size or min_samples"
    return Finding(
        "mostly noise", "most rows are in no group", share, NOISE,
        f"{'raise' if knob == 'eps' else 'lower'} {knob}, scale the columns, or take fewer of them",
    )  # fmt: skip


@check("offset_", "contamination")
def many_outliers(model: Any, X: F64) -> Finding | None:
    own = getattr(model, "negative_outlier_factor_", None)
    share = float(
        np.mean(np.asarray(model.score_samples(X) if own is None else own) < model.offset_)
    )
    if share <= ODD:
        return None
    return Finding(
        "many outliers", "so many rows are a group of their own, not outliers", share, ODD,
        "lower contamination, or describe the rows with more components",
    )  # fmt: skip


@check("weights_", "means_", "n_components")
def tiny_component(model: Any, X: F64) -> Finding | None:
    weights = np.asarray(model.weights_)
    share = float(weights.min() * len(weights))
    if share >= TINY or hasattr(model, "weight_concentration_"):  # a Bayesian one empties them
        return None
    return Finding(
        "tiny component", "a component holds very few rows", share, TINY, "take fewer components"
    )


def _objective(model: Any) -> float:
    return float(model.inertia_ if hasattr(model, "inertia_") else -model.lower_bound_)


@check("random_state", "n_init", "n_iter_")
def restarts(model: Any, X: F64) -> Finding | None:
    if not (hasattr(model, "inertia_") or hasattr(model, "lower_bound_")):
        return None
    mine = _objective(model)
    found = [mine]
    for seed in range(RESTARTS):
        again = clone(model).set_params(random_state=seed)
        found.append(_objective(again.fit(X)))
    best = sorted(found)[:2]
    gap = (mine - best[0]) / max(abs(best[0]), 1e-12)
    if gap <= SPREAD:
        return None
    return Finding(
        "restarts", "other starts end at a better optimum than this fit", gap, SPREAD,
        "raise n_init",
    )  # fmt: skip


@check("covariances_", "reg_covar", "covariance_type")
def collapse(model: Any, X: F64) -> Finding | None:
    covariances = np.asarray(model.covariances_)
    if model.covariance_type in ("full", "tied"):
        least = float(np.linalg.eigvalsh(covariances).min())
    else:
        least = float(covariances.min())
    floor = COLLAPSE * float(model.reg_covar) if not isinstance(model.reg_covar, str) else 0.0
    if least >= floor:
        return None
    return Finding(
        "collapse", "a covariance has shrunk to its regularisation", least, floor,
        "take fewer components, a simpler covariance_type or a larger reg_covar",
    )  # fmt: skip


@check("noise_variance_", "components_", "loglike_")
def heywood(model: Any, X: F64) -> Finding | None:
    noise = np.asarray(model.noise_variance_, np.float64)
    variance = np.nanvar(X, axis=0)
    if noise.ndim != 1 or not (variance > 0).any():
        return None
    share = float((noise[variance > 0] / variance[variance > 0]).min())
    if share >= HEYWOOD:
        return None
    return Finding(
        "Heywood", "a column is explained entirely, which no finite sample shows", share, HEYWOOD,
        "take fewer factors",
    )  # fmt: skip


@check("n_iter_", "max_iter")
def stopped(model: Any, X: F64) -> Finding | None:
    done = getattr(model, "converged_", None)
    if done is None:
        history = getattr(model, "history_", None)
        done = model.n_iter_ < model.max_iter if history is None else history.converged
    if done:
        return None
    return Finding(
        "stopped", "the fit ended at max_iter, before it converged", float(model.n_iter_),
        float(model.max_iter), "raise max_iter or tol",
    )  # fmt: skip


@check("perplexity", "embedding_")
def perplexity(model: Any, X: F64) -> Finding | None:
    most = (len(X) - 1) / 3
    if model.perplexity <= most:
        return None
    return Finding(
        "perplexity", "the perplexity counts more neighbours than the rows can part",
        float(model.perplexity), most, f"take at most {most:.0f}",
    )  # fmt: skip


@check("n_parts_", "dist_matrix_")
def parts(model: Any, X: F64) -> Finding | None:
    if model.n_parts_ == 1:
        return None
    return Finding(
        "parts", "the graph of near rows is in parts, whose distances are made up",
        float(model.n_parts_), 1.0, "raise n_neighbors or radius, or lay out each part alone",
    )  # fmt: skip


@check("n_parts_", "dist_matrix_")
def short_circuit(model: Any, X: F64) -> Finding | None:
    """How much longer the longest path becomes without the longest edges."""
    if model.n_parts_ > 1:  # few edges are left, and each matters
        return None
    metric, params = metric_of(model.energy_.memory)
    graph = neighbors_graph(
        X, model.n_neighbors, model.radius, metric=metric, metric_params=params
    ).tocoo()
    sources = np.arange(0, len(X), max(1, len(X) // SOURCES))
    before = geodesic_distances(graph, sources)
    drop = 0.0
    for share in LONGEST:
        kept = graph.data <= np.quantile(graph.data, 1 - share)
        ends = graph.row[kept], graph.col[kept]
        after = geodesic_distances(csr_array((graph.data[kept], ends), shape=graph.shape), sources)
        there = np.isfinite(after)
        if there.mean() < WHOLE:
            break
        drop = max(drop, 1 - before[there].max() / max(after[there].max(), 1e-300))
    if drop <= SHORTER:
        return None
    return Finding(
        "short circuit", "a few long edges make the longest path much shorter", float(drop), SHORTER,
        "take fewer neighbours or a smaller radius",
    )  # fmt: skip


@check("negative_mass_")
def not_euclidean(model: Any, X: F64) -> Finding | None:
    mass = float(model.negative_mass_)
    if mass <= MASS:
        return None
    return Finding(
        "not Euclidean", "a part of the distances fits into no Euclidean space", mass, MASS,
        "use MDS with metric_mds=False, or add_constant=True",
    )  # fmt: skip

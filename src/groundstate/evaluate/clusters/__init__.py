"""Judging clusters, and how many there are."""

from groundstate.evaluate.clusters.select import ClusterTable, select_n_clusters
from groundstate.evaluate.clusters.silhouette import silhouette_samples, silhouette_score

__all__ = ["ClusterTable", "select_n_clusters", "silhouette_samples", "silhouette_score"]

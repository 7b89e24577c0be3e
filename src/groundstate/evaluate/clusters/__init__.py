"""Judging clusters, and how many there are."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.evaluate.clusters.select import ClusterTable as ClusterTable
    from groundstate.evaluate.clusters.select import select_n_clusters as select_n_clusters
    from groundstate.evaluate.clusters.silhouette import silhouette_samples as silhouette_samples
    from groundstate.evaluate.clusters.silhouette import silhouette_score as silhouette_score

lazy(__name__)

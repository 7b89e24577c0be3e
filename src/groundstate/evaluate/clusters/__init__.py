"""Judging clusters, and how many there are."""

from groundstate.evaluate.clusters.select import ClusterTable as ClusterTable
from groundstate.evaluate.clusters.select import select_n_clusters as select_n_clusters
from groundstate.evaluate.clusters.silhouette import silhouette_samples as silhouette_samples
from groundstate.evaluate.clusters.silhouette import silhouette_score as silhouette_score

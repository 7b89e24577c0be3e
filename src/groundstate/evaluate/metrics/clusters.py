"""Scores of clusterings under scikit-learn's names, which are its functions.

With the true groups: `adjusted_rand_score`, `rand_score`, `adjusted_mutual_info_score`,
`normalized_mutual_info_score`, `mutual_info_score`, `homogeneity_score`, `completeness_score`,
`v_measure_score`, `fowlkes_mallows_score`. Without: `silhouette_score`, `davies_bouldin_score`,
`calinski_harabasz_score`. Silhouettes of many rows in bounded memory are
``groundstate.evaluate.clusters.silhouette``.

>>> from groundstate import metrics
>>> metrics.adjusted_rand_score([0, 0, 1, 1], [1, 1, 0, 0])
1.0
"""

from __future__ import annotations

from sklearn.metrics import adjusted_mutual_info_score as adjusted_mutual_info_score
from sklearn.metrics import adjusted_rand_score as adjusted_rand_score
from sklearn.metrics import calinski_harabasz_score as calinski_harabasz_score
from sklearn.metrics import completeness_score as completeness_score
from sklearn.metrics import davies_bouldin_score as davies_bouldin_score
from sklearn.metrics import fowlkes_mallows_score as fowlkes_mallows_score
from sklearn.metrics import homogeneity_score as homogeneity_score
from sklearn.metrics import mutual_info_score as mutual_info_score
from sklearn.metrics import normalized_mutual_info_score as normalized_mutual_info_score
from sklearn.metrics import rand_score as rand_score
from sklearn.metrics import silhouette_score as silhouette_score
from sklearn.metrics import v_measure_score as v_measure_score

r"""Say what may be wrong with a fitted model of unlabelled rows.

Every check states what it reads of the model; it runs where the model has that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from groundstate.learn.diagnose.runs import Diagnosis, Finding
from groundstate.models.arrays import unwrap
from groundstate.models.diagnosis import games as games
from groundstate.models.diagnosis import generators as generators
from groundstate.models.diagnosis.checks import CHECKS


def diagnose(model: Any, X: Any) -> Diagnosis:
    """Findings about a fitted clusterer, mixture, factor model, map, metric or generator.

    Found are: columns of very different scales, few rows for the columns, empty or tiny clusters,
    restarts that end at different optima, collapsed covariances, Heywood cases, a stop before
    convergence, graphs in parts or with short circuits, a perplexity too large for the rows,
    distances that no Euclidean map has, modes that a generator forgot, a discriminator that has won,
    codes that say nothing, chains that ran away, noise levels too far apart.

    Parameters
    ----------
    model : fitted estimator
    X : the rows it was fitted to; NaN are left out where it takes them

    Returns
    -------
    Diagnosis
        Findings with number, threshold and advice; empty when nothing is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import KMeans
    >>> from groundstate.models.diagnosis import diagnose
    >>> X = np.random.default_rng(0).normal(size=(100, 2)) * [1.0, 1000.0]
    >>> diagnose(KMeans(2, random_state=0).fit(X), X).names
    ('scales',)
    """
    check_is_fitted(model)
    if hasattr(model, "coding_"):  # of a generator, rows as it sees them
        rows = model._rows(X)[0].cpu().numpy()
    else:
        rows = check_array(unwrap(X)[0], accept_sparse=False, ensure_all_finite="allow-nan")
    rows = np.asarray(rows, np.float64)
    findings: Iterable[Finding | None] = (c.look(model, rows) for c in CHECKS if c.applies(model))
    return Diagnosis(tuple(found for found in findings if found is not None))

"""Documents of a topic model: what scikit-learn's latent Dirichlet allocation does not offer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from groundstate.compute.random import Key


def sample_documents(
    model: Any, n_samples: int = 1, length: int = 100, random_state: Any = None
) -> NDArray[np.int64]:
    r"""Draw documents from a fitted ``sklearn.decomposition.LatentDirichletAllocation``.

    .. math:: \theta \sim \operatorname{Dir}(\alpha),\quad z_t \sim \theta,\quad
              w_t \sim \beta_{z_t}

    Parameters
    ----------
    model : fitted LatentDirichletAllocation
    n_samples : documents
    length : words of each
    random_state : the seed

    Returns
    -------
    counts of the words, ``(n_samples, n_features)``, as the model was fitted to

    Examples
    --------
    >>> from sklearn.decomposition import LatentDirichletAllocation
    >>> X = np.array([[5, 4, 0, 0], [4, 6, 1, 0], [0, 0, 5, 5], [0, 1, 4, 6]])
    >>> lda = LatentDirichletAllocation(2, random_state=0).fit(X)
    >>> sample_documents(lda, 3, length=10, random_state=0).sum(1).tolist()
    [10, 10, 10]
    """
    check_is_fitted(model, "components_")
    if n_samples < 1 or length < 0:
        raise ValueError(f"n_samples >= 1 and length >= 0 are needed, got {n_samples} and {length}")
    rng = Key.of(random_state).numpy()
    topics = model.components_ / model.components_.sum(1, keepdims=True)  # (k, words)
    theta = rng.dirichlet(np.full(len(topics), model.doc_topic_prior_), n_samples)
    p = theta @ topics
    return np.stack([rng.multinomial(length, row / row.sum()) for row in p]).astype(np.int64)

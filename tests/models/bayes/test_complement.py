"""ComplementNB beyond parity: weights, missing counts and refusals."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import ComplementNB as Peer

from groundstate import ComplementNB
from groundstate.errors import Unsupported

rng = np.random.default_rng(0)
P = np.array([[6, 3, 1, 1, 1], [1, 3, 6, 1, 1], [1, 1, 1, 3, 6]], float)
P /= P.sum(1, keepdims=True)
LABELS = rng.choice(3, 400, p=[0.6, 0.37, 0.03])
WORDS = np.array([rng.multinomial(4, P[c]) for c in LABELS]).astype(float)


@pytest.mark.parametrize("norm", [False, True])
def test_weights_are_repetitions_in_any_order(norm) -> None:
    weight = np.arange(len(WORDS)) % 3
    index = rng.permutation(np.repeat(np.arange(len(WORDS)), weight))
    weighted = ComplementNB(norm=norm).fit(WORDS, LABELS, sample_weight=weight)
    repeated = ComplementNB(norm=norm).fit(WORDS[index], LABELS[index])
    np.testing.assert_allclose(weighted.feature_log_prob_, repeated.feature_log_prob_, rtol=1e-12)
    np.testing.assert_allclose(weighted.feature_all_, repeated.feature_all_)


def test_attributes_are_scikit_learn_s() -> None:
    ours, peer = ComplementNB().fit(WORDS, LABELS), Peer().fit(WORDS, LABELS)
    for name in ("feature_all_", "feature_count_", "class_count_", "class_log_prior_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(peer, name), rtol=1e-12)
    one = np.zeros(len(WORDS), int)
    np.testing.assert_allclose(
        ComplementNB().fit(WORDS, one).feature_log_prob_, Peer().fit(WORDS, one).feature_log_prob_
    )


def test_a_missing_count_adds_nothing() -> None:
    model = ComplementNB().fit(WORDS, LABELS)
    hole, zero = WORDS[:5].copy(), WORDS[:5].copy()
    hole[:, 2], zero[:, 2] = np.nan, 0.0
    expected = model.predict_proba(zero)
    np.testing.assert_allclose(model.predict_proba(hole), expected)
    np.testing.assert_allclose(model.predict_proba(sp.csr_matrix(hole)), expected)
    holed = WORDS.copy()
    holed[rng.uniform(size=WORDS.shape) < 0.1] = np.nan
    learned = ComplementNB().fit(holed, LABELS)
    np.testing.assert_allclose(learned.feature_log_prob_, model.feature_log_prob_, atol=0.2)


def test_partial_fit_is_fit_on_all_rows() -> None:
    whole, parts = ComplementNB().fit(WORDS, LABELS), ComplementNB()
    for piece in np.array_split(np.arange(len(WORDS)), 5):
        parts.partial_fit(WORDS[piece], LABELS[piece], classes=[0, 1, 2])
    np.testing.assert_allclose(parts.feature_log_prob_, whole.feature_log_prob_, rtol=1e-12)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="Negative values"):
        ComplementNB().fit(-WORDS, LABELS)
    with pytest.raises(ValueError, match="one entry per feature"):
        ComplementNB(alpha=[1.0, 2.0]).fit(WORDS, LABELS)
    with pytest.raises(ValueError, match="norm"):
        ComplementNB(norm=2).fit(WORDS, LABELS)
    with pytest.raises(Unsupported, match="no distribution of rows"):
        ComplementNB().fit(WORDS, LABELS).sample(3)

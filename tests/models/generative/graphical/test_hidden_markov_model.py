"""Hidden Markov models: the umbrella world, listing of paths, EM, forms of sequences."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import groundstate
from groundstate import HiddenMarkovModel
from groundstate.compute.rows import Ragged
from groundstate.errors import DataError, ShapeError

A = np.array([[0.7, 0.3], [0.3, 0.7]])
B = np.array([[0.1, 0.9], [0.8, 0.2]])


def umbrella() -> HiddenMarkovModel:
    return HiddenMarkovModel.from_parameters([0.5, 0.5], A, emissionprob=B)


def gaussian(**settings: Any) -> HiddenMarkovModel:
    return HiddenMarkovModel.from_parameters(
        [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], means=[[0.0, 0.0], [3.0, 1.0]],
        covars=[[1.0, 1.0], [0.5, 2.0]], **settings,
    )  # fmt: skip


def test_umbrella() -> None:
    model, x = umbrella(), np.array([[1], [1], [0]])
    np.testing.assert_allclose(model.filter(x)[:, 0], [0.818182, 0.883357, 0.190668], atol=5e-7)
    assert model.score(x) == pytest.approx(-2.116562, abs=5e-7)
    assert model.predict(x).tolist() == [0, 0, 1]
    assert model.smooth(x[:2])[0, 0] == pytest.approx(0.883357, abs=5e-7)


def test_answers_are_listing_of_paths() -> None:
    model = umbrella()
    x = np.array([[1], [0], [0], [1]])
    paths = np.array(list(itertools.product([0, 1], repeat=4)))
    p = np.array([0.5 * np.prod(A[z[:-1], z[1:]]) * np.prod(B[z, x[:, 0]]) for z in paths])
    assert model.score_samples(x)[0] == pytest.approx(np.log(p.sum()))
    np.testing.assert_allclose(
        model.predict_proba(x)[:, 1], [(p * paths[:, t]).sum() / p.sum() for t in range(4)]
    )
    log_p, best = model.decode(x)
    assert best.tolist() == paths[p.argmax()].tolist() and log_p[0] == pytest.approx(
        np.log(p.max())
    )
    assert model.energy(x, z=paths[3])[0] == pytest.approx(-np.log(p[3]))


def test_forms_of_sequences() -> None:
    model = gaussian()
    X = model.sample(3, 5, random_state=0)
    one = model.score_samples(X)
    np.testing.assert_allclose(model.score_samples(list(X)), one)
    np.testing.assert_allclose(model.score_samples(X.reshape(15, 2), [5, 5, 5]), one)
    np.testing.assert_allclose(model.score_samples(Ragged.of(list(X), torch.float64)), one)
    assert model.predict(X).shape == (3, 5)
    assert model.predict(X.reshape(15, 2), [5, 5, 5]).shape == (15,)
    uneven = [X[0], X[1][:2]]
    assert [len(z) for z in model.predict(uneven)] == [5, 2]
    assert model.score_samples(uneven)[1] == pytest.approx(model.score_samples(X[1][:2])[0])
    with pytest.raises(ShapeError, match="add up to 14"):
        model.score_samples(X.reshape(15, 2), [5, 5, 4])
    with pytest.raises(ValueError, match="expecting 2 features"):
        model.score(np.zeros((4, 3)))


def test_missing_steps_say_nothing() -> None:
    model = umbrella()
    x = np.array([[1.0], [np.nan], [0.0]])
    both = [np.array([[1.0], [k], [0.0]]) for k in (0, 1)]
    truth = np.logaddexp(*(model.score(v) for v in both))
    assert model.score(x) == pytest.approx(truth)
    assert model.impute(x)[1, 0] in (0, 1) and model.impute(x)[0, 0] == 1
    with pytest.raises(DataError, match="as a whole"):
        gaussian().score(np.array([[1.0, np.nan], [0.0, 0.0]]))
    X = gaussian().sample(30, 40, random_state=0)
    gaps = X.copy()
    gaps[np.random.default_rng(0).random((30, 40)) < 0.1] = np.nan
    found = HiddenMarkovModel(2, random_state=0).fit(gaps)
    assert (np.diff(found.lower_bounds_) > -1e-8).all()
    np.testing.assert_allclose(found.means_, [[0, 0], [3, 1]], atol=0.25)


@pytest.mark.parametrize(
    "settings",
    [{}, {"covariance_type": "full"}, {"covariance_type": "tied"}, {"covariance_type": "spherical"},
     {"emission": "gmm"}],
)  # fmt: skip
def test_baum_welch_rises(settings: dict[str, Any]) -> None:
    X, z = gaussian().sample(25, 50, return_latent=True, random_state=1)
    model = HiddenMarkovModel(2, random_state=0, reg_covar=0.0, **settings).fit(X)
    assert (np.diff(model.lower_bounds_) > -1e-8).all() and model.converged_
    assert (model.predict(X) == z).mean() > 0.95
    np.testing.assert_allclose(model.transmat_.sum(1), 1)


def test_symbols_are_learned() -> None:
    true = HiddenMarkovModel.from_parameters(
        [0.5, 0.5], [[0.95, 0.05], [0.1, 0.9]], emissionprob=[[0.8, 0.1, 0.1], [0.1, 0.2, 0.7]]
    )
    X = true.sample(60, 80, random_state=0)
    model = HiddenMarkovModel(2, emission="categorical", n_init=3, random_state=0).fit(X)
    assert model.score(X) >= true.score(X) - 0.05
    order = np.argsort(-model.emissionprob_[:, 0])
    np.testing.assert_allclose(model.emissionprob_[order], true.emissionprob_, atol=0.06)
    np.testing.assert_allclose(model.transmat_[np.ix_(order, order)], true.transmat_, atol=0.04)
    with pytest.raises(DataError, match="whole numbers"):
        HiddenMarkovModel(emission="categorical").fit([np.array([[0.5]])])
    with pytest.raises(DataError, match="symbol 7"):
        model.score(np.array([[7]]))


STARTPROB = [0.501791488, 0.498208512]
TRANSMAT = [[0.315407341, 0.684592659], [0.414664508, 0.585335492]]
EMISSIONPROB = [[0.777603708, 0.222396292], [0.183744219, 0.816255781]]


def test_one_step_of_em_is_that_of_hmmlearn() -> None:
    # hmmlearn 0.3.3: CategoricalHMM(2, n_iter=1, init_params="") from these numbers on [0,1,1,0,1],[1,0]
    X, lengths = np.array([[0], [1], [1], [0], [1], [1], [0]]), [5, 2]
    model = HiddenMarkovModel(
        2, emission="categorical", startprob_init=[0.6, 0.4], transmat_init=[[0.7, 0.3], [0.4, 0.6]],
        emissionprob_init=[[0.9, 0.1], [0.2, 0.8]], max_iter=1, tol=0.0,
    ).fit(X, lengths)  # fmt: skip
    np.testing.assert_allclose(model.startprob_, STARTPROB, atol=1e-8)
    np.testing.assert_allclose(model.transmat_, TRANSMAT, atol=1e-8)
    np.testing.assert_allclose(model.emissionprob_, EMISSIONPROB, atol=1e-8)


def test_weights_order_and_storage(tmp_path: Path) -> None:
    X = gaussian().sample(12, 20, random_state=0)
    w = np.arange(12) % 3
    one = HiddenMarkovModel(2, max_iter=5, tol=0.0, random_state=0).fit(X, sample_weight=w)
    two = HiddenMarkovModel(2, max_iter=5, tol=0.0, random_state=0).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(one.means_, two.means_, atol=1e-8)
    back = groundstate.load(one.save(tmp_path / "model.gs"))
    assert back.score(X) == one.score(X)
    np.testing.assert_array_equal(
        back.sample(2, 3, random_state=0), one.sample(2, 3, random_state=0)
    )
    paths = one.infer({"x": X}, "z", "sample", n=2, random_state=0)
    assert len(paths) == 2 and paths[0].shape == (12, 20)


def test_topics_draw_documents() -> None:
    from sklearn.decomposition import LatentDirichletAllocation

    from groundstate.models.generative.graphical.topics import sample_documents

    X = np.array([[5, 4, 0, 0], [4, 6, 1, 0], [0, 0, 5, 5], [0, 1, 4, 6]] * 5)
    lda = LatentDirichletAllocation(2, random_state=0).fit(X)
    drawn = sample_documents(lda, 2000, length=10, random_state=0)
    assert drawn.shape == (2000, 4) and (drawn.sum(1) == 10).all()
    topics = lda.components_ / lda.components_.sum(1, keepdims=True)
    np.testing.assert_allclose(drawn.mean(0) / 10, topics.mean(0), atol=0.03)
    with pytest.raises(ValueError, match="n_samples"):
        sample_documents(lda, 0)

"""CLIP: the table of similarities, its two cross-entropies, zero-shot classes and retrieval."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, logsigmoid, normalize

import groundstate
from groundstate import CLIP
from groundstate.data import make_captions
from groundstate.energy.networks.similarity import SimilarityEnergy
from groundstate.energy.spaces import Real
from groundstate.errors import DataError, ShapeError
from groundstate.learn.rules.views import PairedViews

COLOURS = np.array(["red", "green", "blue"])
SMALL: dict[str, Any] = {
    "n_components": 8, "text_params": {"dim": 16, "layers": 1, "heads": 2}, "template": "a {c} circle",
    "lr": 5e-3, "batch_size": 40, "random_state": 0,
}  # fmt: skip


def pair_energy(scale: float = 10.0, bias: float | None = None) -> SimilarityEnergy:
    return SimilarityEnergy(Real(4), Real(4), nn.Identity(), nn.Identity(), scale, bias)


def loss(q: Any, k: Any, scale: float = 10.0, kind: str = "softmax", bias: Any = None) -> Any:
    return PairedViews(kind)(pair_energy(scale, bias).to(q.dtype), {"x": q, "y": k}).loss


def codes(n: int, seed: int = 0) -> Any:
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n, 4, generator=g, dtype=torch.float64)


# --- the rule ------------------------------------------------------------------------------


def test_the_loss_is_the_mean_of_two_cross_entropies() -> None:
    q, k = codes(6, 0), codes(6, 1)
    table = 10 * normalize(q, dim=1) @ normalize(k, dim=1).T
    own = torch.arange(6)
    wanted = 0.5 * (
        cross_entropy(table, own, reduction="none") + cross_entropy(table.T, own, reduction="none")
    )
    assert torch.allclose(loss(q, k).detach(), wanted)
    assert torch.allclose(loss(q, k).detach(), loss(k, q).detach())  # x and y may be swapped


def test_codes_that_say_nothing_lose_log_n_and_aligned_ones_nothing() -> None:
    same = torch.ones(7, 4, dtype=torch.float64) * torch.arange(1, 8)[:, None]
    assert torch.allclose(loss(same, same).detach(), torch.full((7,), math.log(7)).double())
    eye = torch.eye(4, dtype=torch.float64)
    assert float(loss(eye, eye, 100.0).detach().max()) < 1e-40
    spread = torch.randn(2000, 256, generator=torch.Generator().manual_seed(0))
    energy = SimilarityEnergy(Real(256), Real(256), nn.Identity(), nn.Identity(), 1.0)
    found = PairedViews()(energy, {"x": spread, "y": spread.roll(1, 0)}).loss.mean()
    assert abs(float(found.detach()) - math.log(2000)) < 0.01  # of random pairs


def test_the_sigmoid_judges_each_cell_alone() -> None:
    q, k = codes(5, 2), codes(5, 3)
    table = 10 * normalize(q, dim=1) @ normalize(k, dim=1).T - 3.0
    sign = 2 * torch.eye(5, dtype=torch.float64) - 1
    wanted = -logsigmoid(sign * table).sum(1)
    assert torch.allclose(loss(q, k, kind="sigmoid", bias=-3.0).detach(), wanted)


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_gradients(kind: str) -> None:
    energy = pair_energy(5.0, -1.0).double()

    def of(q: Any, k: Any, s: Any) -> Any:
        energy.log_scale = nn.Parameter(s.detach())
        del energy.log_scale
        energy.log_scale = s  # type: ignore[assignment]
        return PairedViews(kind)(energy, {"x": q, "y": k}).loss

    s = torch.tensor(1.2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        of, (codes(4, 4).requires_grad_(), codes(4, 5).requires_grad_(), s)
    )


def test_a_pair_twice_in_a_batch_is_one_pair() -> None:
    q, k = codes(4, 6), codes(4, 7)
    twice = torch.tensor([0, 1, 1, 2, 3])
    assert torch.allclose(loss(q[twice], k[twice]).detach(), loss(q, k).detach()[twice])


def test_the_scale_stays_below_a_hundred() -> None:
    energy = pair_energy(100.0)
    with torch.no_grad():
        energy.log_scale += 1.0
    PairedViews().project(energy)
    assert abs(float(energy.scale.detach()) - 100) < 1e-3
    with pytest.raises(ValueError, match="at most 100"):
        pair_energy(101.0)
    with pytest.raises(ValueError, match="loss must be one of"):
        PairedViews("hinge")


# --- the estimator -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted() -> tuple[CLIP, Any, list[str], Any]:
    X, captions, factors = make_captions(120, random_state=0)
    return CLIP(max_epochs=8, **SMALL).fit(X, captions), X, captions, factors


def test_similarity_is_a_softmax_of_a_hundred_cosines(fitted: Any) -> None:
    model, X, _, _ = fitted
    texts = ["a red circle", "a blue square", "a green triangle"]
    found = model.similarity(X[:9], texts)
    cosine = model.transform(X[:9]) @ model.encode_text(texts).T
    power = np.exp(100 * (cosine - cosine.max(1, keepdims=True)))
    assert np.allclose(found, power / power.sum(1, keepdims=True), atol=1e-5)
    assert np.allclose(found.sum(1), 1, atol=1e-6)
    codes = torch.tensor([[1.0, 0.0]])
    two = torch.tensor([[0.30, math.sqrt(1 - 0.09)], [0.25, math.sqrt(1 - 0.0625)]])
    shares = model._shares(codes, two, 100.0)[0].tolist()  # cosines .30 and .25
    assert np.allclose(shares, [0.99331, 0.00669], atol=5e-6)


def test_codes_have_length_one_and_energies_are_scaled_cosines(fitted: Any) -> None:
    model, X, captions, _ = fitted
    assert np.allclose(np.linalg.norm(model.transform(X), axis=1), 1, atol=1e-5)
    cosine = (model.transform(X) * model.encode_text(captions)).sum(1)
    assert np.allclose(model.energy(X, captions), -model.scale_ * cosine, atol=1e-4)
    x = torch.from_numpy(X[:3])
    assert isinstance(model.transform(x), torch.Tensor)
    assert 0 < model.scale_ <= 100


def test_zero_shot_and_classes_added_later(fitted: Any, tmp_path: Any) -> None:
    model, X, _, factors = fitted
    right = COLOURS[factors[:, 0]]
    assert (model.predict(X, COLOURS) == right).mean() > 0.9
    texts = {c: [f"a {c} {s}" for s in ("circle", "square", "triangle")] for c in COLOURS}
    assert (model.predict(X, texts) == right).mean() > 0.9
    proba = model.predict_proba(X, COLOURS)
    assert (COLOURS[proba.argmax(1)] == model.predict(X, COLOURS)).all()
    before = {k: v.clone() for k, v in model.energy_.state_dict().items()}
    loaded = groundstate.load(model.save(tmp_path / "clip.gs"))
    for c in COLOURS:
        loaded.add_class(c)
    assert loaded.classes_.tolist() == COLOURS.tolist()
    assert (loaded.predict(X) == model.predict(X, COLOURS)).all()
    assert all(torch.equal(before[k], v) for k, v in loaded.energy_.state_dict().items())
    again = groundstate.load(loaded.save(tmp_path / "again.gs"))
    assert (again.predict(X) == loaded.predict(X)).all()


def test_retrieval_both_ways(fitted: Any) -> None:
    model, X, captions, _ = fitted
    at, cosine = model.retrieve(["a red circle"], X, k=5)
    assert at.shape == cosine.shape == (1, 5) and (np.diff(cosine[0]) <= 0).all()
    assert all("red" in captions[i] for i in at[0])
    at, _ = model.retrieve(X[:20], sorted(set(captions)), k=1)
    found = np.array(sorted(set(captions)))[at[:, 0]]
    assert (
        np.mean([a.split()[1] == b.split()[1] for a, b in zip(found, captions, strict=False)]) > 0.9
    )
    assert model.score(X, captions) > 0.5 > 0.2 > model.score(X, captions[::-1])
    assert model.score(X, captions, k=3) >= model.score(X, captions)


def test_what_is_wrong_is_said(fitted: Any) -> None:
    model, X, captions, _ = fitted
    with pytest.raises(ShapeError, match="X has 120 rows, y has 3"):
        CLIP(**SMALL).fit(X, captions[:3])
    with pytest.raises(DataError, match="y of CLIP are texts"):
        CLIP(**SMALL).fit(X, np.arange(120))
    with pytest.raises(ValueError, match="requires y"):
        CLIP(**SMALL).fit(X)
    with pytest.raises(ValueError, match="at least 2"):
        CLIP(**SMALL).fit(X[:1], captions[:1])
    with pytest.raises(ValueError, match="no classes to choose from"):
        model.predict(X)
    with pytest.raises(DataError, match="no place"):
        CLIP(**{**SMALL, "template": "a dog"}, max_epochs=1).fit(X, captions).predict(X, ["cat"])
    with pytest.raises(DataError, match="k must lie between"):
        model.retrieve(captions, X[:3], k=4)
    with pytest.raises(ValueError, match="energies of pairs"):
        model.energy(X)
    with pytest.raises(ShapeError, match="codes \\(B, k\\) of one length"):
        CLIP(nn.Sequential(nn.Flatten(), nn.Linear(768, 5)), **SMALL).fit(X, captions)


def test_other_encoders_and_losses() -> None:
    from groundstate.nn.blocks.bags import BagOfTokens

    X, captions, factors = make_captions(90, random_state=1)
    model = CLIP(
        text_encoder="gru_lm", loss="sigmoid",
        **{**SMALL, "text_params": {"dim": 8, "hidden": 8}}, max_epochs=12,
    ).fit(X, captions)  # fmt: skip
    assert (model.predict(X, COLOURS) == COLOURS[factors[:, 0]]).mean() > 0.6
    assert model.energy_.bias is not None

    def bag(vocabulary: int, out_features: int) -> nn.Module:
        made = BagOfTokens(vocabulary, out_features)
        nn.init.normal_(made.weight, generator=torch.Generator().manual_seed(0))
        return made

    words = CLIP(text_encoder=bag, **{**SMALL, "text_params": None}, max_epochs=8).fit(X, captions)
    assert (words.predict(X, COLOURS) == COLOURS[factors[:, 0]]).mean() > 0.6

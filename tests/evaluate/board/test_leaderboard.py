"""Leaderboards that leak little, and contaminated test sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from groundstate.errors import DataError, ShapeError
from groundstate.evaluate import (
    Leaderboard,
    Ledger,
    contamination,
    expected_winner,
    perceptual_hash,
)

y = np.arange(200) % 2


def guesses(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(2, size=(n, 200))


def test_the_best_of_a_thousand_guesses() -> None:
    """Full feedback shows an error of .386 where the truth is .5; the ladder does not move."""
    best, ladder, private = [], [], []
    for seed in range(3):
        said = guesses(1000, seed)
        boards = {
            m: Leaderboard(y, "accuracy", m, random_state=seed) for m in ("full", "ladder", "split")
        }
        for i, row in enumerate(said):
            for board in boards.values():
                board.submit(str(i), row)
        best.append(1 - boards["full"].best_shown)
        ladder.append(1 - boards["ladder"].best_shown)
        shown = boards["split"]._shown
        winner = max(shown, key=lambda name: shown[name])
        rows = boards["split"]._private
        private.append((said[int(winner)][rows] != y[rows]).mean())
        assert shown[winner] > 0.65  # 60 public rows
    assert expected_winner(0.5, 200, 1000) == pytest.approx(0.386, abs=2e-3)
    assert np.mean(best) == pytest.approx(0.386, abs=0.012)
    error = np.sqrt(0.25 / 200)
    assert all(abs(value - 0.5) <= error for value in ladder)
    assert abs(np.mean(private) - 0.5) < 3 * np.sqrt(0.25 / 140 / 3)


def test_a_step_of_one_error_climbs_on_luck() -> None:
    loose = Leaderboard(y, "accuracy", "ladder", step=1.0)
    for i, row in enumerate(guesses(1000, 0)):
        loose.submit(str(i), row)
    assert 1 - loose.best_shown < 0.5 - np.sqrt(0.25 / 200)


def test_the_ladder_moves_for_real_gains() -> None:
    board = Leaderboard(y, "accuracy", "ladder")
    rng = np.random.default_rng(0)
    good = np.where(rng.random(200) < 0.8, y, 1 - y)
    better = np.where(rng.random(200) < 0.95, y, 1 - y)
    assert board.submit("bad", 1 - y) == 0.5
    assert board.submit("good", good) == pytest.approx((good == y).mean())
    tiny = good.copy()
    tiny[np.flatnonzero(good != y)[0]] ^= 1
    assert board.submit("one row more", tiny) == pytest.approx((good == y).mean())
    assert board.submit("better", better) == pytest.approx((better == y).mean())


def test_places_and_groups() -> None:
    rng = np.random.default_rng(1)
    board = Leaderboard(y, "accuracy")
    for name, share in (("a", 0.95), ("b", 0.95), ("c", 0.6)):
        board.submit(name, np.where(rng.random(200) < share, y, 1 - y))
    places = board.places()
    assert [p.group for p in places] == [1, 1, 2] and places[2].name == "c"
    assert places[0].ranks == (1, 2) and places[2].ranks == (3, 3)
    assert places[0].score.method == "wilson"
    page = board.to_html()
    assert "<td>c</td>" in page and "http" not in page and "1–2" in page
    with pytest.raises(DataError, match="its own name"):
        board.submit("a", y)


def test_other_metrics() -> None:
    rng = np.random.default_rng(2)
    p = 1 / (1 + np.exp(-(2 * y - 1) - rng.normal(size=200)))
    board = Leaderboard(y, "roc_auc", "ladder")
    shown = board.submit("p", (p > 0.5).astype(int), p)
    assert shown > 0.7 and board.submit("noise", y * 0, rng.random(200)) == shown
    target = rng.normal(size=100)
    real = Leaderboard(target, "rmse")
    real.submit("far", target + 2)
    assert real.submit("near", target + 0.1) == pytest.approx(0.1)
    assert [place.name for place in real.places()] == ["near", "far"] and real.best_shown < 0.11


def test_fresh_labels_work_once_and_looks_are_logged(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "looks.jsonl")
    board = Leaderboard(y, "accuracy", ledger=ledger)
    rng = np.random.default_rng(3)
    for name in "ab":
        board.submit(name, rng.integers(2, size=200))
    assert [look.purpose for look in ledger.looks()] == ["select", "select"]
    fresh = rng.integers(2, size=300)
    found = board.final(fresh, {"a": fresh, "b": 1 - fresh})
    assert found.names == ("a", "b") and found.tied == ("a",)
    with pytest.raises(DataError, match="used already"):
        board.final(fresh, {"a": fresh})
    with pytest.raises(DataError, match="submit it first"):
        Leaderboard(y).final(fresh, {"z": fresh})
    with pytest.raises(DataError, match="nobody"):
        Leaderboard(y).ranking()
    with pytest.raises(ValueError, match="mechanism must be"):
        Leaderboard(y, mechanism="x")  # type: ignore[arg-type]


def test_planted_rows_are_found() -> None:
    rng = np.random.default_rng(4)
    train, test = rng.normal(size=(1000, 5)), rng.normal(size=(400, 5))
    planted = np.arange(20)  # 5 %
    test[planted] = train[100:120]
    losses = rng.normal(1.0, 0.2, 400)
    losses[planted] = 0.0
    found = contamination(train, test, losses=losses)
    assert found.exact[planted].all() and found.exact.sum() == 20  # recall and precision 1
    assert found.match[planted].tolist() == list(range(100, 120))
    assert found.near.mean() < 0.08
    assert found.difference is not None and found.clean is not None and found.score is not None
    assert found.difference.high < 0 and found.clean.estimate == pytest.approx(1.0, abs=0.05)
    assert found.difference.estimate == pytest.approx(found.score.estimate - found.clean.estimate)
    test[planted] += 1e-6 * rng.normal(size=(20, 5))
    close = contamination(train, test)
    assert close.near[planted].all() and not close.exact.any()
    assert close.match[planted].tolist() == list(range(100, 120))


def test_the_difference_covers_what_copies_do() -> None:
    """Copies cost 1 in 10 % of rows: the interval of the difference holds -0.1 in about 95 %."""
    hits = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        train, test = rng.normal(size=(60, 2)), rng.normal(size=(200, 2))
        copied = rng.random(200) < 0.1
        test[copied] = train[rng.integers(60, size=int(copied.sum()))]
        losses = np.where(copied, 0.0, rng.normal(1.0, 0.5, 200))
        found = contamination(train, test, losses=losses)
        assert found.exact[copied].all() and found.difference is not None
        hits += found.difference.low <= -0.1 <= found.difference.high
    assert 0.88 <= hits / 150 <= 0.99


def test_texts_and_images() -> None:
    words = [f"word{i}" for i in range(200)]
    train = [" ".join(words[i : i + 40]) for i in range(0, 160, 40)] + ["short text"]
    test = ["Word5, WORD6 word7 " + " ".join(words[8:30]), " ".join(words[0:12]), "Short text!"]
    found = contamination(train, test, "text")
    assert found.near.tolist() == [True, False, True] and found.exact.tolist() == [
        False,
        False,
        True,
    ]
    assert found.match.tolist() == [0, -1, 4]
    rng = np.random.default_rng(5)
    images, others = rng.random((50, 28, 28)), rng.random((20, 28, 28))
    others[:5] = np.clip(0.9 * images[:5] + 0.05 + 0.01 * rng.normal(size=(5, 28, 28)), 0, 1)
    seen = contamination(images, others, "images")
    assert seen.near.tolist() == [True] * 5 + [False] * 15 and seen.match[:5].tolist() == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert perceptual_hash(np.zeros((1, 9, 9, 3))).shape == (1,)
    with pytest.raises(ShapeError, match="8 pixels"):
        perceptual_hash(np.zeros((1, 4, 4)))
    with pytest.raises(ValueError, match="kind must be"):
        contamination(images, others, "x")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="one per test row"):
        contamination(images, others, "images", losses=[1.0])

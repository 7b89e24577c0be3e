"""The ledger of looks: counts, hashes, locks, crashes; and how optimistic winners are."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from groundstate.errors import DataError, StoreError
from groundstate.evaluate import (
    Interval,
    Ledger,
    expected_winner,
    optimism_guide,
    rows_id,
    selection_optimism,
)
from groundstate.evaluate.audit.ledger import adjust, adjust_share, settings_id
from groundstate.evaluate.theory.selection_optimism import expected_maximum

X = np.arange(40.0).reshape(20, 2)
y = np.arange(20) % 2


def test_hash_ignores_order_and_sees_labels() -> None:
    order = np.random.default_rng(0).permutation(20)
    assert rows_id(X, y) == rows_id(X[order], y[order])
    other = y.copy()
    other[3] = 1 - other[3]
    assert rows_id(X, y) != rows_id(X, other)
    assert rows_id(X, y) != rows_id(X[order], y)
    frame = pd.DataFrame({"a": X[:, 0], "b": [f"t{i}" for i in range(20)]})
    assert rows_id(frame, y) == rows_id(frame.iloc[order], y[order])


def test_simultaneous_interval() -> None:
    found = adjust_share(900, 1000, looks=10)
    assert found.simultaneous.low == pytest.approx(0.870164, abs=1e-6)
    assert found.simultaneous.high == pytest.approx(0.923582, abs=1e-6)
    assert not found.clean and found.optimism == pytest.approx(0.1 - 0.0856, abs=1e-4)
    first = adjust_share(900, 1000, looks=1)
    assert first.clean and first.plain.low == first.simultaneous.low and first.optimism == 0
    wide = adjust(Interval(2.0, 1.0, 3.0), looks=10)
    assert wide.simultaneous.low == pytest.approx(2 - 2.807034 / 1.959964, abs=1e-6)
    assert (wide.plain.low, wide.plain.high) == (1.0, 3.0)
    with pytest.raises(DataError, match="this one included"):
        adjust_share(9, 10, looks=0)


def test_looks_are_counted_by_test_set(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "looks.jsonl")
    first = ledger.record(X, y, Ridge(2.0), scores={"accuracy": 0.9})
    again = ledger.record(
        X[::-1], y[::-1], Ridge(3.0), scores={"accuracy": Interval(0.8, 0.6, 0.9)}
    )
    other = ledger.record(X + 1, y, "named", scores={"mse": 2.0}, purpose="select")
    assert [first.number, again.number, other.number] == [1, 2, 1]
    assert first.clean and not again.clean and other.clean
    assert first.model == "Ridge" and first.settings != again.settings
    assert ledger.count(X, y) == 2 and len(ledger.looks()) == 3
    found = ledger.adjusted(first)
    assert found.looks == 2 and found.simultaneous.level == pytest.approx(0.975)
    assert "elsewhere" in str(found) and "elsewhere" in str(ledger)
    assert ledger.looks()[1].scores["accuracy"]["low"] == 0.6
    assert Ledger.beside(tmp_path / "t.csv").path == tmp_path / "t.csv.ledger.jsonl"
    held = rows_id(X, y)
    assert ledger.record(None, held, "later", scores={"accuracy": 0.7}).number == 3


def test_a_stored_score_that_is_no_share_is_widened(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "looks.jsonl")
    look = ledger.record(X, y, "a", scores={"rmse": Interval(2.0, 1.0, 3.0)})
    ledger.record(X, y, "b", scores={"rmse": Interval(1.9, 1.0, 3.0)})
    found = ledger.adjusted(look, "rmse")
    assert found.plain.low == pytest.approx(1.0) and found.simultaneous.low < 1.0
    with pytest.raises(DataError, match="has no 'mae'"):
        ledger.adjusted(look, "mae")


def test_concurrent_writers(tmp_path: Path) -> None:
    path = tmp_path / "looks.jsonl"

    def write(name: str) -> None:
        for _ in range(10):
            Ledger(path).record(X, y, name, scores={"accuracy": 0.5})

    threads = [threading.Thread(target=write, args=(f"w{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    looks = Ledger(path).looks()
    assert sorted(look.number for look in looks) == list(range(1, 41))
    assert Ledger(path).verify()


def test_a_torn_line_is_cut_off_and_edits_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "looks.jsonl"
    ledger = Ledger(path)
    for name in "abc":
        ledger.record(X, y, name, scores={"accuracy": 0.5})
    with path.open("ab") as stream:
        stream.write(b'{"time": "20')  # a writer that was killed
    assert len(ledger.looks()) == 3
    assert ledger.record(X, y, "d", scores={"accuracy": 0.5}).number == 4
    assert [look.model for look in ledger.looks()] == ["a", "b", "c", "d"] and ledger.verify()
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *lines[2:]]) + "\n")
    assert not ledger.verify()
    entry = json.loads(lines[0])
    entry["model"] = "z"
    path.write_text("\n".join([json.dumps(entry), *lines[1:]]) + "\n")
    assert not ledger.verify()
    path.write_text("no json\n")
    with pytest.raises(StoreError, match="line 1 of"):
        ledger.looks()


def test_a_full_disk_leaves_the_ledger_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "looks.jsonl"
    Ledger(path).record(X, y, "a", scores={"accuracy": 0.5})
    before = path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreError, match="No space left"):
        Ledger(path).record(X, y, "b", scores={"accuracy": 0.5})
    assert path.read_bytes() == before


def test_errors(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "looks.jsonl")
    with pytest.raises(ValueError, match="'report' or 'select'"):
        ledger.record(X, y, "a", scores={}, purpose="fun")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="rows_id"):
        ledger.record(None, "nonsense", "a", scores={})
    with pytest.raises(StoreError, match="cannot open the ledger"):
        Ledger(tmp_path / "no" / "looks.jsonl").record(X, y, "a", scores={})
    assert settings_id({"f": np.mean, "a": np.arange(2)}) == settings_id(
        {"a": [0, 1], "f": np.mean}
    )


def test_expected_winner() -> None:
    found = [expected_winner(0.1, 1000, k) for k in (2, 10, 100, 1000)]
    np.testing.assert_allclose(found, [0.0946, 0.0856, 0.0770, 0.0706], atol=6e-5)
    assert expected_winner(0.1, 1000, 1) == pytest.approx(0.1)
    draws = np.random.default_rng(0).binomial(50, 0.3, (20_000, 5)).min(1) / 50
    assert expected_winner(0.3, 50, 5) == pytest.approx(draws.mean(), abs=4 * draws.std() / 141)
    for k in (10, 100, 1000):
        assert 0.1 - expected_winner(0.1, 1000, k) < optimism_guide(0.1, 1000, k)
    assert expected_maximum(3) == pytest.approx(1.5 / np.sqrt(np.pi))


def test_selection_optimism_corrects_the_winner() -> None:
    """Over many tables of equal models the corrected winner is right on average."""
    rng = np.random.default_rng(1)
    reported, corrected = [], []
    for i in range(30):
        wrong = rng.random((300, 40)) < 0.2
        found = selection_optimism(wrong, n_resamples=200, random_state=i)
        reported.append(found.reported)
        corrected.append(found.corrected)
    expected = expected_winner(0.2, 300, 40)
    assert np.mean(reported) == pytest.approx(expected, abs=0.004)
    # choosing among fewer distinct rows overstates the optimism a little, never by a half
    assert abs(np.mean(corrected) - 0.2) < 0.4 * (0.2 - expected)


def test_selection_optimism_of_one_clear_winner_is_small() -> None:
    rng = np.random.default_rng(2)
    losses = np.stack([rng.random(400) < p for p in (0.05, 0.4, 0.5)], 1)
    found = selection_optimism(losses)
    assert found.winner == 0 and abs(found.optimism) < 0.002 and found.wins[0] == 1
    flipped = selection_optimism(1.0 - losses, greater_is_better=True)
    assert flipped.winner == 0 and flipped.reported == pytest.approx(1 - found.reported)


def test_selection_optimism_of_a_study() -> None:
    class Trial:
        def __init__(self, risks: list[float]) -> None:
            self.user_attrs = {"risks": [[r] for r in risks]}

    class Study:
        trials = [Trial([0.1, 0.3, 0.2, 0.4, 0.2]), Trial([0.3, 0.2, 0.3, 0.1, 0.35])]

    found = selection_optimism(Study())
    assert found.winner == 0 and found.optimism > 0
    Study.trials[0].user_attrs = {}
    Study.trials[1].user_attrs = {}
    with pytest.raises(DataError, match="keep no 'risks'"):
        selection_optimism(Study())
    with pytest.raises(DataError, match="three rows"):
        selection_optimism(np.zeros(4))

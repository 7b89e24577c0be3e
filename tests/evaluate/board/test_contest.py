"""A leaderboard in a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundstate.errors import DataError
from groundstate.evaluate import Ledger
from groundstate.evaluate.board.contest import judge_folder

N = 200
TRUTH = np.where(np.arange(N) % 2 == 0, "no", "yes")


def column(path: Path, name: str, values: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([name, *map(str, values)]) + "\n")


def noisy(truth: Any, share: float, seed: int) -> Any:
    wrong = np.random.default_rng(seed).random(len(truth)) >= share
    return np.where(wrong, np.where(truth == "no", "yes", "no"), truth)


@pytest.fixture
def contest(tmp_path: Path) -> Path:
    rows = [f"{i},{label}" for i, label in enumerate(TRUTH)]
    (tmp_path / "test.csv").write_text("\n".join(["x,bought", *rows]) + "\n")
    for i, (name, share) in enumerate((("ada", 0.95), ("ben", 0.95), ("cleo", 0.6))):
        file = tmp_path / "submissions" / f"{name}.csv"
        column(file, "bought", noisy(TRUTH, share, i))
        os.utime(file, (i, i))
    return tmp_path


def test_ranks_groups_and_intervals_that_hold_at_once(contest: Path) -> None:
    found = judge_folder(contest)
    assert [p.group for p in found.places] == [1, 1, 2] and found.places[2].name == "cleo"
    assert found.looks == 3 and found.places[0].score.level == pytest.approx(1 - 0.05 / 3)
    for place in found.places:
        said = (contest / "submissions" / f"{place.name}.csv").read_text().split()[1:]
        assert place.score.estimate == pytest.approx(np.mean(np.array(said) == TRUTH))
    page = found.page.read_text()
    assert "<td>cleo</td>" in page and "http" not in page and f"{place.score.low:.4f}" in page


def test_a_file_is_looked_at_once_until_it_changes(contest: Path) -> None:
    first = judge_folder(contest)
    assert judge_folder(contest).looks == 3 == len(Ledger(first.ledger).looks())
    column(contest / "submissions" / "cleo.csv", "bought", noisy(TRUTH, 0.97, 9))
    again = judge_folder(contest)
    book = Ledger(first.ledger)
    assert again.looks == 4 == len(book.looks()) and book.verify()
    assert again.places[0].score.level == pytest.approx(1 - 0.05 / 4)  # the lost one counts
    assert {look.purpose for look in book.looks()} == {"select"}


def test_the_ladder_keeps_its_order_and_its_page_gives_nothing_away(contest: Path) -> None:
    first = judge_folder(contest, mechanism="ladder")
    ada, cleo = first.board.answers["ada"], first.board.answers["cleo"]
    assert cleo == ada  # worse than what was there: told the best so far
    assert f"{first.places[2].score.estimate:.4f}" not in first.page.read_text()
    os.utime(contest / "submissions" / "cleo.csv", (-5, -5))  # an earlier time changes nothing
    assert judge_folder(contest, mechanism="ladder").board.answers == first.board.answers
    revealed = judge_folder(contest, mechanism="ladder", reveal=True)
    assert f"{first.places[2].score.estimate:.4f}" in revealed.page.read_text()


def test_private_rows_decide_where_the_board_is_split(contest: Path) -> None:
    found = judge_folder(contest, mechanism="split")
    private = found.board._private
    said = np.array((contest / "submissions" / "cleo.csv").read_text().split()[1:])
    assert found.places[-1].score.estimate == pytest.approx(np.mean((said == TRUTH)[private]))
    assert len(private) == 140


def test_fresh_labels_rank_once(contest: Path) -> None:
    fresh = np.where(np.random.default_rng(5).random(150) < 0.5, "no", "yes")
    column(contest / "fresh.csv", "bought", fresh)
    for i, name in enumerate(("ada", "ben", "cleo")):
        column(contest / "fresh" / f"{name}.csv", "bought", noisy(fresh, (0.7, 0.95, 0.6)[i], i))
    assert judge_folder(contest).final is None  # not asked for
    last = judge_folder(contest, final=True)
    assert last.final is not None and last.final[0].name == "ben"
    assert "On fresh labels" in last.page.read_text()
    shown = judge_folder(contest).final
    assert shown is not None and [p.name for p in shown] == [p.name for p in last.final]
    looks = Ledger(last.ledger).looks()
    assert [look.purpose for look in looks].count("report") == 3
    column(contest / "fresh" / "ada.csv", "bought", fresh)
    with pytest.raises(DataError, match="used already, without this 'ada'; a second look"):
        judge_folder(contest, final=True)


def test_a_bad_file_is_left_out_and_said(contest: Path) -> None:
    column(contest / "submissions" / "dora.csv", "bought", TRUTH[:50])
    column(contest / "submissions" / "eve.csv", "bought", ["maybe"] * N)
    (contest / "submissions" / "fay.csv").write_text("a,b\n" + "1,2\n" * N)
    found = judge_folder(contest)
    assert "has 50 predictions for 200 rows" in found.refused["dora.csv"]
    assert "predicts 'maybe' in row 1, which is no class" in found.refused["eve.csv"]
    assert "call the one with predictions 'bought'" in found.refused["fay.csv"]
    assert found.looks == 3
    with pytest.raises(DataError, match="log_loss needs columns p"):
        judge_folder(contest, metric="log_loss")


def test_probabilities_and_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=60)
    column(tmp_path / "test.csv", "y", y)
    column(tmp_path / "submissions" / "near.csv", "prediction", y + 0.1)
    column(tmp_path / "submissions" / "far.csv", "anything", y + 1.0)
    column(tmp_path / "submissions" / "words.csv", "y", ["?"] + ["a"] * 59)
    found = judge_folder(tmp_path)
    assert [p.name for p in found.places] == ["near", "far"]
    assert found.places[0].score.estimate == pytest.approx(0.1) and "words.csv" in found.refused
    rows = [f"{label},{p},{1 - p}" for label, p in zip(TRUTH, np.linspace(0.2, 0.8, N))]
    table = tmp_path / "other"
    column(table / "labels.csv", "bought", TRUTH)
    (table / "submissions").mkdir()
    said = table / "submissions" / "ada.csv"
    said.write_text("bought,p(no),p(yes)\n" + "\n".join(rows) + "\n")
    found = judge_folder(table, labels="labels.csv", metric="log_loss")
    assert found.places[0].score.estimate > 0.5


def test_wrong_folders_say_what_is_missing(contest: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no table of labels in .*, such as test.csv"):
        judge_folder(contest / "submissions")
    with pytest.raises(DataError, match="rmse is a metric for regression"):
        judge_folder(contest, metric="rmse")
    with pytest.raises(DataError, match="mechanism must be one of full, ladder, split"):
        judge_folder(contest, mechanism="open")  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"no fresh labels such as"):
        judge_folder(contest, final=True)
    (contest / "test.csv").write_text("x,bought\n1,\n" + "2,no\n3,yes\n" * 20)
    with pytest.raises(DataError, match="rows without a label"):
        judge_folder(contest)

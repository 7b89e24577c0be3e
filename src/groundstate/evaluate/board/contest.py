r"""A leaderboard in a folder: labels, predictions, a ledger, a page.

.. code-block:: text

    contest/
      test.csv                 labels (and whatever else the rows hold)
      submissions/ada.csv      one prediction for each row, in the order of test.csv
      submissions/ben.csv
      fresh.csv                labels for the end, which nobody has seen
      fresh/ada.csv            predictions for them, by the same names
      board.ledger.jsonl       written: one line for each look at the labels
      board.html               written: the page to show
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key
from groundstate.data import Table, read
from groundstate.errors import DataError
from groundstate.evaluate.audit.ledger import Ledger, settings_id
from groundstate.evaluate.board.leaderboard import Leaderboard, Place
from groundstate.evaluate.board.prediction_files import SUFFIXES, read_predictions, truth_of
from groundstate.evaluate.metrics import metric as metric_named
from groundstate.evaluate.metrics.intervals import interval
from groundstate.evaluate.predictions import Prediction
from groundstate.store import write_bytes

USUAL = {"classification": "accuracy", "regression": "rmse"}
LEDGER, PAGE = "board.ledger.jsonl", "board.html"


@dataclass(frozen=True)
class Contest(Displayed):
    """What a folder of submissions holds.

    Attributes
    ----------
    board : Leaderboard
    places : list of Place
    refused : dict
        Names of files that could not be judged, and why.
    final : list of Place or None
        The ranking on fresh labels, once it was made.
    looks : int
        Submissions judged on these labels so far, replaced ones included.
    ledger, page : Path
    """

    board: Leaderboard
    places: list[Place]
    refused: dict[str, str]
    final: list[Place] | None
    looks: int
    ledger: Path
    page: Path


def find_labels(folder: str | os.PathLike[str], name: str = "test") -> Path | None:
    """The table of labels in a folder, where there is one."""
    found = (Path(folder) / f"{name}{suffix}" for suffix in SUFFIXES)
    return next((path for path in found if path.is_file()), None)


def judge_folder(
    folder: str | os.PathLike[str],
    *,
    labels: str | os.PathLike[str] | None = None,
    target: str | int | None = None,
    metric: str | None = None,
    mechanism: Literal["full", "ladder", "split"] = "full",
    level: float = 0.95,
    reveal: bool | None = None,
    final: bool = False,
    seed: int = 0,
) -> Contest:
    """Judge the submissions of a folder, note every new one in its ledger, write its page.

    A file that was judged before and has not changed is not a new look. A changed one is, and the
    number of looks widens all intervals.

    Parameters
    ----------
    labels : file with the target of the test rows; ``test.csv`` (or .parquet, ...) by default
    target : its column; the last by default
    metric : accuracy or RMSE by default
    mechanism : as of :class:`Leaderboard`
    reveal : whether the page shows scores; by default with ``"full"`` alone
    final : rank once more on the labels of ``fresh.csv``; this is a single time
    """
    root = Path(folder)
    where = find_labels(root) if labels is None else _either(root, Path(labels))
    if where is None:
        raise DataError(f"there is no table of labels in {str(root)!r}, such as test.csv")
    source = _labelled(where, target)
    truth, classes = truth_of(source)
    task = str(source.task)
    measure = metric_named(USUAL[task] if metric is None else metric)
    if measure.task != task:
        raise DataError(f"{measure.name} is a metric for {measure.task}, the task is {task}")
    ledger = Ledger(root / LEDGER)
    predicted, refused = _submissions(root / "submissions", source, classes, measure)
    test = Leaderboard(truth, measure.name).test_id
    old = {(look.model, look.settings): i for i, look in enumerate(ledger.looks(test))}
    marks = {name: settings_id(_content(p)) for name, (p, _) in predicted.items()}
    new = [name for name in predicted if (name, marks[name]) not in old]
    looks = len(old) + len(new)
    board = Leaderboard(
        truth, measure.name, mechanism, level=level, random_state=seed, looked=looks
    )
    # the ladder climbs in the order in which submissions came
    for name in sorted(
        predicted, key=lambda n: (old.get((n, marks[n]), len(old)), predicted[n][1], n)
    ):
        prediction = predicted[name][0]
        answer = board.submit(name, prediction)
        if name in new:
            logged: Any = answer
            if mechanism == "full":
                key = Key.of(seed).fold("look", name)
                logged = interval(measure, truth, prediction, level=level, key=key)
            ledger.record(
                None, test, name, scores={measure.name: logged}, settings=_content(prediction),
                purpose="select",
            )  # fmt: skip
    last = _final(root, board, source, classes, measure, ledger, final)
    write_bytes(root / PAGE, board.to_html(reveal).encode())
    return Contest(
        board, board.places(), refused, last, looks, Path(ledger.path), root / PAGE
    )  # fmt: skip


def _either(root: Path, path: Path) -> Path:
    """A file given by its path, or by its name in the folder."""
    return path if path.is_file() or not (root / path).is_file() else root / path


def _labelled(path: Path, target: str | int | None) -> Table:
    table = read(os.fspath(path))
    if table.n_columns == 1:  # labels alone, and a table is more than its target
        name = table.columns[0]
        table = read({f"row of {name}": range(table.n_rows), name: table.frame[name].to_list()})
    found = table.with_target("last" if target is None else target)
    if found.n_rows < table.n_rows:
        raise DataError(f"{str(path)!r} has rows without a label; every test row needs one")
    return found


def _submissions(
    folder: Path, source: Table, classes: Any, measure: Any
) -> tuple[dict[str, tuple[Prediction, int]], dict[str, str]]:
    """Predictions with the time of their file, and what could not be read."""
    files = sorted(p for p in folder.glob("*") if p.suffix.lower() in SUFFIXES)
    if not files:
        raise DataError(f"there is no file of predictions such as {str(folder / 'name.csv')!r}")
    predicted: dict[str, tuple[Prediction, int]] = {}
    refused: dict[str, str] = {}
    for path in files:
        try:
            found = read_predictions(path, source.n_rows, str(source.target), classes)
            if not measure.available(found):
                raise DataError(f"{measure.name} needs columns p(label) with probabilities")
            if path.stem in predicted:
                raise DataError(f"there is another file of the name {path.stem!r}")
            predicted[path.stem] = found, path.stat().st_mtime_ns
        except DataError as error:
            refused[path.name] = str(error)
    if not predicted:
        first = next(iter(refused.values()))
        raise DataError(f"no submission of {str(folder)!r} could be judged; {first}")
    return predicted, refused


def _final(
    root: Path,
    board: Leaderboard,
    source: Table,
    classes: Any,
    measure: Any,
    ledger: Ledger,
    now: bool,
) -> list[Place] | None:
    """The ranking on fresh labels: made when asked for, shown again from then on."""
    where = find_labels(root, "fresh")
    if where is None:
        if now:
            raise DataError(f"there are no fresh labels such as {str(root / 'fresh.csv')!r}")
        return None
    fresh = _labelled(where, str(source.target))
    truth, kinds = truth_of(fresh)
    if classes is not None and (kinds is None or set(kinds) - set(classes)):
        raise DataError(f"{str(where)!r} has labels that the test rows do not have")
    if classes is not None and kinds is not None:
        truth = classes.searchsorted(fresh.y)
    test = Leaderboard(truth, measure.name).test_id
    seen = {(look.model, look.settings) for look in ledger.looks(test)}
    if not seen and not now:
        return None
    predicted = {
        path.stem: read_predictions(path, fresh.n_rows, str(source.target), classes)
        for path in sorted((root / "fresh").glob("*"))
        if path.suffix.lower() in SUFFIXES
    }
    if not predicted:
        raise DataError(f"there is no file of predictions in {str(root / 'fresh')!r}")
    marks = {(name, settings_id(_content(p))) for name, p in predicted.items()}
    if seen and marks - seen:
        name = sorted(marks - seen)[0][0]
        raise DataError(
            f"the fresh labels were used already, without this {name!r}; a second look is not fresh"
        )
    board.final(truth, predicted)
    places = board.final_places()
    for place in places if not seen else ():
        ledger.record(
            None, test, place.name, scores={measure.name: place.score},
            settings=_content(predicted[place.name]), purpose="report",
        )  # fmt: skip
    return places


def _content(predicted: Prediction) -> dict[str, Any]:
    """What makes a submission the same one."""
    shares = None if predicted.probability is None else predicted.probability.tolist()
    return {"values": predicted.values.tolist(), "shares": shares}

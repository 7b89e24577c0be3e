"""Whatever is wrong with the input: the right answer, or one clear sentence and exit code 2."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import groundstate
from groundstate.cli import boundary

HALF = "1,a\n2,b\n" * 12
QUICK = ("--tune", "0", "--seeds", "0", "--bootstrap", "0")


def table(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(done: Any, *words: str) -> None:
    assert done.code == 2, (done.code, done.out, done.error)
    assert done.out == ""
    assert done.error.startswith("error: ") and done.error.count("\n") == 1, done.error
    assert "Traceback" not in done.error
    for word in words:
        assert word in done.error, done.error


REFUSED: dict[str, tuple[str | bytes, list[str], list[str]]] = {
    "no bytes": (b"", ["-t", "y"], ["'t.csv' is empty"]),
    "header only": ("x,y\n", ["-t", "y"], ["t.csv", "no row"]),
    "one class": ("x,y\n" + "1,a\n2,a\n3,a\n4,a\n" * 5, ["-t", "y"], ["same value of 'y', a"]),
    "one value": ("x,y\n" + "".join(f"{i},0.5\n" for i in range(30)), ["-t", "y"], ["same value"]),
    "target without values": ("x,y\n1,\n2,\n3,\n", ["-t", "y"], ["no value in any row"]),
    "unknown target": ("x,label\n" + HALF, ["-t", "lable"], ["did you mean 'label'?", "'x'"]),
    "a metric without a target": (
        "x,label\n" + HALF,
        ["--metric", "accuracy"],
        ["--target", "'x', 'label'"],
    ),
    "a classifier without a target": (
        "x,z\n" + HALF,
        ["-m", "LinearSVC"],
        ["LinearSVC is a classifier", "GaussianMixture"],
    ),
    "single column": ("y\n1\n2\n3\n", ["-t", "y"], ["nothing is left to predict it"]),
    "only an identifier": (
        "id,y\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(30)),
        ["-t", "y"],
        ["no usable feature"],
    ),
    "not a table": (bytes(range(256)) * 8, ["-t", "y"], ["t.csv"]),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(40), ["-t", "y"], ["is a picture"]),
    "unknown model": ("x,y\n" + HALF, ["-t", "y", "-m", "Rigde"], ["did you mean 'Ridge'?"]),
    "model of another task": ("x,y\n" + HALF, ["-t", "y", "-m", "Ridge"], ["Ridge is a regressor"]),
    "model of counts": ("x,y\n" + HALF, ["-t", "y", "-m", "MultinomialNB"], ["needs counts"]),
    "unknown metric": ("x,y\n" + HALF, ["-t", "y", "--metric", "acc"], ["no metric", "accuracy"]),
    "metric of another task": (
        "x,y\n" + HALF,
        ["-t", "y", "--metric", "rmse"],
        ["rmse is a metric for regression", "accuracy"],
    ),
    "everything for the test": ("x,y\n" + HALF, ["-t", "y", "--test", "1"], ["between 0 and 1"]),
    "no GPU": ("x,y\n" + HALF, ["-t", "y", "--device", "gpu9"], ["device='gpu9'", "'cpu'"]),
    "one fold": ("x,y\n" + HALF, ["-t", "y", "--folds", "1"], ["2 folds"]),
    "a word for a number": (
        "x,y\n" + HALF,
        ["-t", "y", "--seed", "x"],
        ["--seed", "integer", "groundstate fit --help"],
    ),
    "an unknown option": (
        "x,y\n" + HALF,
        ["--tagret", "y"],
        ["--tagret", "groundstate fit --help"],
    ),
    "two rows": ("x,y\n1,a\n2,b\n", ["-t", "y"], ["'t.csv' has 2 rows with a value of 'y'"]),
    "three rows": ("x,y\n1,1\n2,2\n4,3\n", ["-t", "y"], ["3 rows", "takes 5 or more"]),
    "a label per row": (
        "x,who\n" + "".join(f"{i % 5},K{i:03d}\n" for i in range(30)),
        ["-t", "who"],
        ["every row has its own value of 'who', such as 'K000'", "choose another target"],
    ),
    "only constants": (
        "a,b,y\n" + "".join(f"1,,{'ab'[i % 2]}\n" for i in range(30)),
        ["-t", "y"],
        ["no usable feature", "'a', 'b'"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_fit_refuses_with_one_sentence(case: str, call: Any, tmp_path: Path) -> None:
    text, options, words = REFUSED[case]
    done = call("fit", table(tmp_path, text), *options, "-o", tmp_path / "out")
    refused(done, *words)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv"]  # nothing half-written


def test_no_such_table_names_the_nearest(call: Any, tmp_path: Path) -> None:
    refused(call("fit", "irs", "-o", tmp_path / "o"), "did you mean 'iris'?")
    refused(call("fit", tmp_path / "no.csv", "-o", tmp_path / "o"), "there is no file")
    refused(call("fit", tmp_path, "-o", tmp_path / "o"), "is a folder")


def test_output_that_is_not_a_run_is_left_alone(call: Any, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    refused(call("fit", "iris", "-o", tmp_path / "thesis"), "not a groundstate run")
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"


def _hard(n: int = 60) -> Iterator[str]:
    yield "x,same,twin,ragged,y"
    for i in range(n):
        x = "nan" if i % 10 == 0 else "inf" if i % 15 == 1 else f"{(i % 7) - 3 + 0.1 * (i % 2)}"
        yield f"{x},5,{x},{i % 3},{'up' if (i % 7) > 3 else 'down'}"


def test_nan_inf_constant_and_twin_columns_are_answered(call: Any, tmp_path: Path) -> None:
    path = table(tmp_path, "\n".join(_hard()) + "\n")
    done = call(
        "fit", path, "-t", "y", "-m", "LogisticRegression", "-o", tmp_path / "o", "--json", *QUICK
    )
    assert done.code == 0, done.error
    codes = {finding["code"] for finding in done.json["data"]["findings"]}
    assert {"missing", "constant", "duplicate_columns"} <= codes
    assert done.json["scores"]["accuracy"]["value"] > 0.7


def test_more_columns_than_rows_is_answered(call: Any, tmp_path: Path) -> None:
    names = ",".join(f"c{j}" for j in range(40))
    rows = [
        ",".join(f"{((i * 7 + j * 3) % 11) - 5 + 3 * (i % 2) * (j == 0)}" for j in range(40))
        + f",{'ab'[i % 2]}"
        for i in range(24)
    ]
    path = table(tmp_path, f"{names},y\n" + "\n".join(rows) + "\n")
    done = call(
        "fit", path, "-t", "y", "-m", "LogisticRegression", "-o", tmp_path / "o", "--json", *QUICK
    )
    assert done.code in (0, 3), done.error  # so few rows may not tell it from a dummy
    assert {"few_rows", "tiny_table"} <= {f["code"] for f in done.json["data"]["findings"]}


def test_rows_of_unequal_length_are_answered_or_refused(call: Any, tmp_path: Path) -> None:
    path = table(tmp_path, "x,w,y\n" + "1,2,a\n2,1,b\n3,4\n5,6,b,9\n" * 10)
    done = call("fit", path, "-t", "y", "-m", "LinearSVC", "-o", tmp_path / "o", *QUICK)
    assert done.code in (0, 2) and "Traceback" not in done.error
    assert done.code == 0 or done.error.count("\n") == 1


def test_what_was_read_differently_is_said_once(call: Any, tmp_path: Path) -> None:
    rows = [f"{i % 7},{i % 7 + 0.1 * (i % 3)},süß" for i in range(40)]
    rows[5], rows[9] = "oops,1,x", "3,,x"
    text = "a,target,a\n" + "\n".join(rows) + "\n"
    path = table(tmp_path, text.encode("latin-1"))
    done = call("fit", path, "-t", "target", "-m", "Ridge", "-o", tmp_path / "o", *QUICK)
    assert done.code == 0, done.error
    said = " ".join(done.out.split())
    assert "- read: 't.csv' is not UTF-8 and was read as cp1252" in said
    assert "- read: column names came twice and were made unique: 'a' → 'a_2'" in said
    assert "- read: column 'a' is numeric; 'oops' (1 row) is read as missing" in said
    assert said.count("- read: 1 row without") == 0  # the audit says it already
    assert "- warning: 1 row without a value of the target 'target' set aside" in said


def test_tiny_classes_do_not_stop_the_others(call: Any, tmp_path: Path) -> None:
    rows = "".join(f"{1 + i / 100},a\n{2 + i / 100},b\n" for i in range(20))
    path = table(tmp_path, "x,y\n" + rows + "9,rare\n")
    done = call(
        "fit", path, "-t", "y", "-m", "LogisticRegression", "-o", tmp_path / "o", "--json", *QUICK
    )
    assert done.code == 0, done.error
    assert "tiny_classes" in {f["code"] for f in done.json["data"]["findings"]}


def test_full_disk_loses_nothing(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert call("fit", "iris", "-o", out, "-m", "LinearSVC", *QUICK).code == 0
    before = {p.name: p.read_bytes() for p in out.iterdir()}

    def full(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        done = call("fit", "iris", "-o", out, "-m", "LinearSVC", "--seed", 5, *QUICK)
    refused(done, "No space left on device", "the previous run is unchanged")
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_full_disk_while_predicting(
    call: Any, fitted: Path, mixed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        done = call("predict", fitted / "model.gs", mixed, "--out", tmp_path / "p.csv")
    refused(done, "No space left on device", "nothing was written")
    assert list(tmp_path.iterdir()) == []


def test_interrupt_leaves_nothing(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from groundstate.study import job

    def stop(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(job, "assess", stop)
    done = call("fit", "iris", "-o", tmp_path / "out")
    assert done.code == 130 and done.error.startswith("error: stopped")
    assert list(tmp_path.iterdir()) == []


def test_a_time_limit_leaves_nothing(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from groundstate.study import job

    def limit(*args: Any, **kwargs: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(job, "assess", limit)
    done = call("fit", "iris", "-o", tmp_path / "out")
    assert done.code == 143 and done.error == "error: stopped; nothing half-written is left\n"
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_bug_keeps_its_traceback(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from groundstate.study import job

    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(job, "assess", broken)
    done = call("fit", "iris", "-o", tmp_path / "out")
    assert done.code == 1 and isinstance(done.exception, RuntimeError)
    assert list(tmp_path.iterdir()) == []


def test_warnings_become_notes(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    from groundstate.errors import NotConverged
    from groundstate.study import job

    real = job.assess

    def noisy(*args: Any, **kwargs: Any) -> Any:
        warnings.warn("stopped at 5 steps\nbefore the tolerance", NotConverged, stacklevel=1)
        return real(*args, **kwargs)

    monkeypatch.setattr(job, "assess", noisy)
    monkeypatch.setattr(boundary, "_shown", set())
    done = call("fit", "iris", "-o", tmp_path / "out", "-m", "LinearSVC", *QUICK)
    assert done.code == 0 and done.error == "note: stopped at 5 steps before the tolerance\n"


def test_labels_of_the_test_file_that_are_spelled_otherwise(call: Any, tmp_path: Path) -> None:
    rows = [f"{i / 7:.3f},{'yes' if i % 3 else 'no'}" for i in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["x,y", *rows]))
    (tmp_path / "b.csv").write_text("\n".join(["X,y", *(f"{row}." for row in rows)]))
    table = ask_question(tmp_path / "a.csv", "y", tmp_path / "b.csv")
    assert sorted(set(table.y)) == ["no", "yes"] and table.n_rows == 120
    said = [note for note in table.notes if "differs in spelling only" in note]
    assert len(said) == 2 and all(note.startswith("b.csv: ") for note in said)
    (tmp_path / "c.csv").write_text(
        "\n".join(["x,y", *(row.replace("yes", "1.5") for row in rows[1:3])])
    )
    done = call("fit", tmp_path / "a.csv", "-t", "y", "--test", tmp_path / "c.csv",
                "-o", tmp_path / "out", "-m", "GaussianNB", "--tune", "0")  # fmt: skip
    refused(done, "write both files with the same labels")


def ask_question(path: Path, target: str, test: Path) -> Any:
    from groundstate.study.question import _with_test

    return _with_test(groundstate.data.read(path), str(test), target)[0]


MODEL_REFUSED = {
    "no file": ("nothing.gs", "does not exist"),
    "a foreign file": ("foreign.gs", "not a groundstate file"),
    "no model": ("value.gs", "holds a dict and not a model"),
}


@pytest.mark.parametrize("case", MODEL_REFUSED)
@pytest.mark.parametrize("command", ["predict", "infer", "sample"])
def test_models_that_cannot_be_used(case: str, command: str, call: Any, tmp_path: Path) -> None:
    name, word = MODEL_REFUSED[case]
    (tmp_path / "foreign.gs").write_text("hello")
    groundstate.store.save({"theta": 1.0}, tmp_path / "value.gs")
    rest = {"predict": ["iris"], "infer": ["iris", "--free", "y"], "sample": []}[command]
    refused(call(command, tmp_path / name, *rest), word)


def test_unknown_command_suggests_one(call: Any) -> None:
    refused(call("pedict", "a", "b"), "predict")

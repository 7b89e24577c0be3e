"""``groundstate studio``: what it loads, where it listens, and what it refuses."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np

import groundstate as gs
from groundstate.cli.web import studio

X = np.random.default_rng(0).normal(size=(40, 2))


def test_it_serves_a_saved_model_with_its_rows_until_it_is_interrupted(tmp_path: Path) -> None:
    gs.PCA(2).fit(X).save(tmp_path / "plane.gs")
    lines = ["a,b,kind", *(f"{a},{b},{'up' if a > 0 else 'down'}" for a, b in X)]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    command = [
        sys.executable, "-m", "groundstate", "studio", str(tmp_path / "plane.gs"),
        "--data", str(tmp_path / "rows.csv"), "--target", "kind", "--port", "0", "--no-browser",
        "--json",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        try:
            assert run.stdout is not None
            told = json.loads("".join(iter(run.stdout.readline, "}\n")) + "}")
            assert told["models"] == ["plane"] and told["address"].startswith("http://127.0.0.1:")
            with urlopen(f"{told['address']}/api/studio", timeout=60) as answer:
                front = json.load(answer)
            assert front["models"][0]["n_rows"] == 40
            with urlopen(f"{told['address']}/api/latent-plane/plane/codes", timeout=60) as answer:
                assert set(json.load(answer)["labels"]) == {"up", "down"}
        finally:
            run.send_signal(signal.SIGINT)
            run.wait(60)


def test_bad_input_is_told_in_one_sentence(call: Any, tmp_path: Path) -> None:
    missing = call("studio", tmp_path / "none.gs", "--no-browser")
    assert missing.code == 2 and missing.error.count("\n") == 1
    gs.PCA(2).fit(X).save(tmp_path / "plane.gs")
    (tmp_path / "rows.csv").write_text("a,b,c\n1,2,3\n4,5,6\n")
    wide = call("studio", tmp_path / "plane.gs", "--data", tmp_path / "rows.csv", "--no-browser")
    assert wide.code == 2 and "fitted on 2 columns" in wide.error
    unknown = call(
        "studio", tmp_path / "plane.gs", "--data", tmp_path / "rows.csv", "--target", "q"
    )
    assert unknown.code == 2 and "no column" in unknown.error


def test_a_port_that_is_taken_is_named(call: Any) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = call("studio", "--port", port, "--no-browser")
    assert done.code == 2 and f"port {port} cannot be used" in done.error


def test_without_its_packages_it_says_what_to_install(call: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(studio, "find_spec", lambda name: None)
    done = call("studio", "--no-browser")
    assert done.code == 2 and "groundstate[studio]" in done.error

"""The main job for pictures, graphs and nodes: compared, looked at once, written to a folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import groundstate
from groundstate.cli.app import app
from groundstate.compute.rows import GraphNodes
from groundstate.data import Graph
from groundstate.errors import DataError, Unsupported
from groundstate.study.rows.job import candidates_for, study_rows
from groundstate.study.rows.source import of_rows, read_source

QUICK = {"max_epochs": 30}


def nodes_and_edges(folder: Path, n: int = 90) -> tuple[Path, Path]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    links = np.triu(rng.random((n, n)) < np.where(y[:, None] == y, 0.25, 0.02), 1)
    x = np.eye(3)[y] + 1.5 * rng.normal(size=(n, 3))
    lines = [f"n{i},{x[i, 0]},{x[i, 1]},{x[i, 2]},{'rgb'[y[i]]}" for i in range(n)]
    nodes, edges = folder / "nodes.csv", folder / "edges.csv"
    nodes.write_text("id,a,b,c,kind\n" + "\n".join(lines))
    edges.write_text("source,target\n" + "\n".join(f"n{a},n{b}" for a, b in np.argwhere(links)))
    return nodes, edges


def pictures(folder: Path, n: int = 40) -> Path:
    from PIL import Image

    rng = np.random.default_rng(0)
    for i in range(n):
        pixels = rng.integers(0, 90, (8, 8, 3), dtype=np.uint8)
        pixels[:4] += np.uint8(120 * (i % 2))
        home = folder / ("top" if i % 2 else "none")
        home.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(home / f"{i}.png")
    return folder


def test_nodes_of_a_graph_from_the_command_line(tmp_path: Path) -> None:
    nodes, edges = nodes_and_edges(tmp_path)
    out = tmp_path / "out"
    words = ["fit", str(nodes), "--edges", str(edges), "--target", "kind", "--folds", "2"]
    done = CliRunner().invoke(app, [*words, "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    facts = json.loads((out / "report.json").read_text())
    assert facts["chosen"] == "NodeClassifier" and facts["baselines"]["better_than_dummy"]
    named = [entry["name"] for entry in facts["candidates"]["entries"]]
    assert "NodeClassifier, features alone" in named and "dummy" in named
    assert 0 < facts["scores"]["accuracy"]["lo"] < facts["scores"]["accuracy"]["hi"] <= 1
    page = (out / "report.html").read_text()
    assert "The graph" in page and "columns" not in facts["verdict"][1]
    model = groundstate.load(out / "model.gs")
    graph = Graph.from_csv(nodes, edges, target="kind")
    assert model.predict(graph).shape == (90,)
    asked = ["predict", str(out / "model.gs"), str(nodes)]
    told = CliRunner().invoke(app, [*asked, "--edges", str(edges), "--proba"])
    assert told.exit_code == 0 and told.output.startswith("y,p(b),p(g),p(r)"), told.output
    refused = CliRunner().invoke(app, asked)
    assert refused.exit_code == 2
    again = subprocess.run([sys.executable, str(out / "reproduce.py")], capture_output=True, text=True,
                           check=True)  # fmt: skip
    assert json.loads(again.stdout)["scores"] == facts["scores"]


def test_the_same_seed_gives_the_same_study(tmp_path: Path) -> None:
    source = read_source(*nodes_and_edges(tmp_path)[:1], "kind", tmp_path / "edges.csv")
    one, two = (study_rows(source, folds=2, seed=3, params=QUICK) for _ in range(2))
    assert one.facts == two.facts
    assert isinstance(one.rows, GraphNodes) and len(one.rows) == len(one.truth)


def test_a_folder_of_pictures(tmp_path: Path) -> None:
    root = pictures(tmp_path / "shots")
    found: Any = groundstate.study(root, model="LinearImageClassifier", folds=2)
    assert found.chosen == "LinearImageClassifier" and found.scores["accuracy"].estimate > 0.8
    page = found.report(tmp_path / "out").read_text()
    assert "Predicting class" in page and "Right, but unsure" in page
    assert "LinearImageClassifier predicts 'class' right" in str(found)
    assert found.better_than_dummy and found.facts["data"]["rows"] == 40


def test_a_network_for_a_folder_with_a_test_part(tmp_path: Path) -> None:
    root = tmp_path / "data"
    pictures(root / "train", 60)
    pictures(root / "test", 20)
    out, settings = tmp_path / "out", tmp_path / "settings.json"
    given = {"network": "cnn", "network_params": {"channels": [8]}, "max_epochs": 25, "lr": 0.01}
    settings.write_text(json.dumps(given))
    words = [
        "fit",
        str(root),
        "--model",
        "ImageClassifier",
        "--params",
        str(settings),
        "--folds",
        "2",
    ]
    done = CliRunner().invoke(app, [*words, "--device", "cpu", "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    facts = json.loads((out / "report.json").read_text())
    assert facts["design"]["judged"] == 20 and facts["scores"]["accuracy"]["value"] > 0.8
    assert np.sum(facts["pictures"]["taken_for"]["data"]["counts"]) == 20
    page = (out / "report.html").read_text()
    assert "Which picture is taken for which" in page and "Grad-CAM" in page
    model = groundstate.load(out / "model.gs")
    assert model.score(root) == facts["scores"]["accuracy"]["value"]
    new = sorted((root / "test").rglob("*.png"))[:2]
    told = CliRunner().invoke(app, ["predict", str(out / "model.gs"), str(new[0].parent)])
    assert told.exit_code == 0, told.output
    assert told.output.split()[1:] == model.predict(sorted(new[0].parent.glob("*.png"))).tolist()
    assert "ImageClassifier" in candidates_for("image", "classification", "auto", None)


def test_graphs_in_memory_by_value() -> None:
    rng = np.random.default_rng(0)
    X = []
    for _ in range(60):
        n = int(rng.integers(4, 12))
        edges = rng.integers(0, n, (int(rng.integers(3, 30)), 2))
        X.append((np.bincount(edges[:, 1], minlength=n)[:, None], edges))
    y = np.array([len(edges) + 0.5 for _, edges in X])
    found = study_rows(of_rows(X, y, "graph"), folds=2, params={"val_fraction": 0.0})
    assert found.task == "regression" and found.chosen == "GraphRegressor"
    assert found.scores["r2"].estimate > 0.5


def reviews(path: Path, n: int = 60) -> Path:
    rng = np.random.default_rng(0)
    words = [["good", "great", "fine"], ["bad", "poor", "dull"]]
    lines = ["review,label"]
    for i in range(n):
        said = " ".join(rng.choice([*words[i % 2], "the", "film", "was", "very", "so"], 7))
        lines.append(f"number {i} {said},{('yes', 'no')[i % 2]}")
    path.write_text("\n".join(lines))
    return path


def test_texts_beside_a_target(tmp_path: Path) -> None:
    file = reviews(tmp_path / "reviews.csv")
    found: Any = groundstate.study(file, "label", model="BagOfTokensClassifier", folds=2)
    assert (
        found.chosen == "BagOfTokensClassifier"
        and found.facts["data"]["description"] == "text rows"
    )
    assert found.scores["accuracy"].estimate > 0.6
    page = found.report(tmp_path / "out").read_text()
    assert "texts of the column" in page
    told = CliRunner().invoke(app, ["predict", str(tmp_path / "out" / "model.gs"), str(file)])
    assert told.exit_code == 0 and len(told.output.split()) == 61, told.output
    both = candidates_for("text", "classification", "auto", None)
    assert list(both) == ["TextClassifier", "BagOfTokensClassifier", "dummy"]


def test_other_models_and_options_take_the_table(tmp_path: Path) -> None:
    file = reviews(tmp_path / "reviews.csv")
    for options in ({"model": "LogisticRegression"}, {"design": "nested", "model": "GaussianNB"}):
        found: Any = groundstate.study(
            file, "label", tune=0, repeats=1, seeds=0, bootstrap=0, folds=2, **options
        )
        assert found.facts["data"]["columns"] == 2


def test_what_cannot_be_studied(tmp_path: Path) -> None:
    nodes, edges = nodes_and_edges(tmp_path)
    with pytest.raises(DataError, match="say with --target which column"):
        groundstate.study(nodes, edges=edges)
    with pytest.raises(DataError, match="only tables take groups"):
        groundstate.study(nodes, "kind", edges=edges, groups="a")
    with pytest.raises(Unsupported, match="'Ridge' is no classifier of node rows"):
        candidates_for("node", "classification", "Ridge", None)
    with pytest.raises(DataError, match="5 rows with a target are too few"):
        study_rows(of_rows([([[1.0]], [])] * 5, [0, 1, 0, 1, 0], "graph"))
    done = CliRunner().invoke(app, ["fit", str(tmp_path / "empty"), "--target", "y"])
    assert done.exit_code == 2
    (tmp_path / "bare").mkdir()
    done = CliRunner().invoke(app, ["fit", str(tmp_path / "bare")])
    assert done.exit_code == 2 and "Traceback" not in done.output

"""The studio by its questions: what is there, who may ask, and what bad input is told."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sklearn.datasets import load_digits

import groundstate as gs
from groundstate.errors import DataError, Unsupported
from groundstate.models.tables.table import TablePredictor
from groundstate.nn.inspect.summary import summary
from groundstate.studio.app import STATIC, app
from groundstate.studio.examples import EXAMPLES
from groundstate.studio.loaded import Loaded, Shelf
from groundstate.studio.page import pages

RNG = np.random.default_rng(0)
DIGITS = load_digits()
PICTURES = (DIGITS.images[:150] / 16).astype(np.float32)
LABELS = DIGITS.target[:150]
POINTS = np.concatenate([RNG.normal(0, 0.5, (60, 3)), RNG.normal(2, 0.5, (60, 3))])
SIDES = np.repeat(["left", "right"], 60)
LOCAL = "http://127.0.0.1"


@pytest.fixture(scope="module")
def models() -> dict[str, Loaded]:
    cnn = gs.ImageClassifier(
        "cnn", {"channels": (4, 6), "head": "gap"}, max_epochs=2, lr=1e-2, random_state=0
    ).fit(PICTURES[:, None], LABELS)
    vae = gs.VAE(2, likelihood="bernoulli", hidden_layer_sizes=(16,), max_iter=3, random_state=0)
    rows = {"a": POINTS[:, 0].tolist(), "b": POINTS[:, 1].tolist(), "c": SIDES.tolist()}
    table = TablePredictor(gs.LogisticRegression()).fit({"a": rows["a"], "b": rows["b"]}, rows["c"])
    held = [
        Loaded("cnn", cnn, "here", PICTURES[:, None], LABELS),
        Loaded("vae", vae.fit(PICTURES), "here", PICTURES, LABELS),
        Loaded("pca", gs.PCA(3).fit(POINTS), "here", POINTS, SIDES),
        Loaded("qda", gs.QuadraticDiscriminantAnalysis().fit(POINTS, SIDES), "here", POINTS, SIDES),
        Loaded("ridge", gs.Ridge().fit(POINTS[:, :1], POINTS[:, 1]), "", POINTS[:, :1], POINTS[:, 1]),
        Loaded("forest", gs.RandomForestClassifier(3, random_state=0).fit(POINTS, SIDES), ""),
        Loaded("table", table, "here", {"a": rows["a"], "b": rows["b"]}, SIDES),
    ]  # fmt: skip
    return {loaded.key: loaded for loaded in held}


@pytest.fixture(scope="module")
def client(models: dict[str, Loaded]) -> TestClient:
    return TestClient(app(models.values()), base_url=LOCAL)


def ask(client: TestClient, path: str, body: Any = None, code: int = 200) -> Any:
    url = f"/api{path}"
    answer = client.get(url) if body is None else client.post(url, json=body)
    assert answer.status_code == code, answer.text
    return answer.json()


def values(stack: dict[str, Any]) -> np.ndarray:
    """The numbers of a stack of pictures, ``(n, H, W, C)``."""
    raw = np.frombuffer(base64.b64decode(stack["pixels"]), np.uint8) / 255
    shape = [stack[k] for k in ("count", "height", "width", "channels")]
    return stack["low"] + (stack["high"] - stack["low"]) * raw.reshape(shape)


# --- the frame ---------------------------------------------------------------------------


def test_menus_follow_from_what_models_can_do(client: TestClient) -> None:
    front = ask(client, "/studio")
    shown = {
        m["key"]: [w["page"] for w in m["ways"] if w["reason"] is None] for m in front["models"]
    }
    assert shown == {
        "cnn": ["look-inside"],
        "vae": ["latent-plane"],
        "pca": ["latent-plane", "energy"],
        "qda": ["energy"],
        "ridge": ["energy"],
        "forest": ["energy"],
        "table": ["energy"],
    }
    reasons = [w["reason"] for m in front["models"] for w in m["ways"] if w["reason"]]
    assert all(r and not r.endswith(".") for r in reasons)
    assert [p["page"] for p in front["pages"]] == [
        "look-inside",
        "latent-plane",
        "energy",
        "learning",
    ]
    assert {e["name"] for e in front["examples"]} == set(EXAMPLES)


@pytest.mark.parametrize("path", ["/", *(f"/{page.name}" for page in pages)])
def test_every_page_comes_with_its_script_and_loads_nothing_from_elsewhere(
    client: TestClient, path: str
) -> None:
    answer = client.get(path)
    assert answer.status_code == 200 and "default-src 'self'" in answer.headers[
        "content-security-policy"
    ]  # fmt: skip
    linked = re.findall(r'(?:src|href)="(/[^"]+)"', answer.text)
    assert len(linked) >= 2
    for link in linked:
        assert client.get(link).status_code == 200, link
    assert "http://" not in answer.text and "https://" not in answer.text


def test_scripts_ask_for_nothing_from_elsewhere() -> None:
    names = {path.stem for path in STATIC.glob("*.js")}
    assert {"home", *(page.name for page in pages)} <= names
    for path in STATIC.iterdir():
        assert not re.search(r"https?://|//cdn", path.read_text("utf-8")), path.name


def test_only_this_machine_and_its_own_pages_are_answered(client: TestClient) -> None:
    for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}):
        refused = client.get("/api/studio", headers=headers)
        assert refused.status_code == 403 and "error" in refused.json()
    own = client.get("/api/studio", headers={"origin": LOCAL})
    assert own.status_code == 200
    assert client.get("/api/studio", headers={"host": "localhost:8484"}).status_code == 200


def test_bad_questions_get_one_sentence(client: TestClient) -> None:
    assert ask(client, "/models/none", code=404) == {"error": "nothing here is called 'none'"}
    assert (
        "Latent plane cannot show cnn" in ask(client, "/latent-plane/cnn/codes", code=400)["error"]
    )
    missing = {"error": "nothing here is called 'none'"}
    assert client.post("/api/examples/none/fit", json={}).json() == missing
    assert client.post("/api/jobs/none/stop").json() == missing
    wrong = ask(client, "/latent-plane/vae/decode", {"at": "here"}, 400)["error"]
    assert wrong.startswith("at: ") and "\n" not in wrong
    assert "axes 0 to 1" in ask(client, "/latent-plane/vae/codes?i=5", code=400)["error"]
    assert "two different" in ask(client, "/energy/qda/contour", {"i": 1, "j": 1}, 400)["error"]
    assert "2 classes" in ask(client, "/energy/qda/contour", {"y": 7}, 400)["error"]
    assert "64 pixels" in ask(client, "/look-inside/cnn/see", {"pixels": [0.0]}, 400)["error"]
    assert (
        "no layer"
        in ask(client, "/look-inside/cnn/maximise", {"layer": "q", "unit": 0}, 400)["error"]
    )


def test_a_model_says_what_it_can_answer(client: TestClient) -> None:
    told = ask(client, "/models/qda")
    assert told["formula"] and "energy" in told["parts"]
    asked = {(a["operation"], a["free"]): a["method"] for a in told["abilities"]}
    assert {("minimise", "y"), ("sample", "x")} <= set(asked)
    assert ask(client, "/models/cnn")["abilities"] and ask(client, "/models/vae")["learned"]


def test_models_come_from_files(tmp_path: Path, models: dict[str, Loaded]) -> None:
    path = tmp_path / "my pca.gs"
    models["pca"].model.save(path)
    front = ask(TestClient(app([path, str(path)]), base_url=LOCAL), "/studio")
    assert [m["key"] for m in front["models"]] == ["my-pca", "my-pca-2"]
    assert front["models"][0]["name"] == "PCA" and front["models"][0]["n_rows"] == 0
    with pytest.raises(Unsupported, match="give a fitted model"):
        Shelf().add(gs.PCA)
    with pytest.raises(DataError, match="not a model"):
        Shelf().add(3)


# --- look inside -------------------------------------------------------------------------


def test_look_inside_shows_every_map_of_every_layer(
    client: TestClient, models: dict[str, Loaded]
) -> None:
    inside = ask(client, "/look-inside/cnn")
    model = models["cnn"].model
    rows = summary(model.energy_.net, (1, 8, 8)).rows
    assert {layer["name"]: tuple(layer["shape"]) for layer in inside["layers"]} == {
        r.name: r.output_shape for r in rows if len(r.output_shape) == 3
    }
    x = PICTURES[3]
    seen = ask(client, "/look-inside/cnn/see", {"pixels": x.ravel().tolist()})
    assert np.allclose(seen["probabilities"], model.predict_proba(x[None, None])[0], atol=1e-3)
    assert seen["predicted"] == str(model.predict(x[None, None])[0])
    maps = gs.explain.feature_maps(model, x[None, None])
    assert [m["layer"] for m in seen["maps"]] == list(maps)
    for told in seen["maps"]:
        stack, want = told["maps"], maps[told["layer"]][0].numpy()
        off = (stack["high"] - stack["low"]) / 255
        assert np.allclose(values(stack)[..., 0], want, atol=off)
    assert values(seen["cam"]).shape == (1, 8, 8, 1)
    picked = ask(client, "/look-inside/cnn/see", {"row": 0})
    assert len(picked["probabilities"]) == len(inside["classes"]) == 10
    first = inside["layers"][1]
    assert first["filters"]["count"] == 4 and first["filters"]["height"] == 3


def test_ascent_excites_a_unit_more_than_any_picture(client: TestClient) -> None:
    layer = ask(client, "/look-inside/cnn")["layers"][1]["name"]
    for unit in range(2):
        dream = ask(client, "/look-inside/cnn/maximise", {"layer": layer, "unit": unit})
        assert dream["activation"] > dream["best_of_data"]
        assert dream["picture"]["height"] == dream["nearest"]["height"] == 8


# --- latent plane ------------------------------------------------------------------------


def test_the_plane_decodes_what_the_model_decodes(
    client: TestClient, models: dict[str, Loaded]
) -> None:
    vae = models["vae"].model
    codes = ask(client, "/latent-plane/vae/codes")
    assert codes["size"] == 2 and codes["picture"] == [1, 8, 8] and len(codes["labels"]) == 150
    assert np.allclose(codes["points"], vae.transform(PICTURES), atol=1e-3)
    at = [[0.3, -0.7], [1.0, 0.0]]
    shown = values(ask(client, "/latent-plane/vae/decode", {"at": at})["pictures"])
    assert np.allclose(shown[..., 0], vae.inverse_transform(np.array(at)), atol=1 / 255)


def test_the_background_is_the_latent_grid(client: TestClient, models: dict[str, Loaded]) -> None:
    k, r = 5, 2.0
    body = {"k": k, "low": [-r, -r], "high": [r, r]}
    cells = values(ask(client, "/latent-plane/vae/grid", body)["pictures"])[..., 0]
    want = models["vae"].model.latent_grid(k, range=r * (1 - 1 / k))
    assert np.allclose(cells.reshape(k, k, 8, 8), want, atol=1 / 255)


@pytest.mark.parametrize("mode", ["linear", "slerp", "geodesic"])
def test_ways_go_from_point_to_point(client: TestClient, mode: str) -> None:
    body = {"a": [0.5, 0.5], "b": [-0.5, 0.5], "n": 4, "mode": mode}
    walk = ask(client, "/latent-plane/vae/walk", body)
    way = np.array(walk["points"])
    assert np.allclose(way[[0, -1]], [[0.5, 0.5], [-0.5, 0.5]], atol=1e-5)
    assert walk["rows"]["pictures"]["count"] == 4
    if mode == "slerp":
        assert np.allclose(np.hypot(*way.T), np.hypot(0.5, 0.5), atol=1e-5)


def test_other_axes_are_held_and_rows_of_numbers_are_numbers(
    client: TestClient, models: dict[str, Loaded]
) -> None:
    pca = models["pca"].model
    codes = ask(client, "/latent-plane/pca/codes?i=2&j=0")
    assert codes["modes"] == ["linear", "slerp"] and codes["picture"] is None
    z = pca.transform(POINTS)
    held = ask(
        client,
        "/latent-plane/pca/decode",
        {"i": 2, "j": 0, "row": 7, "at": [z[7, [2, 0]].tolist()]},
    )
    assert held["pictures"] is None and np.allclose(held["values"][0], POINTS[7], atol=1e-3)
    mean = ask(client, "/latent-plane/pca/decode", {"at": [[0.0, 0.0]]})
    assert np.allclose(mean["values"][0], POINTS.mean(0), atol=1e-3)
    body = {"a": [0.0, 0.0], "b": [1.0, 0.0], "mode": "geodesic"}
    assert "no metric" in ask(client, "/latent-plane/pca/walk", body, 400)["error"]


# --- energy ------------------------------------------------------------------------------


def test_the_landscape_is_the_energy(client: TestClient, models: dict[str, Loaded]) -> None:
    qda = models["qda"].model
    axes = ask(client, "/energy/qda")
    assert axes["classes"] == ["left", "right"] and not axes["target"]
    land = ask(client, "/energy/qda/contour", {"i": 2, "j": 0, "y": 1, "n": 9})
    u, v = (np.linspace(land["low"][k], land["high"][k], 9) for k in (0, 1))
    rows = np.tile(np.median(POINTS, 0), (81, 1))
    rows[:, 2], rows[:, 0] = (g.ravel() for g in np.meshgrid(u, v))
    assert np.allclose(
        land["energy"], qda.energy(rows, np.repeat("right", 81)), rtol=1e-3, atol=1e-3
    )
    assert len(land["points"]) == 120 and "y = right" in land["words"]
    free = ask(client, "/energy/qda/contour", {"n": 9})
    assert "y summed out" in free["words"]


@pytest.mark.parametrize("steps", ["newton", "adam"])
def test_a_click_starts_a_descent(client: TestClient, steps: str) -> None:
    way = ask(client, "/energy/qda/path", {"at": [1.2, 0.1], "y": 1, "steps": steps})
    assert way["points"][0] == [1.2, 0.1] and way["energy"][-1] < way["energy"][0]
    assert "steps, energy" in way["words"]


def test_with_y_on_an_axis_the_descent_is_the_prediction(
    client: TestClient, models: dict[str, Loaded]
) -> None:
    assert ask(client, "/energy/ridge")["columns"] == ["x0", "y"]
    way = ask(client, "/energy/ridge/path", {"at": [0.5, 3.0], "steps": "newton"})
    x, y = way["points"][-1]
    assert x == 0.5 and y == pytest.approx(models["ridge"].model.predict([[0.5]])[0], abs=1e-4)
    land = ask(client, "/energy/ridge/contour", {"n": 8})
    assert min(e for e in land["energy"]) >= 0


def test_a_table_is_shown_as_its_estimator_sees_it(
    client: TestClient, models: dict[str, Loaded]
) -> None:
    axes = ask(client, "/energy/table")
    assert len(axes["columns"]) == 2
    land = ask(client, "/energy/table/contour", {"y": 0, "n": 8})
    seen = models["table"].model.prepare({"a": POINTS[:, 0].tolist(), "b": POINTS[:, 1].tolist()})
    assert np.allclose(land["points"], np.asarray(seen), atol=1e-3)


def test_a_model_without_rows_or_slope_says_so(client: TestClient) -> None:
    land = ask(client, "/energy/forest/contour", {"y": 0, "n": 8})
    assert land["points"] == [] and land["low"] == [-3, -3]
    refused = ask(client, "/energy/forest/path", {"at": [0.0, 0.0], "y": 0}, 400)["error"]
    assert "no gradient" in refused


def test_every_question_is_typed(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    for path, methods in paths.items():
        for method in methods.values():
            schema = method["responses"]["200"]["content"]["application/json"]["schema"]
            assert "$ref" in schema, path
    assert json.dumps(paths)

"""Fits in the background: their curves, pause, stop, and what goes wrong."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import groundstate as gs
from groundstate.studio import front
from groundstate.studio.app import app
from groundstate.studio.examples import EXAMPLES, Example
from groundstate.studio.jobs import Jobs
from groundstate.studio.loaded import Shelf

X = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)


def vae(**settings: Any) -> Any:
    def fit(callbacks: list[Any]) -> tuple[Any, Any, Any]:
        own = {"hidden_layer_sizes": (4,), "max_iter": 4, "random_state": 0, **settings}
        return gs.VAE(2, callbacks=callbacks, **own).fit(X), X, None

    return fit


def test_a_fit_ends_on_the_shelf_with_its_curve() -> None:
    shelf = Shelf()
    jobs = Jobs(shelf)
    job = jobs.wait(jobs.start("a VAE", "vae", "none", {}, vae()).id, 60)
    assert job.state == "done" and job.key == "vae" and len(job.curve) == job.epochs == 4
    assert shelf["vae"].model.callbacks is None and shelf["vae"].rows is not None
    alone = vae()([])[0]
    assert np.array_equal(
        alone.transform(X), shelf["vae"].model.transform(X)
    )  # watching changes nothing


def test_pause_waits_and_stop_keeps_what_was_learned() -> None:
    jobs = Jobs(Shelf())
    begun = threading.Event()
    job = jobs.start(
        "long", "long", "none", {}, _announced(vae(max_iter=10**6, n_iter_no_change=np.inf), begun)
    )
    assert begun.wait(60)
    job.pause()
    assert job.state == "paused"
    threading.Event().wait(0.3)  # the epoch that runs may end
    seen = len(job.curve)
    threading.Event().wait(0.3)
    assert len(job.curve) == seen
    job.resume()
    assert job.state == "running"
    job.stop()
    assert jobs.wait(job.id, 60).state == "stopped" and job.key == "long"
    job.pause()
    assert job.state == "stopped"  # what has ended stays so


def _announced(fit: Any, begun: threading.Event) -> Any:
    def run(callbacks: list[Any]) -> Any:
        watch = callbacks[0]
        after = watch.on_epoch

        def on_epoch(state: Any) -> Any:
            begun.set()
            return after(state)

        watch.on_epoch = on_epoch
        return fit(callbacks)

    return run


def test_a_fit_that_fails_says_why() -> None:
    jobs = Jobs(Shelf())
    job = jobs.wait(jobs.start("bad", "bad", "none", {}, vae(likelihood="wrong")).id, 60)
    assert job.state == "failed" and job.key is None
    assert job.error is not None and "likelihood" in job.error and "\n" not in job.error


def test_examples_are_fitted_by_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Example(
        "tiny", "Tiny", "small", "VAE", lambda: (X, None), {"max_iter": 3, "learning_rate_init": 0.01,
        "hidden_layer_sizes": (4,)}, "max_iter", "learning_rate_init",
    )  # fmt: skip
    monkeypatch.setitem(EXAMPLES, "tiny", own)
    assert front.EXAMPLES is EXAMPLES
    built = app()
    client = TestClient(built, base_url="http://127.0.0.1")
    begun = client.post(
        "/api/examples/tiny/fit", json={"epochs": 2, "rate": 0.02, "seed": 1}
    ).json()
    assert begun["settings"] == {"epochs": 2, "rate": 0.02, "seed": 1}
    built.state.studio.jobs.wait(begun["id"], 60)
    done = client.get(f"/api/jobs/{begun['id']}").json()
    assert done["state"] == "done" and done["epoch"] == 2 and done["key"] == "tiny"
    model = built.state.studio.shelf["tiny"].model
    assert (model.learning_rate_init, model.random_state) == (0.02, 1)
    assert client.post(f"/api/jobs/{begun['id']}/stop").json()["state"] == "done"
    assert client.post(f"/api/jobs/{begun['id']}/jump").status_code == 400
    assert client.post("/api/examples/none/fit", json={}).status_code == 404
    assert client.post("/api/examples/tiny/fit", json={"epochs": 0}).status_code == 400


@pytest.mark.slow
@pytest.mark.parametrize("name", list(EXAMPLES))
def test_examples_learn(name: str) -> None:
    example = EXAMPLES[name]
    model, rows, labels = example.fit({})([])
    if example.labelled:
        assert model.score(rows, labels) > 0.9
    else:
        objective = model.history_.objective
        assert objective[-1] < objective[0]

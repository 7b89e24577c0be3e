"""What every page asks: which models are there, what each can answer, and the fits that run."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from groundstate.errors import Unsupported
from groundstate.models.explain import explain
from groundstate.models.words import plain as in_words
from groundstate.studio.examples import EXAMPLES
from groundstate.studio.jobs import Job
from groundstate.studio.loaded import Loaded, NotHere
from groundstate.studio.page import Studio, pages
from groundstate.studio.pixels import plain


class Way(BaseModel):
    """A page, and for a model whether it is shown there or why not."""

    page: str
    title: str
    summary: str
    reason: str | None = None


class Held(BaseModel):
    """A model that is there."""

    key: str
    name: str
    task: str
    rows: str
    source: str
    n_rows: int
    ways: list[Way]


class Offered(BaseModel):
    """An example that can be fitted."""

    name: str
    title: str
    words: str
    model: str
    epochs: int
    rate: float


class Fitting(BaseModel):
    """A fit: how far it is, and its curve."""

    id: str
    title: str
    example: str
    settings: dict[str, float]
    state: Literal["running", "paused", "done", "stopped", "failed"]
    epoch: int
    epochs: int
    seconds: float
    curve: list[float | None]
    key: str | None
    error: str | None


class Front(BaseModel):
    """Everything that menus are made of."""

    models: list[Held]
    pages: list[Way]
    examples: list[Offered]
    jobs: list[Fitting]


class Ability(BaseModel):
    """One question that a model answers."""

    free: str
    operation: str
    method: str
    exact: bool


class About(BaseModel):
    """What a model is made of."""

    key: str
    name: str
    summary: str
    formula: str
    parts: dict[str, str]
    abilities: list[Ability]
    learned: dict[str, Any]
    curve: list[float | None]


class Settings(BaseModel):
    """How an example is fitted; what is left out stays as it is."""

    epochs: int | None = Field(default=None, ge=1, le=1000)
    rate: float | None = Field(default=None, gt=0, le=10)
    seed: int = Field(default=0, ge=0, lt=2**31)


def front(studio: Studio) -> APIRouter:
    """The questions of the first page."""
    router = APIRouter(tags=["Studio"])

    @router.get("/studio")
    def everything() -> Front:
        return Front(
            models=[_held(loaded) for loaded in studio.shelf],
            pages=[Way(page=p.name, title=p.title, summary=p.summary) for p in _pages()],
            examples=[
                Offered(
                    name=e.name, title=e.title, words=e.words, model=e.model,
                    epochs=e.settings[e.epochs], rate=e.settings[e.rate],
                )
                for e in EXAMPLES.values()
            ],
            jobs=[_fitting(job) for job in studio.jobs],
        )  # fmt: skip

    @router.get("/models/{key}")
    def about(key: str) -> About:
        return _about(studio.shelf[key])

    @router.post("/examples/{name}/fit")
    def fit(name: str, settings: Settings) -> Fitting:
        if name not in EXAMPLES:
            raise NotHere(name)
        example = EXAMPLES[name]
        chosen = {k: float(v) for k, v in settings.model_dump().items() if v is not None}
        return _fitting(
            studio.jobs.start(
                example.title, example.name, example.name, chosen, example.fit(chosen)
            )
        )

    @router.get("/jobs/{id}")
    def job(id: str) -> Fitting:
        return _fitting(studio.jobs[id])

    @router.post("/jobs/{id}/{action}")
    def act(id: str, action: Literal["pause", "resume", "stop"]) -> Fitting:
        found = studio.jobs[id]
        {"pause": found.pause, "resume": found.resume, "stop": found.stop}[action]()
        return _fitting(found)

    return router


def _pages() -> list[Any]:
    return sorted(pages, key=lambda page: page.order)


def _held(loaded: Loaded) -> Held:
    ways = [
        Way(page=p.name, title=p.title, summary=p.summary, reason=p.reason_against(loaded))
        for p in _pages()
        if p.about_models
    ]
    return Held(
        key=loaded.key, name=loaded.name, task=getattr(loaded.row, "task", "model"),
        rows=loaded.kind, source=loaded.source, ways=ways,
        n_rows=0 if loaded.rows is None else len(loaded.rows),
    )  # fmt: skip


def _about(loaded: Loaded) -> About:
    history = getattr(loaded.estimator, "history_", None)
    curve = plain(list(getattr(history, "objective", None) or []))
    try:
        with loaded.lock:
            explained = explain(loaded.estimator)
    except Unsupported as reason:
        return About(
            key=loaded.key, name=loaded.name, summary=str(reason), formula="", parts={},
            abilities=[], learned={}, curve=curve,
        )  # fmt: skip
    named = {
        "energy": explained.energy,
        "learning rule": explained.rule,
        "penalty": explained.penalty,
        "solver": explained.solver,
    }
    return About(
        key=loaded.key, name=explained.name, summary=explained.summary, formula=in_words(explained.formula),
        parts={
            what: f"{part.name}: {in_words(part.formula)}" if part.formula else part.name
            for what, part in named.items()
            if part is not None
        },
        abilities=[
            Ability(free=a.free, operation=a.operation, method=a.method, exact=a.exact)
            for a in explained.inference
        ],
        learned=explained.learned, curve=curve,
    )  # fmt: skip


def _fitting(job: Job) -> Fitting:
    return Fitting(
        id=job.id, title=job.title, example=job.example, settings=job.settings, state=job.state,
        epoch=len(job.curve), epochs=job.epochs, seconds=round(job.seconds, 2),
        curve=plain(job.curve), key=job.key, error=job.error,
    )  # fmt: skip

"""The studio as an application: fitted models in, pages and their questions out."""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles

from groundstate import __version__
from groundstate.errors import GroundstateError
from groundstate.studio.front import front
from groundstate.studio.guard import guard
from groundstate.studio.jobs import Jobs
from groundstate.studio.loaded import NotHere, Shelf
from groundstate.studio.page import Studio, pages

STATIC = Path(__file__).parent / "static"


def app(models: Iterable[Any] = ()) -> FastAPI:
    """The studio's application, to be served on the loopback or asked by a test client.

    Parameters
    ----------
    models : fitted models, paths of saved ones (``.gs``), or
        :class:`~groundstate.studio.loaded.Loaded`, which bring rows to draw

    Examples
    --------
    >>> from groundstate import PCA
    >>> studio = app([PCA(2).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])])
    >>> "/api/latent-plane/{key}/codes" in studio.openapi()["paths"]
    True
    """
    shelf = Shelf()
    for model in models:
        shelf.add(model)
    studio = Studio(shelf, Jobs(shelf))
    # no pages of documentation: they would load scripts from elsewhere
    built = FastAPI(title="groundstate studio", version=__version__, docs_url=None, redoc_url=None)
    built.middleware("http")(guard)
    built.state.studio = studio
    for kind in (GroundstateError, ValueError, ArithmeticError, RequestValidationError):
        built.add_exception_handler(kind, _bad_input)
    built.add_exception_handler(NotHere, _unknown)
    built.include_router(front(studio), prefix="/api")
    for page in pages:
        built.include_router(page.obj(studio), prefix=f"/api/{page.name}", tags=[page.title])
        built.add_api_route(f"/{page.name}", _shown(page.name, page.title), include_in_schema=False)
    built.add_api_route("/", _shown("home", "Studio"), include_in_schema=False)
    built.mount("/static", StaticFiles(directory=STATIC), name="static")
    return built


def _shown(name: str, title: str) -> Any:
    """The frame that every page shares; its script draws what is inside."""
    frame = (STATIC / "frame.html").read_text(encoding="utf-8")
    text = frame.replace("{{title}}", html.escape(title)).replace("{{page}}", html.escape(name))

    def page() -> HTMLResponse:
        return HTMLResponse(text)

    return page


async def _bad_input(request: Request, error: Exception) -> Response:
    """What people can put right, in one sentence."""
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query"))
        message = f"{where}: {first['msg']}" if where else str(first["msg"])
    else:
        message = str(error)
    return JSONResponse({"error": " ".join(message.split())}, status_code=400)


async def _unknown(request: Request, error: Exception) -> Response:
    name = error.args[0] if error.args else "?"
    return JSONResponse({"error": f"nothing here is called {name!r}"}, status_code=404)

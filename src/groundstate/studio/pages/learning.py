"""Watch fits learn, and keep a hand on them."""

from __future__ import annotations

from fastapi import APIRouter

from groundstate.studio.page import Studio, pages


@pages.register("learning", title="Learning", order=4, about_models=False)
def learning(studio: Studio) -> APIRouter:
    """The objective of small fits while they run, side by side; pause and stop them."""
    return APIRouter()  # the fits are asked for by every page: see `groundstate.studio.front`

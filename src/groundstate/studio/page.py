"""What a page is: its name, which models it can show, and its questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from groundstate.errors import Unsupported
from groundstate.registry import Registry, Row
from groundstate.studio.jobs import Jobs
from groundstate.studio.loaded import Loaded, Shelf


@dataclass(frozen=True)
class Studio:
    """What the pages share: the models that are there and the fits that run."""

    shelf: Shelf
    jobs: Jobs

    def ask(self, page: str, key: str) -> Loaded:
        """The model of this key, if the page can show it; the error says why not."""
        loaded = self.shelf[key]
        reason = pages[page].reason_against(loaded)
        if reason is not None:
            raise Unsupported(f"{pages[page].title} cannot show {loaded.key}: {reason}")
        return loaded


@dataclass(frozen=True, kw_only=True)
class PageRow(Row):
    """A page; the registered object makes its router from a `Studio`.

    Attributes
    ----------
    title : in the menu
    order : place in the menu
    shows : kind of rows ("image", "table") of the models it shows, None for any
    task : of the models it shows, as they are registered; None for any
    needs : questions that a model must answer, by the names of its methods
    against : what only a fitted model tells: a reason why it cannot be shown, or None
    about_models : False for a page that needs no model
    """

    title: str
    order: int
    shows: str | None = None
    task: str | None = None
    needs: tuple[str, ...] = ()
    against: Callable[[Loaded], str | None] | None = field(default=None, repr=False, compare=False)
    about_models: bool = True

    def reason_against(self, loaded: Loaded) -> str | None:
        """Why a model is not shown here, None when it is."""
        if self.shows is not None and loaded.kind != self.shows:
            return f"it takes {loaded.kind} rows, this page shows models of {self.shows} rows"
        if self.task is not None and getattr(loaded.row, "task", None) != self.task:
            return f"it is no model of {self.task}"
        for name in self.needs:
            if not hasattr(loaded.estimator, name):
                return f"{loaded.name} has no {name}"
        return None if self.against is None else self.against(loaded)


pages = Registry("page", PageRow, "groundstate.studio.pages")

"""REPORT: the main job on a table, and what it leaves behind: pictures, a page, numbers, a script."""

from __future__ import annotations

from groundstate.report.facts import facts, fingerprint
from groundstate.report.html import html
from groundstate.report.pictures import pictures
from groundstate.report.script import script
from groundstate.report.study import Settings, Study, study
from groundstate.report.svg import Picture, inline_svg
from groundstate.report.verdict import verdict
from groundstate.report.write import write

__all__ = [
    "Picture",
    "Settings",
    "Study",
    "facts",
    "fingerprint",
    "html",
    "inline_svg",
    "pictures",
    "script",
    "study",
    "verdict",
    "write",
]

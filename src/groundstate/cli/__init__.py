"""CLI: the command line, ``groundstate fit | assess | predict | ...``."""

from __future__ import annotations


def main() -> None:
    """Run the command line and leave with its exit code: 0 fine, 1 a claim failed, 2 bad input.

    ``fit`` and ``assess`` add 3, not better than a constant answer, and 4, a leak with --strict.
    """
    from groundstate.cli.app import app

    app(prog_name="groundstate")


__all__ = ["main"]

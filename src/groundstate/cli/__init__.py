"""CLI: the command line, ``groundstate fit | predict | infer | sample | models | run | bench``."""

from __future__ import annotations


def main() -> None:
    """Run the command line and leave with its exit code: 0 fine, 1 a claim failed, 2 bad input."""
    from groundstate.cli.app import app

    app(prog_name="groundstate")


__all__ = ["main"]

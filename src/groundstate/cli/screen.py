"""What a command shows: text or one JSON document, and progress as the place allows."""

from __future__ import annotations

import json as jsonlib
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groundstate.errors import DataError
from groundstate.study.progress import progress_line

if TYPE_CHECKING:
    import polars as pl

_PIPE_WIDTH = 160
_EVERY = 10.0  # seconds between lines of progress in a log


class Screen:
    """Where a command writes.

    Parameters
    ----------
    json : print one JSON document and nothing else on standard output
    progress : show what is going on: live on a terminal; elsewhere, in a log or a notebook, as a
        line now and then of what takes long
    """

    def __init__(self, json: bool = False, progress: bool = True) -> None:
        self.json = json
        self.lines = progress and not json
        self.live = self.lines and sys.stderr.isatty()

    def show(self, *parts: Any) -> None:
        """Print text or rich renderables; silent in JSON mode."""
        if self.json:
            return
        from rich.console import Console

        width = None if sys.stdout.isatty() else _PIPE_WIDTH
        console = Console(width=width, highlight=False)
        for part in parts:
            console.print(part, markup=False, soft_wrap=isinstance(part, str))

    def data(self, value: Any) -> None:
        """Print the JSON document; silent in text mode."""
        if self.json:
            text = jsonlib.dumps(value, indent=2, ensure_ascii=False, default=str)
            sys.stdout.write(text + "\n")

    @contextmanager
    def stages(self) -> Iterator[Callable[[str], None]]:
        """A function that is called with what happens next."""
        if not self.live:
            yield _Log(self.lines)
            return
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
        with console.status("starting") as status, _logged(console.print):
            yield lambda stage: status.update(progress_line(stage))

    def frame(self, frame: pl.DataFrame, out: str) -> None:
        """Rows as CSV, or JSON, on standard output or in a file that appears whole or not."""
        if out == "-":
            if self.json:
                self.data(frame.to_dicts())
            else:
                sys.stdout.write(frame.write_csv())
            return
        from groundstate.store import write_bytes

        write_bytes(out, _encoded(frame, Path(out).suffix.lower()))
        self.show(f"{frame.height:,} rows written to {out}")
        self.data({"rows": frame.height, "out": out})

    def frames(self, blocks: Iterator[pl.DataFrame], out: str) -> None:
        """Blocks of rows as one table; as CSV they are written one by one."""
        import polars as pl

        if Path(out).suffix.lower() not in (".csv", "") or (self.json and out == "-"):
            self.frame(pl.concat(list(blocks)), out)
        elif out == "-":
            for i, block in enumerate(blocks):
                sys.stdout.write(block.write_csv(include_header=i == 0))
        else:
            from groundstate.store.atomic import atomic_file

            rows = 0
            with atomic_file(out) as file:
                for i, block in enumerate(blocks):
                    file.write(block.write_csv(include_header=i == 0).encode())
                    rows += block.height
            self.show(f"{rows:,} rows written to {out}")
            self.data({"rows": rows, "out": out})


class _Log:
    """Progress where nothing can be overwritten: a line every few seconds at most."""

    def __init__(self, shown: bool) -> None:
        self.shown, self.last = shown, time.monotonic()

    def __call__(self, stage: str) -> None:
        now = time.monotonic()
        if self.shown and now - self.last >= _EVERY:
            self.last = now
            sys.stderr.write(f"{progress_line(stage)}\n")


class _Lines(logging.Handler):
    """Shows every record as a line."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self.show = show

    def emit(self, record: logging.LogRecord) -> None:
        self.show(record.getMessage())


@contextmanager
def _logged(show: Callable[[str], None]) -> Iterator[None]:
    """What the library logs inside the block is shown: that it compiles, for instance."""
    logger, handler = logging.getLogger("groundstate"), _Lines(show)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _encoded(frame: pl.DataFrame, suffix: str) -> bytes:
    from io import BytesIO

    if suffix == ".parquet":
        stream = BytesIO()
        frame.write_parquet(stream)
        return stream.getvalue()
    if suffix in (".jsonl", ".ndjson"):
        return frame.write_ndjson().encode()
    if suffix in (".csv", ""):
        return frame.write_csv().encode()
    raise DataError(f"rows are written as .csv, .jsonl or .parquet, not {suffix!r}; rename --out")

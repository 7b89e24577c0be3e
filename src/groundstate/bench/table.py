"""The result of a benchmark: rows, ratios, a rich table, and a CSV that holds many machines."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, kw_only=True)
class BenchRow:
    """One contestant at one size."""

    size: str
    contestant: str
    ours: bool
    median_s: float
    min_s: float
    max_s: float
    repeats: int
    calls: int  # calls per timing
    peak_mib: float
    device_mib: float
    score: float
    version: str
    cpu_s: float | None = None  # least processor time of a call, which other programs hardly change


@dataclass(frozen=True, kw_only=True)
class BenchTable:
    """All rows of one run, with the machine and the versions they were measured on."""

    name: str
    title: str
    score_name: str
    better: str
    target: float | None
    rows: tuple[BenchRow, ...]
    absent: tuple[str, ...]
    machine: str
    threads: int
    versions: str
    date: str
    commit: str
    margin: float | None = None

    def best_peer(self, size: str) -> BenchRow | None:
        """Return the fastest peer at a size, of those that did the job as well as ours where a
        ``margin`` says what that means."""
        peers = [row for row in self.rows if row.size == size and not row.ours]
        as_good = [row for row in peers if self._as_good(row)]
        return min(as_good or peers, key=lambda row: row.median_s, default=None)

    def _as_good(self, peer: BenchRow) -> bool:
        ours = [row.score for row in self.rows if row.size == peer.size and row.ours]
        if self.margin is None or not ours:
            return True
        sign = 1.0 if self.better == "low" else -1.0
        least = max(sign * score for score in ours)
        return sign * peer.score <= least + self.margin * abs(least)

    def speed(self, row: BenchRow) -> float | None:
        """Return how many times as fast as the best peer a row is (2 is half the time)."""
        peer = self.best_peer(row.size)
        return None if peer is None else peer.median_s / row.median_s

    def to_rich(self) -> Table:
        """Return a table for the terminal."""
        from rich.table import Table

        caption = f"{self.machine}; {self.threads} threads; {self.versions}; {self.date}"
        if self.absent:
            caption += f"\nnot installed: {', '.join(self.absent)}"
        if self.target is not None:
            caption += f"\npromised speed: {self.target:g}x"
        if self.margin is not None:
            caption += f"\npeers that end more than {self.margin:.0%} worse set no speed"
        table = Table(title=self.title, caption=caption, caption_justify="left")
        table.add_column("size")
        table.add_column("contestant")
        score = f"{self.score_name} ({self.better} is good)"
        for name in ("time", "speed", "processor", "peak memory", score):
            table.add_column(name, justify="right")
        last = ""
        for row in self.rows:
            if last and row.size != last:
                table.add_section()
            speed = self.speed(row)
            table.add_row(
                "" if row.size == last else row.size,
                row.contestant,
                show_seconds(row.median_s),
                "" if speed is None else f"{speed:.2f}x",
                "" if row.cpu_s is None else show_seconds(row.cpu_s),
                f"{row.peak_mib + row.device_mib:.1f} MiB",
                f"{row.score:.6g}",
                style="bold" if row.ours else None,
            )
            last = row.size
        return table

    def records(self) -> list[dict[str, Any]]:
        """Return one flat record per row, as the CSV and ``--json`` hold it."""
        return [
            {
                "benchmark": self.name,
                **asdict(row),
                "speed": self.speed(row),
                "score_name": self.score_name,
                "better": self.better,
                "machine": self.machine,
                "threads": self.threads,
                "versions": self.versions,
                "date": self.date,
                "commit": self.commit,
            }
            for row in self.rows
        ]

    def to_csv(self, path: str | Path) -> Path:
        """Write the rows; rows of other machines or sizes that the file already holds are kept."""
        path = Path(path)
        old = read_csv(path) if path.is_file() else []
        replaced = {(self.machine, row.size) for row in self.rows}
        kept = [row for row in old if (row.get("machine"), row.get("size")) not in replaced]
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows([*kept, *({k: _cell(v) for k, v in r.items()} for r in self.records())])
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            draft.write_text(text.getvalue(), encoding="utf-8")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        return path


COLUMNS = (
    "benchmark",
    *(field.name for field in fields(BenchRow)),
    *("speed", "score_name", "better", "machine", "threads", "versions", "date", "commit"),
)


def read_csv(path: str | Path) -> list[dict[str, str]]:
    """Return the rows of a results file as text."""
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def show_seconds(value: float) -> str:
    """Return a time with a unit that suits it.

    >>> show_seconds(0.00123), show_seconds(2.5), show_seconds(4e-6)
    ('1.23 ms', '2.50 s', '4.00 µs')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.2f} {unit}"
    return f"{value / 1e-6:.2f} µs"


def _cell(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value

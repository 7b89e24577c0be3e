"""What a benchmark declares, and where benchmarks are found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Literal

from groundstate.errors import GroundstateError

Data = Mapping[str, Any]
Run = Callable[[Any], Any]


class NoBenchmark(GroundstateError, LookupError):
    """A benchmark, or the folder that holds benchmarks, was asked for and is not there."""


@dataclass(frozen=True)
class Peer:
    """A contestant from another library: how to run it, and the package it needs."""

    run: Run
    package: str = ""  # distribution, for the version; empty: nothing but the core is needed
    module: str = ""  # import name where it differs from the distribution

    @property
    def installed(self) -> bool:
        """Whether the peer can run here."""
        return not self.package or find_spec(self.module or self.package) is not None


@dataclass(frozen=True)
class Benchmark:
    r"""One job at three sizes, done by groundstate and by its peers.

    Every contestant does ``result = run(data)``, which alone is timed; ``score(data, result)`` then
    says how well the job was done, so that a fast wrong answer is seen as such.

    Parameters
    ----------
    name, title : short name for the command line; what is measured, in words
    sizes : three labels with whatever ``data`` needs to know about the size
    data : ``data(size, seed)`` builds the input that all contestants share
    ours : one callable, or several by name
    peers : callables or `Peer` by name
    score : objective or score of a result
    score_name : what that number is
    better : whether a low or a high score is good
    target : the speed, ours over the best peer, that the project promises, if any
    margin : how much worse than ours, relative to ours, a peer's score may be for its time to count;
        None counts every peer

    Examples
    --------
    >>> bench = Benchmark(
    ...     name="sum", title="Sum of a list", sizes={"small": 10, "medium": 100, "large": 1000},
    ...     data=lambda size, seed: {"x": list(range(size))},
    ...     ours=lambda data: sum(data["x"]),
    ...     peers={"fsum": lambda data: __import__("math").fsum(data["x"])},
    ...     score=lambda data, result: float(result), score_name="sum", better="high",
    ... )
    >>> list(bench.contestants())
    ['groundstate', 'fsum']
    """

    name: str
    title: str
    sizes: Mapping[str, Any]
    data: Callable[[Any, int], Data]
    ours: Run | Mapping[str, Run]
    peers: Mapping[str, Run | Peer]
    score: Callable[[Any, Any], float]
    score_name: str
    better: Literal["low", "high"] = "low"
    target: float | None = None
    margin: float | None = None
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if len(self.sizes) < 3:
            raise ValueError(
                f"benchmark {self.name!r} has {len(self.sizes)} sizes; give at least three, so that the"
                " table shows how the cost grows"
            )

    def contestants(self) -> dict[str, tuple[bool, Peer]]:
        """Return every contestant by name, ours first, as (is ours, how to run it)."""
        ours = self.ours if isinstance(self.ours, Mapping) else {"groundstate": self.ours}
        rows = {name: (True, Peer(run)) for name, run in ours.items()}
        for name, peer in self.peers.items():
            rows[name] = (False, peer if isinstance(peer, Peer) else Peer(peer))
        return rows


def folder() -> Path:
    """Return ``bench/`` of the source checkout that is installed, or of the working directory."""
    for root in (Path(__file__).resolve().parents[3], Path.cwd()):
        if (root / "bench").is_dir() and (root / "pyproject.toml").is_file():
            return root / "bench"
    raise NoBenchmark(
        "benchmarks live in bench/ of a source checkout and there is none here; clone the"
        " repository, install it with `make install` and run the command from its root"
    )


def discover(where: Path | None = None) -> dict[str, Benchmark]:
    """Return the benchmarks found in the files of ``where`` (default `folder`), by name."""
    found: dict[str, Benchmark] = {}
    for path in sorted((where or folder()).glob("*.py")):
        for value in vars(_load(path)).values():
            if isinstance(value, Benchmark):
                if value.name in found:
                    raise ValueError(f"two benchmarks are named {value.name!r}; one is in {path}")
                object.__setattr__(value, "source", path.name)
                found[value.name] = value
    return found


def find(name: str, where: Path | None = None) -> Benchmark:
    """Return one benchmark by name."""
    found = discover(where)
    if name not in found:
        near = get_close_matches(name, found, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(found)}."
        raise NoBenchmark(f"there is no benchmark named {name!r}; {hint}")
    return found[name]


def _load(path: Path) -> Any:
    name = f"groundstate_bench_{path.stem}"
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickling look modules up by name
    spec.loader.exec_module(module)
    return module

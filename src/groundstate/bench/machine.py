"""What a measurement was taken on: processor, accelerator, versions, date, commit."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = ("groundstate", "numpy", "scipy", "torch", "scikit-learn", "numba")


def machine() -> str:
    """Return processor, usable cores and accelerator in words."""
    words = [f"{_cpu()}, {cores()} cores"]
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        words.append(torch.cuda.get_device_name())
    return " + ".join(words)


def cores() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads() -> int:
    """Return how many threads one operation may use."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return int(torch.get_num_threads())
    return int(os.environ.get("OMP_NUM_THREADS") or cores())


def package_version(package: str) -> str:
    """Return the installed version of a distribution, or an empty string."""
    if not package:
        return ""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def versions(peers: tuple[str, ...] = ()) -> str:
    """Return ``name version`` of Python, the libraries and the peers, joined by semicolons."""
    names = dict.fromkeys((*LIBRARIES, *(peer for peer in peers if peer)))
    rows = [f"{name} {found}" for name in names if (found := package_version(name))]
    return "; ".join([f"python {platform.python_version()}", *rows])


def today() -> str:
    """Return the date in UTC."""
    return datetime.now(UTC).date().isoformat()


def commit(root: Path) -> str:
    """Return the short commit of a checkout, with ``+`` when files differ from it, or nothing."""
    try:
        head = _git(root, "rev-parse", "--short", "HEAD")
        return head + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, text=True, check=True, timeout=10
    )
    return done.stdout.strip()


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return " ".join(line.split(":", 1)[1].split())
    return platform.processor() or platform.machine()

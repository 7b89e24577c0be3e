"""The room's names are lazy and complete."""

from __future__ import annotations

import subprocess
import sys

import pytest

import groundstate.compute as compute


def test_every_export_resolves() -> None:
    assert sorted(compute.__all__) == sorted(compute._HOME)
    for name in compute.__all__:
        assert getattr(compute, name) is not None
    assert dir(compute) == sorted(compute.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        compute.nothing  # noqa: B018


def test_keys_need_no_torch() -> None:
    code = "import sys; from groundstate.compute import Key; Key.of(0); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

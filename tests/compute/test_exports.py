"""What a part of the room needs."""

from __future__ import annotations

import subprocess
import sys


def test_keys_need_no_torch() -> None:
    code = "import sys; from groundstate.compute import Key; Key.of(0); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

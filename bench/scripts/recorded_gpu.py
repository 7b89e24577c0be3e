"""Steps recorded as CUDA graphs beside the same steps launched one by one: the same weights, and the time.

``python bench/scripts/recorded_gpu.py``: sequence, picture and language networks with dropout, plain and
compiled, fitted with recorded steps and without. ``gap`` is the largest difference of a weight, 0 where
all bits agree; ``gap_of_two`` that of two fits launched one by one. Results go to ``$OUT/recorded-gpu.csv``.
"""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import groundstate
from groundstate.learn.train import run

FIELDS = ("network", "compiled", "recorded_s", "launched_s", "times", "gap", "gap_of_two")
RECORD = run.captured_step


def sequences(network: str, **settings: Any) -> Any:
    def fit(compiled: bool) -> Any:
        rng = np.random.default_rng(0)
        X = torch.from_numpy(rng.normal(size=(4096, 32, 8)).astype(np.float32)).cuda()
        y = torch.from_numpy(rng.integers(0, 4, 4096)).cuda()
        return groundstate.SequenceClassifier(
            network, max_epochs=6, batch_size=128, val_fraction=0.0, patience=None,
            precision="32", compile=compiled, random_state=0, **settings,
        ).fit(X, y)  # fmt: skip

    return fit


def language(compiled: bool) -> Any:
    text = "".join(np.random.default_rng(0).choice(list("abcdefgh "), 40_000))
    return groundstate.LanguageModel(
        "gpt", 64, tokenizer="char", dim=128, layers=3, heads=4, dropout=0.2, stride=32, max_epochs=3,
        batch_size=32, val_fraction=0.0, patience=None, precision="32", compile=compiled,
        device="cuda", random_state=0,
    ).fit([text])  # fmt: skip


def fitted(fit: Any, compiled: bool, recorded: bool) -> tuple[float, torch.Tensor]:
    run.captured_step = RECORD if recorded else lambda training: None
    torch.cuda.synchronize()
    start = time.perf_counter()
    model = fit(compiled)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    return seconds, torch.cat([p.detach().flatten() for p in model.network_.parameters()])


def main() -> None:
    cases = {
        "gru": sequences("gru"),
        "lstm": sequences("lstm"),
        "tcn": sequences("tcn"),
        "transformer": sequences("transformer"),
        "gpt, dropout .2": language,
    }
    rows = []
    for name, fit in cases.items():
        for compiled in (False, True) if name.startswith(("gpt", "transformer")) else (False,):
            try:
                fitted(fit, compiled, True)  # compiles
                with_record, theta = fitted(fit, compiled, True)
                without, other = fitted(fit, compiled, False)
                _, again = fitted(fit, compiled, False)
            except Exception as error:  # one network that cannot run leaves the others
                print(f"{name}: {type(error).__name__}: {error}")
                continue
            gap, of_two = (float((a - other).abs().max()) for a in (theta, again))
            rows.append((name, compiled, f"{with_record:.3f}", f"{without:.3f}",
                         f"{without / with_record:.2f}", f"{gap:.3g}", f"{of_two:.3g}"))  # fmt: skip
            print(*rows[-1], flush=True)
    if out := os.environ.get("OUT"):
        with (Path(out) / "recorded-gpu.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(FIELDS)
            writer.writerows(rows)


if __name__ == "__main__":
    main()

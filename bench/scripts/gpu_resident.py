"""Every registered model fitted on tensors of a GPU without ``device=``: does the data stay there?

``python bench/scripts/gpu_resident.py [--device cuda] [--rows 4000] [--only NAME ...] [--out FILE]``.
One line per model: where θ and the answers live, host copies of at least one number per row in fit and
in the answer (fetches of scalars do not count), the largest difference from the fit on the CPU, how
long both took, and what was reported.
"""

from __future__ import annotations

import argparse
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

import groundstate
from groundstate.registry import models

CHEAP: dict[str, Any] = {"random_state": 0, "n_estimators": 10, "max_iter": 100, "n_iter": 3}


def table(row: Any, n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.1, 1.0, size=(n, 8)).astype(np.float32)
    if row.name in ("CategoricalNB", "BernoulliRBM", "ID3Classifier", "BernoulliNB"):
        X = np.round(X)
    score = X @ np.array([1.0, -2.0, 0.5, 1.0, 0, 0, 0, 0]) + 0.1 * rng.normal(size=n)
    if row.role == "regressor":
        return X, (1.0 + np.exp(score)).astype(np.float32)
    return X, (score > 0).astype(np.int64) + 1


def made(row: Any) -> Any:
    model = row.obj()
    known = model.get_params(deep=False)
    own = {k: v for k, v in CHEAP.items() if k in known and isinstance(known[k], int | None)}
    return model.set_params(**{k: v for k, v in own.items() if known[k] != -1})


@contextmanager
def host_copies(least: int) -> Iterator[list[tuple[int, str]]]:
    """Copies of tensors of a GPU to the host with at least so many numbers, and who asked."""
    seen: list[tuple[int, str]] = []
    names = ("cpu", "numpy", "to", "tolist", "__array__")
    plain = {name: getattr(torch.Tensor, name) for name in names}

    def watch(name: str) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            out = plain[name](self, *args, **kwargs)
            left = self.device.type != "cpu" and self.numel() >= least
            if left and (not isinstance(out, torch.Tensor) or out.device.type == "cpu"):
                frames = [f for f in traceback.extract_stack()[:-1] if "groundstate" in f.filename]
                at = frames[-1] if frames else traceback.extract_stack()[-2]
                seen.append((self.numel(), f"{at.filename.split('groundstate/')[-1]}:{at.lineno}"))
            return out

        return method

    for name in names:
        setattr(torch.Tensor, name, watch(name))
    try:
        yield seen
    finally:
        for name in names:
            setattr(torch.Tensor, name, plain[name])


def answer(model: Any, X: Any) -> Any:
    asked = ("predict_proba", "predict", "transform", "kneighbors")
    found = getattr(model, next(n for n in asked if hasattr(model, n)))(X)
    return found[0] if isinstance(found, tuple) else found


def line(name: str, n: int, device: str) -> str:
    row = models[name]
    if row.obj.rows != "table":
        return f"{name:30} takes {row.obj.rows} rows, not a table"
    X, y = table(row, n)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = np.asarray(answer(made(row).fit(X, y), X), float)
    cpu = time.perf_counter() - start
    rows, target = torch.tensor(X, device=device), torch.tensor(y, device=device)
    model = made(row)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as said, host_copies(n) as fitted:
        warnings.simplefilter("always")
        model.fit(rows, target)
    with host_copies(n) as asked:
        found = answer(model, rows)
    gpu = time.perf_counter() - start
    theta = model.energy_.placement()[0]
    there = found.device if isinstance(found, torch.Tensor) else type(found).__name__
    values = found.double().cpu().numpy() if isinstance(found, torch.Tensor) else found
    apart = float(np.abs(np.asarray(values, float) - here).max())
    news = {w.category.__name__ for w in said}
    where = sorted({at for _, at in [*fitted, *asked]})
    return (
        f"{name:30} runs_on={model._runs_on:8} theta={theta!s:7} answers={there!s:7} "
        f"copies fit={len(fitted)} ask={len(asked)} apart={apart:.3g} cpu={cpu:.2f}s "
        f"gpu={gpu:.2f}s {' '.join(sorted(news))} {' '.join(where[:4])}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--out")
    args = parser.parse_args()
    for name in groundstate._EXPORTS:  # a bare machine may lack polars, which tables alone need
        if name[0].isupper() and name != "TablePredictor":
            getattr(groundstate, name)
    models._discovered = True
    lines = []
    for name in args.only or models.names():
        try:
            text = line(name, args.rows, args.device)
        except Exception as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            text = (
                f"{name:30} {type(error).__name__}: {str(error)[:200]} at {at.filename}:{at.lineno}"
            )
        print(text, flush=True)
        lines.append(text)
    if args.out:
        with open(args.out, "w") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

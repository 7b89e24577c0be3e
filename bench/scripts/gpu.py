"""Estimators on a GPU beside scikit-learn on all cores of the same machine.

``python bench/scripts/gpu.py [--only ridge ...] [--scale 1.0] [--out FILE]``. Ours get their rows as
tensors on the GPU, the peer gets the same rows as float32 arrays; both are timed from call to fitted
model (neighbours: to the answer). The score says that both did the same job. Boosting is compared
with our own path on the CPU.
"""

from __future__ import annotations

import argparse
import gc
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import groundstate as gs
from groundstate.bench.machine import commit, machine, package_version, threads, today, versions
from groundstate.bench.table import BenchRow, BenchTable

Job = tuple[str, dict[str, Callable[[], Any]], Callable[[Any], float]]
DEVICE = "cuda"


def rows(n: int, d: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator(DEVICE).manual_seed(seed)
    return torch.randn(n, d, generator=generator, device=DEVICE)


def ridge(scale: float) -> Job:
    from sklearn.linear_model import Ridge

    n, d = int(4_000_000 * scale), 200
    X = rows(n, d)
    y = X @ rows(d, 1, 1)[:, 0] + rows(n, 1, 2)[:, 0]
    A, b = X.cpu().numpy(), y.cpu().numpy()
    runs = {
        "groundstate cuda": lambda: gs.Ridge(device=DEVICE).fit(X, y),
        "scikit-learn": lambda: Ridge().fit(A, b),
    }
    return f"ridge {n}x{d}", runs, lambda m: float(np.asarray(m.coef_, float).sum())


def logistic(scale: float) -> Job:
    from sklearn.linear_model import LogisticRegression

    n, d, k = int(1_000_000 * scale), 100, 5
    X = rows(n, d)
    y = (X @ rows(d, k, 1) * 0.3 + rows(n, k, 2)).argmax(1)
    A, b = X.cpu().numpy(), y.cpu().numpy()
    runs = {
        "groundstate cuda": lambda: gs.LogisticRegression(device=DEVICE).fit(X, y),
        "scikit-learn": lambda: LogisticRegression(max_iter=200).fit(A, b),
    }

    def loss(model: Any) -> float:
        W, c = (torch.as_tensor(np.asarray(v)).double() for v in (model.coef_, model.intercept_))
        z = torch.from_numpy(A).double() @ W.T + c
        return float(torch.nn.functional.cross_entropy(z, torch.from_numpy(b)))

    return f"logistic {n}x{d}, {k} classes", runs, loss


def svc(scale: float) -> Job:
    from sklearn.svm import SVC

    n, d = int(30_000 * scale), 20
    X = rows(n, d)
    y = ((X[:, :5].square().sum(1) + rows(n, 1, 2)[:, 0]) > 5).long()
    A, b = X.cpu().numpy(), y.cpu().numpy()
    runs = {
        "groundstate cuda": lambda: gs.SVC(device=DEVICE).fit(X, y),
        "scikit-learn": lambda: SVC(cache_size=8000).fit(A, b),
    }

    def dual(model: Any) -> float:
        a = torch.as_tensor(np.asarray(model.dual_coef_, float)).to(DEVICE)[0]
        v = torch.as_tensor(np.asarray(model.support_vectors_, float)).to(DEVICE)
        gamma = 1 / (d * A.astype(np.float64).var())
        q = sum(
            float(a[i : i + 4096] @ torch.exp(-gamma * torch.cdist(v[i : i + 4096], v) ** 2) @ a)
            for i in range(0, len(v), 4096)
        )
        return float(a.abs().sum()) - 0.5 * q

    return f"kernel SVM {n}x{d}", runs, dual


def neighbors(scale: float) -> Job:
    from sklearn.neighbors import KNeighborsClassifier

    n, m, d = int(500_000 * scale), int(50_000 * scale), 64
    X, Q = rows(n, d), rows(m, d, 3)
    y = (X[:, 0] > 0).long()
    A, b, C = X.cpu().numpy(), y.cpu().numpy(), Q.cpu().numpy()
    truth = C[:, 0] > 0
    runs = {
        "groundstate cuda": lambda: gs.KNeighborsClassifier(10, device=DEVICE).fit(X, y).predict(Q),
        "scikit-learn": lambda: KNeighborsClassifier(10, n_jobs=-1).fit(A, b).predict(C),
    }

    def right(told: Any) -> float:
        told = told.cpu().numpy() if isinstance(told, torch.Tensor) else told
        return float((told.astype(bool) == truth).mean())

    return f"neighbours {n}x{d}, {m} queries", runs, right


def process(scale: float) -> Job:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    from groundstate.math import kernels

    n, d = int(6_000 * scale), 5
    X = rows(n, d).double()
    y = torch.sin(X.sum(1)) + 0.1 * rows(n, 1, 2)[:, 0].double()
    A, b = X.cpu().numpy(), y.cpu().numpy()
    own, theirs = kernels.RBF(1.0) + kernels.White(0.1), RBF(1.0) + WhiteKernel(0.1)
    runs = {
        "groundstate cuda": lambda: gs.GaussianProcessRegressor(own, device=DEVICE).fit(X, y),
        "scikit-learn": lambda: GaussianProcessRegressor(theirs).fit(A, b),
    }
    return (
        f"Gaussian process {n}x{d}",
        runs,
        lambda m: float(m.log_marginal_likelihood_value_),
    )


def boosting(scale: float) -> Job:
    n, d = int(2_000_000 * scale), 50
    X = rows(n, d)
    y = ((X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rows(n, 1, 2)[:, 0]) > 0).long()
    A, b = X.cpu().numpy(), y.cpu().numpy()
    test = rows(100_000, d, 5)
    truth = ((test[:, 0] * test[:, 1] + test[:, 2]) > 0).cpu().numpy()
    settings: dict[str, Any] = {"early_stopping": False}
    model = gs.HistGradientBoostingClassifier
    runs = {
        "groundstate cuda": lambda: model(**settings, device=DEVICE).fit(X, y),
        "groundstate cpu": lambda: model(**settings).fit(A, b),
    }

    def right(m: Any) -> float:
        told = np.asarray(m.predict(test.cpu().numpy()))
        return float((told.astype(bool) == truth).mean())

    return f"boosting {n}x{d}", runs, right


JOBS = {
    "ridge": ridge,
    "logistic": logistic,
    "neighbors": neighbors,
    "process": process,
    "svc": svc,
    "boosting": boosting,
}


def measure(job: str, scale: float, repeats: int) -> list[BenchRow]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for run in JOBS[job](min(scale, 0.01))[1].values():  # compile and load libraries
            run()
        label, runs, score = JOBS[job](scale)
        result = []
        for who, run in runs.items():
            times, found = [], None
            for _ in range(repeats if "cuda" in who else 1):
                del found
                gc.collect()
                torch.cuda.synchronize()
                start = time.perf_counter()
                found = run()
                torch.cuda.synchronize()
                times.append(time.perf_counter() - start)
            row = BenchRow(
                size=label,
                contestant=who,
                ours="cuda" in who,
                median_s=float(np.median(times)),
                min_s=min(times),
                max_s=max(times),
                repeats=len(times),
                calls=1,
                peak_mib=0.0,
                device_mib=torch.cuda.max_memory_allocated() / 2**20,
                score=score(found),
                version=package_version(who.split()[0]),
            )
            print(f"{label:36} {who:18} {row.median_s:9.3f} s  score {row.score:.6g}", flush=True)
            result.append(row)
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", default=list(JOBS))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found: list[BenchRow] = []
    for job in options.only:
        try:
            found += measure(job, options.scale, options.repeats)
        except Exception as error:  # one model that fails must not lose the others' results
            print(f"{job}: {type(error).__name__}: {error}", flush=True)
        table = BenchTable(
            name="gpu",
            title="On a GPU beside scikit-learn on the cores of the same machine",
            score_name="coefficients, loss, accuracy or objective",
            better="high",
            target=10.0,
            rows=tuple(found),
            absent=(),
            machine=machine(),
            threads=threads(),
            versions=versions(),
            date=today(),
            commit=commit(Path(__file__).parents[2]),
        )
        if options.out and found:
            table.to_csv(options.out)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

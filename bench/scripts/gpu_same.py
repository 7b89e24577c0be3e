"""Estimators fitted and asked on a GPU beside the same on the CPU: the largest difference of answers.

``python bench/scripts/gpu_same.py [--device cuda]``; rows have columns far from 0 and of other scales.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch

import groundstate as gs

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 12))
SHIFTED = X.copy()
SHIFTED[:, 3] += 1e4
SHIFTED[:, 5] = 10 * SHIFTED[:, 5] + 500
VALUES = X[:, 0] + rng.normal(size=3000)
POSITIVE = np.exp(0.3 * rng.normal(size=3000))
TWO = (VALUES > 0).astype(int)
FOUR = (X @ rng.normal(size=(12, 4)) * 0.5 + rng.gumbel(size=(3000, 4))).argmax(1)
CODES = np.clip(np.round(X), -2, 2) + 2
CASES: list[tuple[str, dict[str, Any], Any, Any]] = [
    *[
        ("LogisticRegression", {"tol": 1e-8, "max_iter": 500, **how}, SHIFTED, y)
        for y in (TWO, FOUR)
        for how in ({}, {"C": 0.01}, {"solver": "lbfgs"})
    ],
    ("PoissonRegressor", {}, X, POSITIVE),
    ("GammaRegressor", {"solver": "lbfgs"}, SHIFTED, POSITIVE),
    ("TweedieRegressor", {"power": 2.5, "link": "log"}, X, POSITIVE),
    ("Ridge", {}, SHIFTED, VALUES),
    ("Ridge", {"fit_intercept": False}, X, VALUES),
    ("Ridge", {}, X[:10], VALUES[:10]),
    ("KNeighborsRegressor", {}, X, VALUES),
    ("KernelRidge", {"kernel": "rbf", "gamma": 0.01}, X, VALUES),
    ("SVC", {}, X, TWO),
    ("GaussianProcessRegressor", {"alpha": 0.5}, X[:500], VALUES[:500]),
    ("RandomForestRegressor", {"n_estimators": 5, "random_state": 0}, X, VALUES),
    ("DecisionTreeClassifier", {"random_state": 0}, X, FOUR),
    ("HistGradientBoostingRegressor", {"max_iter": 10}, X, VALUES),
    ("GaussianNB", {}, X, TWO),
    ("CategoricalNB", {}, CODES, TWO),
    ("LinearDiscriminantAnalysis", {"solver": "eigen", "shrinkage": "auto"}, X, FOUR),
    ("QuadraticDiscriminantAnalysis", {}, X, FOUR),
    ("GaussianMixture", {"n_components": 2, "random_state": 0}, X, None),
    ("KMeans", {"n_clusters": 3, "random_state": 0}, X, None),
]


def answer(model: Any, rows: Any) -> Any:
    told = model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows)
    return torch.as_tensor(told).cpu().numpy()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    device = parser.parse_args().device
    for name, settings, rows, y in CASES:
        there = [None if v is None else torch.tensor(v, device=device) for v in (rows, y)]
        try:
            make = getattr(gs, name)
            here = answer(make(**settings).fit(rows, y), rows)
            other = answer(make(device=device, **settings).fit(*there), there[0])
            print(f"{name:32} {settings} {np.abs(here - other).max():.3g}", flush=True)
        except Exception as error:
            print(f"{name:32} {settings} {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()

"""Public tables for `tables.py`: shipped with scikit-learn and statsmodels, generated, or read from a folder.

Every loader gives ``(task, X, y)`` with X a pandas frame whose text columns are strings. The folder with
``diamonds.csv``, ``mpg.csv``, ``penguins.csv``, ``tips.csv``, ``titanic.csv``, ``winequality-white.csv`` and
``tinyshakespeare.txt`` is given by ``--data`` or ``GROUNDSTATE_TABLES``; nothing is downloaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

Loaded = tuple[str, pd.DataFrame, np.ndarray]
CLASSES, VALUES = "classification", "regression"


def _frame(X: Any) -> pd.DataFrame:
    found = pd.DataFrame(np.asarray(X, float))
    return found.set_axis([f"x{i}" for i in range(found.shape[1])], axis=1)


def _sklearn(name: str, task: str) -> Callable[[Path | None], Loaded]:
    def load(folder: Path | None) -> Loaded:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return task, _frame(X), np.asarray(y)

    return load


def _made(task: str, name: str, n: int, **options: Any) -> Callable[[Path | None], Loaded]:
    def load(folder: Path | None) -> Loaded:
        X, y = getattr(datasets, f"make_{name}")(n_samples=n, random_state=0, **options)
        y = np.asarray(y)
        return task, _frame(X), (y > 0).astype(int) if name == "hastie_10_2" else y

    return load


def _statsmodels(
    name: str, task: str, target: str, drop: tuple[str, ...] = (), rows: int = 3000, **how: Any
) -> Callable[[Path | None], Loaded]:
    def load(folder: Path | None) -> Loaded:
        import statsmodels.api as sm

        frame = getattr(sm.datasets, name).load_pandas().data
        frame = frame.sample(min(rows, len(frame)), random_state=0).reset_index(drop=True)
        y = frame[target]
        y = (y > how["above"]).astype(int) if "above" in how else y
        X = frame.drop(columns=[target, *drop])
        return task, X, y.to_numpy()

    return load


def _file(
    name: str, task: str, target: str, drop: tuple[str, ...] = (), rows: int = 3000
) -> Callable[[Path | None], Loaded]:
    def load(folder: Path | None) -> Loaded:
        if folder is None:
            raise FileNotFoundError(f"{name} is read from --data FOLDER or GROUNDSTATE_TABLES")
        with (folder / name).open() as file:
            titled = any(letter.isalpha() for letter in file.readline())
        frame = pd.read_csv(folder / name, header=0 if titled else None)
        if not titled:  # the target is the last column
            frame.columns = [*(f"x{i}" for i in frame.columns[:-1]), target]
        frame = frame.dropna(subset=[target])
        frame = frame.sample(min(rows, len(frame)), random_state=0).reset_index(drop=True)
        return task, frame.drop(columns=[target, *drop]), frame[target].to_numpy()

    return load


def _speakers(folder: Path | None) -> Loaded:
    """Who says it: the six who speak most in the plays, by what they say and how long it is."""
    if folder is None:
        raise FileNotFoundError("tinyshakespeare.txt is read from --data or GROUNDSTATE_TABLES")
    text = (folder / "tinyshakespeare.txt").read_text()
    said = re.findall(r"(?:^|\n\n)([A-Z][A-Za-z ]+):\n((?:.+\n?)+)", text)
    frame = pd.DataFrame(said, columns=["speaker", "text"])
    most = frame["speaker"].value_counts().index[:6]
    frame = frame[frame["speaker"].isin(most)].reset_index(drop=True)
    frame["length"] = frame["text"].str.len().astype(float)
    return CLASSES, frame[["text", "length"]], frame["speaker"].to_numpy()


TABLES: dict[str, Callable[[Path | None], Loaded]] = {
    "iris": _sklearn("iris", CLASSES),
    "wine": _sklearn("wine", CLASSES),
    "breast_cancer": _sklearn("breast_cancer", CLASSES),
    "digits": _sklearn("digits", CLASSES),
    "diabetes": _sklearn("diabetes", VALUES),
    "moons": _made(CLASSES, "moons", 600, noise=0.3),
    "hastie": _made(CLASSES, "hastie_10_2", 1500),
    "quantiles": _made(CLASSES, "gaussian_quantiles", 800, n_features=6, n_classes=3),
    "clusters": _made(CLASSES, "classification", 1000, n_features=20, n_informative=8, n_classes=3),
    "wide": _made(CLASSES, "classification", 300, n_features=100, n_informative=6),
    "rare": _made(CLASSES, "classification", 1500, n_features=12, weights=[0.95], flip_y=0.02),
    "friedman1": _made(VALUES, "friedman1", 800, noise=1.0),
    "friedman2": _made(VALUES, "friedman2", 800, noise=100.0),
    "friedman3": _made(VALUES, "friedman3", 800, noise=0.1),
    "sparse_linear": _made(VALUES, "sparse_uncorrelated", 300, n_features=30),
    "anes96": _statsmodels("anes96", CLASSES, "vote"),
    "fair": _statsmodels("fair", CLASSES, "affairs", above=0),
    "heart": _statsmodels("heart", VALUES, "survival"),
    "modechoice": _statsmodels("modechoice", CLASSES, "choice", drop=("individual",)),
    "randhie": _statsmodels("randhie", VALUES, "mdvis"),
    "star98": _statsmodels("star98", VALUES, "NABOVE", drop=("NBELOW",)),
    "ccard": _statsmodels("ccard", VALUES, "AVGEXP"),
    "statecrime": _statsmodels("statecrime", VALUES, "violent"),
    "grunfeld": _statsmodels("grunfeld", VALUES, "invest"),
    "cancer_counties": _statsmodels("cancer", VALUES, "cancer"),
    "engel": _statsmodels("engel", VALUES, "foodexp"),
    "diamonds": _file("diamonds.csv", VALUES, "price"),
    "mpg": _file("mpg.csv", VALUES, "mpg"),
    "penguins": _file("penguins.csv", CLASSES, "species"),
    "tips": _file("tips.csv", VALUES, "tip"),
    "titanic": _file("titanic.csv", CLASSES, "survived", drop=("alive",)),
    "wine_quality": _file("winequality-white.csv", VALUES, "quality"),
    "speakers": _speakers,
}

"""Test accuracy of logistic regression and of networks on MNIST-1D with the package's settings.

    python bench/scripts/mnist1d.py [--device cuda]

Published test accuracies of the classes: logistic regression 32 %, multilayer perceptron 68 %.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from groundstate import LogisticRegression, MLPClassifier
from groundstate.data import mnist1d


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default=None)
    given = parser.parse_args()
    data = mnist1d()
    fixed = {"n_iter_no_change": np.inf, "random_state": 0, "device": given.device}
    models: dict[str, Any] = {
        "logistic regression": LogisticRegression(C=1.0, device=given.device),
        "perceptron 100-100": MLPClassifier(
            (100, 100), alpha=0.3, dropout=0.1, learning_rate_init=5e-3, max_iter=150, **fixed
        ),
        "deep 200-200-200-200": MLPClassifier(
            (200,) * 4, alpha=0.3, dropout=0.2, learning_rate_init=2e-3, max_iter=100, **fixed
        ),
    }
    for name, model in models.items():
        start = time.perf_counter()
        model.fit(data.X_train, data.y_train)
        score = model.score(data.X_test, data.y_test)
        error = np.sqrt(score * (1 - score) / len(data.y_test))
        took = time.perf_counter() - start
        print(f"{name:24s} {score:.3f} ± {1.96 * error:.3f}  in {took:.1f} s")


if __name__ == "__main__":
    main()

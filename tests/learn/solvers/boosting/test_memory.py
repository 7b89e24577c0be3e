"""What many small trees take of memory."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from groundstate.energy.trees.nodes import Tree, packed

MANY = """
import numpy as np, groundstate
rng = np.random.default_rng(0)
y = np.repeat(np.arange(151), 14)
X = rng.normal(size=(151, 20))[y] * 2 + rng.normal(size=(len(y), 20))
def held():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20
options = {"max_leaf_nodes": 8, "l2_regularization": 10.0, "min_samples_leaf": 10}
groundstate.HistGradientBoostingClassifier(max_iter=2, **options).fit(X, y)
before = held()
model = groundstate.HistGradientBoostingClassifier(max_iter=42, **options).fit(X, y)
print(held() - before, model.energy_.nodes.n_trees)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_trees_of_many_classes_leave_no_gaps() -> None:
    """6,040 trees hold 12 MB; with their arrays one by one they took 300."""
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, check=True)
    grown, trees = map(float, done.stdout.split())
    assert trees == 42 * 151 and grown < 120


def test_packed_trees_are_the_same_trees() -> None:
    rng = np.random.default_rng(0)

    def tree(n: int, column: int) -> Tree:
        whole = [rng.integers(-1, 5, n) for _ in range(4)]
        real = [rng.normal(size=n) for _ in range(3)]
        sets = {0: np.array([True, False])}
        return Tree(
            whole[0], real[0], whole[1], whole[2], rng.random(n) < 0.5, rng.normal(size=(n, 1)),
            real[1], real[2], whole[3], sets, column,
        )  # fmt: skip

    trees = [tree(n, c) for c, n in enumerate((5, 1, 9))]
    for a, b in zip(trees, packed(trees), strict=True):
        for name in vars(a):
            np.testing.assert_equal(getattr(b, name), getattr(a, name))
            assert getattr(getattr(b, name), "dtype", None) == getattr(
                getattr(a, name), "dtype", None
            )

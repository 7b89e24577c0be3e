"""Planned questions against elimination by hand and enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from groundstate.math.graphs import programs
from groundstate.math.graphs.dags import ancestors
from groundstate.math.graphs.elimination import contract
from groundstate.math.graphs.programs import program_of


def network(seed: int, d: int = 9) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...], list]:  # type: ignore[type-arg]
    rng = np.random.default_rng(seed)
    sizes = tuple(int(k) for k in rng.integers(1, 4, d))
    scopes, tables = [], []
    for i in range(d):
        above = sorted(rng.choice(i, min(i, int(rng.integers(0, 4))), replace=False).tolist())
        scopes.append((*above, i))
        shape = [sizes[v] for v in above]
        tables.append(rng.dirichlet(np.ones(sizes[i]), size=shape or None))
    return tuple(scopes), sizes, tables


@pytest.mark.parametrize("seed", range(12))
def test_programs_are_the_elimination_by_hand(seed: int) -> None:
    scopes, sizes, tables = network(seed)
    rng = np.random.default_rng(seed)
    flat = np.concatenate([t.ravel() for t in tables])
    picked = rng.permutation(len(sizes))
    for n_asked, n_known in ((0, 0), (1, 0), (0, 2), (2, 3), (1, 4), (3, 6)):
        asked = tuple(int(v) for v in picked[:n_asked])
        known = tuple(int(v) for v in picked[n_asked : n_asked + n_known])
        rows = np.stack([[rng.integers(sizes[v]) for v in known] for _ in range(3)])
        rows = rows.astype(np.int64).reshape(3, n_known)
        found, scale = program_of(scopes, sizes, asked, known)(flat, rows)
        assert found.shape == (3, *(sizes[v] for v in asked))
        for b, row in enumerate(rows):
            at = dict(zip(known, row.tolist(), strict=True))
            used = sorted(ancestors([s[:-1] for s in scopes], [*asked, *known]))
            cut = [tables[i][tuple(at.get(v, slice(None)) for v in scopes[i])] for i in used]
            left = [tuple(v for v in scopes[i] if v not in at) for i in used]
            want, log_scale = contract(left, cut, sizes, asked)
            np.testing.assert_allclose(
                found[b] * np.exp(scale[b]), want * np.exp(log_scale), rtol=1e-12
            )


def test_long_products_keep_their_scale() -> None:
    d = 400
    scopes = tuple((0, i) if i else (0,) for i in range(d))
    table = np.array([[0.9, 0.1], [0.999, 0.001]])
    flat = np.concatenate([np.array([0.5, 0.5]), *[table.ravel()] * (d - 1)])
    known = tuple(range(1, d))
    program = program_of(scopes, (2,) * d, (0,), known)
    found, _ = program(flat, np.zeros((1, d - 1), np.int64))
    # p(x_0 = 1) / p(x_0 = 0) = (0.999 / 0.9)^(d - 1)
    assert np.log(found[0, 1] / found[0, 0]) == pytest.approx((d - 1) * np.log(0.999 / 0.9))


@pytest.mark.parametrize("seed", range(6))
def test_the_compiled_plan_is_the_plan(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scopes, sizes, _ = network(seed, 14)
    asked, known = (13, 4), (7, 2)
    compiled = program_of.__wrapped__(scopes, sizes, asked, known)
    programs._layout.cache_clear()
    monkeypatch.setattr(programs, "MANY", 0)
    planned = program_of.__wrapped__(scopes, sizes, asked, known)
    programs._layout.cache_clear()
    assert compiled.shape == planned.shape
    for name in ("starts", "known", "heads", "members", "strides", "sizes"):
        np.testing.assert_array_equal(getattr(compiled, name), getattr(planned, name), name)

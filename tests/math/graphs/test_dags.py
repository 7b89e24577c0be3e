"""Directed graphs against networkx, elimination and beliefs against listing."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from groundstate.errors import Unsupported
from groundstate.math.graphs import (
    FactorGraphDistribution,
    belief_propagation,
    elimination_order,
    is_d_separated,
    markov_blanket,
    mean_field,
    moral_graph,
    topological_order,
)
from groundstate.math.graphs.dags import find_cycle


def random_parents(rng: np.random.Generator, d: int, chance: float) -> list[list[int]]:
    order = rng.permutation(d)
    return [
        [int(p) for k, p in enumerate(order) if k < list(order).index(i) and rng.random() < chance]
        for i in range(d)
    ]


def as_networkx(parents: list[list[int]]) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(parents)))
    graph.add_edges_from((p, i) for i, above in enumerate(parents) for p in above)
    return graph


@pytest.mark.parametrize("seed", range(6))
def test_separation_blanket_and_moral_graph_are_those_of_networkx(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, 7, 0.35)
    graph = as_networkx(parents)
    for _ in range(60):
        x, y, *z = rng.permutation(7)[: rng.integers(2, 6)].tolist()
        assert is_d_separated(parents, [x], [y], z) == nx.is_d_separator(graph, {x}, {y}, set(z))
    moral = {tuple(sorted(e)) for e in nx.moral_graph(graph).edges}
    assert moral_graph(parents) == moral
    order = topological_order(parents)
    assert all(order.index(p) < order.index(i) for i, above in enumerate(parents) for p in above)
    for i in range(7):
        blanket = markov_blanket(parents, i)
        others = set(range(7)) - blanket - {i}
        assert not others or is_d_separated(parents, [i], others, blanket)


def test_cycles_are_named() -> None:
    assert find_cycle([[2], [0], [1], []]) == [0, 1, 2]
    with pytest.raises(ValueError, match=r"\[0, 1, 2\] go in a circle"):
        topological_order([[2], [0], [1], []])
    with pytest.raises(ValueError, match="must not overlap"):
        is_d_separated([[], [0]], [0], [1], [0])


def random_graph(rng: np.random.Generator, d: int = 6) -> tuple[Any, ...]:
    sizes = rng.integers(2, 4, d).tolist()
    scopes = [tuple(rng.permutation(d)[: rng.integers(1, 4)].tolist()) for _ in range(7)]
    tables = [torch.from_numpy(rng.normal(size=[sizes[v] for v in s])) for s in scopes]
    return sizes, scopes, tables


def listed(sizes: Any, scopes: Any, tables: Any, T: float = 1.0) -> tuple[Any, Any]:
    """All joint values, and their probabilities."""
    values = np.array(list(itertools.product(*map(range, sizes))))
    score = np.zeros(len(values))
    for scope, table in zip(scopes, tables, strict=True):
        score -= table.numpy()[tuple(values[:, v] for v in scope)] / T
    return values, score


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("T", [1.0, 0.6])
def test_elimination_is_listing(seed: int, T: float) -> None:
    rng = np.random.default_rng(seed)
    sizes, scopes, tables = random_graph(rng)
    values, score = listed(sizes, scopes, tables, T)
    x = torch.from_numpy(values[rng.integers(0, len(values), 8)].astype(float))
    mask = torch.from_numpy(rng.random((8, len(sizes))) < 0.6)
    p = FactorGraphDistribution(scopes, tables, sizes, x, mask, T)
    for b in range(8):
        known = [(values[:, v] == int(x[b, v])) for v in range(len(sizes)) if not mask[b, v]]
        fits = np.logical_and.reduce([np.ones(len(values), bool), *known])
        log_z = np.logaddexp.reduce(score[fits])
        assert p.log_partition[b].item() == pytest.approx(log_z, abs=1e-10)
        weight = np.exp(score - log_z) * fits
        for v, marginal in enumerate(p.marginals()):
            own = [weight[values[:, v] == k].sum() for k in range(sizes[v])]
            np.testing.assert_allclose(marginal[b], own, atol=1e-10)
        best = score[fits].max()
        assert p.score(p.mode)[b].item() == pytest.approx(best, abs=1e-10)
        np.testing.assert_array_equal(p.mode[b][~mask[b]], x[b][~mask[b]])


def test_draws_have_the_right_frequencies() -> None:
    sizes, scopes, tables = random_graph(np.random.default_rng(0), 4)
    values, score = listed(sizes, scopes, tables)
    p = FactorGraphDistribution(scopes, tables, sizes)
    drawn = p.draw(20_000, torch.Generator().manual_seed(0))[:, 0].long().numpy()
    codes = np.ravel_multi_index(drawn.T, sizes)
    share = np.bincount(codes, minlength=len(values)) / 20_000
    truth = np.exp(score - np.logaddexp.reduce(score))
    assert np.abs(share - truth).max() < 4 * np.sqrt(truth.max() / 20_000)


def test_forbidden_values_and_impossible_evidence() -> None:
    table = torch.tensor([[0.0, torch.inf], [torch.inf, 0.0]]).double()
    x = torch.tensor([[0.0, 0.0], [0.0, 1.0]]).double()
    p = FactorGraphDistribution([(0, 1)], [table], (2, 2), x, torch.zeros(2, 2, dtype=torch.bool))
    assert p.log_partition.tolist() == [0.0, -torch.inf]
    free = torch.tensor([[False, True]])
    q = FactorGraphDistribution([(0, 1)], [table], (2, 2), x[:1], free)
    assert q.marginals()[1].tolist() == [[1.0, 0.0]] and q.mode.tolist() == [[0.0, 0.0]]


def test_gradients_are_expected_counts() -> None:
    sizes, scopes, tables = random_graph(np.random.default_rng(3), 4)
    x = torch.zeros(3, 4).double()
    mask = torch.tensor([[True] * 4, [True, False, True, False], [False] * 4])
    p = FactorGraphDistribution(scopes, tables, sizes, x, mask)
    counts, log_z = p.expected_counts(torch.tensor([1.0, 2.0, 0.5]).double())
    assert all(c.sum().item() == pytest.approx(3.5) for c in counts)
    assert torch.allclose(log_z, p.log_partition)
    assert torch.autograd.gradcheck(
        lambda t: FactorGraphDistribution(scopes, [t, *tables[1:]], sizes, x, mask).log_partition,
        tables[0].clone().requires_grad_(),
    )


def test_too_dense_graphs_say_so() -> None:
    d = 30
    scopes = [(i, j) for i in range(d) for j in range(i)]
    tables = [torch.zeros(2, 2) for _ in scopes]
    with pytest.raises(Unsupported, match="too dense"):
        _ = FactorGraphDistribution(scopes, tables, [2] * d).log_partition
    chain = tuple((i, i + 1) for i in range(50))
    assert set(elimination_order(chain, (2,) * 51)) == set(range(51))


def test_beliefs_are_exact_on_trees_and_bounds_on_loops() -> None:
    J = -torch.tensor([[0.5, -0.5], [-0.5, 0.5]]).double()
    h = torch.tensor([0.3, -0.2]).double()
    tree = [(0, 1), (1, 2), (1, 3), (0,)]
    tables = [J, J, J, h]
    exact = FactorGraphDistribution(tree, tables, [2] * 4)
    found = belief_propagation(tree, tables, [2] * 4)
    assert found.converged and found.log_partition.item() == pytest.approx(
        exact.log_partition.item(), abs=1e-9
    )
    for a, b in zip(found.marginals, exact.marginals(), strict=True):
        np.testing.assert_allclose(a, b[0], atol=1e-9)
    loop = [(0, 1), (1, 2), (2, 0), (0,)]
    true = FactorGraphDistribution(loop, tables, [2] * 3)
    bound = mean_field(loop, tables, [2] * 3)
    assert bound.converged and bound.log_partition <= true.log_partition[0]
    near = belief_propagation(loop, tables, [2] * 3)
    for a, b in zip(near.marginals, true.marginals(), strict=True):
        np.testing.assert_allclose(a, b[0], atol=0.05)


def test_the_ising_chain_of_three() -> None:
    J = -torch.tensor([[0.5, -0.5], [-0.5, 0.5]]).double()
    p = FactorGraphDistribution([(0, 1), (1, 2)], [J, J], [2, 2, 2])
    assert p.log_partition.item() == pytest.approx(2.319671, abs=5e-7)

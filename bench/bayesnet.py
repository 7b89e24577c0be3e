"""Exact inference in Bayesian networks of the size of "alarm" (37 columns) against pgmpy."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

QUERIES = 20
SETS = 200  # of questions, more than what programs are kept for


def network(d: int, seed: int) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """Arrows and tables: columns of 2 to 4 states, each with up to three parents among the last six."""
    import numpy as np

    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(d)]
    levels = rng.integers(2, 5, d)
    edges, tables = [], {}
    for i in range(d):
        near = np.arange(max(0, i - 6), i)
        above = rng.choice(near, min(len(near), int(rng.integers(0, 4))), replace=False)
        edges += [(names[p], names[i]) for p in sorted(above)]
        shape = [levels[p] for p in sorted(above)]
        tables[names[i]] = rng.dirichlet(np.ones(levels[i]), size=shape or None)
    return edges, tables


def data(size: int, seed: int) -> dict[str, Any]:

    edges, tables = network(size, seed)
    return {"edges": edges, "tables": tables, "asked": questions(tables, seed + 1)}


def questions(tables: dict[str, Any], seed: int) -> list[tuple[str, dict[str, int]]]:
    """Of one column given three others, all drawn at random."""
    import numpy as np

    rng = np.random.default_rng(seed)
    asked = []
    for _ in range(QUERIES):
        picked = rng.permutation(len(tables))[:4]
        evidence = {f"v{i}": int(rng.integers(0, tables[f"v{i}"].shape[-1])) for i in picked[1:]}
        asked.append((f"v{picked[0]}", evidence))
    return asked


def make_ours(data: dict[str, Any]) -> Any:
    from groundstate import DiscreteBayesianNetwork

    return DiscreteBayesianNetwork.from_tables(data["edges"], data["tables"])


def make_pgmpy(data: dict[str, Any]) -> Any:
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteBayesianNetwork

    net = DiscreteBayesianNetwork(data["edges"])
    tables = data["tables"]
    net.add_nodes_from(tables)
    for name, table in tables.items():
        above = [a for a, b in data["edges"] if b == name] or None
        k = table.shape[-1]
        values = table.reshape(-1, k).T
        net.add_cpds(
            TabularCPD(name, k, values, above, above and [tables[a].shape[-1] for a in above])
        )
    return VariableElimination(net)


def ours(data: dict[str, Any]) -> Any:
    if "ours" not in data:
        data["ours"] = make_ours(data)
    net = data["ours"]
    return [net.query(v, e) for v, e in data["asked"]]


def pgmpy(data: dict[str, Any]) -> Any:
    if "pgmpy" not in data:
        data["pgmpy"] = make_pgmpy(data)
    infer = data["pgmpy"]
    return [infer.query([v], evidence=e, show_progress=False).values for v, e in data["asked"]]


BAYESNET = Benchmark(
    name="bayesnet-query",
    title=f"{QUERIES} queries of one column given three, of a kind that was asked before",
    sizes={"20 columns": 20, "37 columns": 37, "80 columns": 80},
    data=data,
    ours=ours,
    peers={"pgmpy": Peer(pgmpy, "pgmpy")},
    score=lambda data, found: float(sum(p[0] for p in found)),
    score_name="sum of probabilities",
    target=10.0,
)


def many(size: int, seed: int) -> dict[str, Any]:
    found = data(size, seed)
    found["sets"] = [questions(found["tables"], 1000 + i) for i in range(SETS)]
    return found


def anew(ask: Any, name: str) -> Any:
    """Other columns at every call; then the answers to the questions of the data."""

    def run(data: dict[str, Any]) -> Any:
        data[f"{name} calls"] = call = data.get(f"{name} calls", 0) + 1
        ask({**data, "asked": data["sets"][call % SETS]} if name in data else data)
        return lambda: ask(data)

    return run


NEW = Benchmark(
    name="bayesnet-new-query",
    title=f"{QUERIES} queries of one column given three, columns drawn anew each time",
    sizes={"20 columns": 20, "37 columns": 37, "80 columns": 80},
    data=many,
    ours=anew(ours, "ours"),
    peers={"pgmpy": Peer(anew(pgmpy, "pgmpy"), "pgmpy")},
    score=lambda data, again: float(sum(p[0] for p in again())),
    score_name="sum of probabilities",
    target=10.0,
)

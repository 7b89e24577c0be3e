"""Layers on graphs: sums over neighbours, renumbering, convolutions written out, gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from groundstate.compute.rows import Graphs
from groundstate.errors import DataError, ShapeError, Unsupported
from groundstate.nn import (
    Edges,
    GATConv,
    GCNConv,
    GINConv,
    GraphIndependent,
    GraphNetwork,
    MessagePassing,
    SAGEConv,
)
from groundstate.nn.graph.pool import edge_to_node, global_pool, node_to_edge, pool
from groundstate.store import dumps, loads

N = 7
PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def normal(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def random_edges(seed: int = 0, n: int = N, e: int = 18) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.unique(torch.randint(n, (2, e), generator=generator), dim=1)[:, :]


def dense(index: Tensor, n: int = N) -> Tensor:
    """A[v, u] = 1 where u → v."""
    a = torch.zeros(n, n, dtype=torch.float64)
    a[index[1], index[0]] = 1
    return a


LAYERS = {
    "gcn": lambda: GCNConv(4, 3),
    "sage": lambda: SAGEConv(4, 3),
    "gat": lambda: GATConv(4, 3, 2),
    "gat mean": lambda: GATConv(4, 3, 2, concat=False),
    "gin": lambda: GINConv(nn.Linear(4, 3), 0.3, True),
    "messages": lambda: MessagePassing(lambda u, v, e: torch.tanh(u - v), "mean"),
}


# --- edges -------------------------------------------------------------------------------


def test_messages_of_neighbours_are_a_product_with_the_adjacency_matrix() -> None:
    index, h = random_edges(), normal(N, 4)
    edges = Edges.of(index[:, torch.randperm(index.shape[1])], N)
    assert torch.allclose(MessagePassing()(h, edges), dense(index) @ h)
    sent = edges.from_source(h)
    assert torch.allclose(edges.aggregate(sent), dense(index) @ h)


@pytest.mark.parametrize("how", ["sum", "mean", "max", "std"])
def test_aggregates_node_by_node(how: str) -> None:
    index, h = random_edges(3, e=8), normal(N, 2)  # some nodes hear nothing
    got = Edges.of(index, N).aggregate(Edges.of(index, N).from_source(h), how)
    for v in range(N):
        came = h[index[0][index[1] == v]]
        if len(came):
            wanted = {"sum": came.sum(0), "mean": came.mean(0), "max": came.amax(0),
                      "std": came.std(0, correction=0)}[how]  # fmt: skip
        else:
            wanted = torch.zeros(2).double()
        assert torch.allclose(got[v], wanted, atol=1e-6)


def test_gradients() -> None:
    edges = Edges.of(random_edges(), N)
    x = normal(N, 3).requires_grad_(True)
    w = normal(len(edges.source), seed=1).requires_grad_(True)
    check = torch.autograd.gradcheck
    assert check(edges.propagate, (x, w)) and check(edges.softmax, (w,))
    assert check(edges.from_source, (x,)) and check(edges.from_target, (x,))
    for how in ("sum", "mean", "max", "std"):
        assert check(lambda x, how=how: edges.aggregate(edges.from_source(x), how), (x,))


def test_softmax_sums_to_one_at_every_node_that_hears() -> None:
    edges = Edges.of(random_edges(), N)
    total = edges.aggregate(edges.softmax(100 * normal(len(edges.source))))
    assert torch.allclose(total, (edges.degree > 0).double())


def test_loops_are_there_once() -> None:
    index = torch.tensor([[0, 1, 1], [0, 0, 1]])
    looped, old = Edges.of(index, 3).looped
    carries = old > -2
    assert looped.edge_index.T[carries].tolist() == [[0, 0], [1, 0], [1, 1], [2, 2]]
    assert old[carries].tolist() == [-1, 1, -1, -1] and old[~carries].tolist() == [-2, -2]


@pytest.mark.parametrize("name", ["gcn", "gat"])
def test_a_loop_that_was_there_changes_nothing(name: str) -> None:
    layer, index, x = LAYERS[name]().double(), random_edges(), normal(N, 4)
    index = index[:, index[0] != index[1]]
    more = torch.cat((index, torch.tensor([[0, 2], [0, 2]])), 1)
    plain, looped = (layer(x, Edges.of(i, N)) for i in (index, more))
    assert torch.allclose(plain, looped, atol=1e-14)


def test_wrong_edges_are_refused() -> None:
    with pytest.raises(DataError, match="nodes 0 to 2, the graph has 2"):
        Edges.of(PATH, 2)
    with pytest.raises(ShapeError, match=r"\(2, edges\), got \(4, 2\)"):
        Edges.of(PATH.T, 3)
    edges = Edges.of(PATH, 3)
    with pytest.raises(ShapeError, match="has 3 nodes"):
        edges.propagate(torch.ones(4, 1))
    with pytest.raises(ShapeError, match="4 edges carry a message each, got 3"):
        edges.aggregate(torch.ones(3, 1))
    with pytest.raises(Unsupported, match="sum, mean, max, std"):
        edges.aggregate(torch.ones(4, 1), "median")
    with pytest.raises(Unsupported, match="sum, mean, max, std"):
        MessagePassing(aggregate="median")


# --- layers ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYERS)
def test_renumbered_nodes_give_renumbered_outputs(name: str) -> None:
    layer, index, x = LAYERS[name]().double(), random_edges(), normal(N, 4)
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])  # new node i is old node order[i]
    new = torch.argsort(order)
    out = layer(x, Edges.of(index, N))
    assert torch.allclose(layer(x[order], Edges.of(new[index], N)), out[order], atol=1e-12)


@pytest.mark.parametrize("name", LAYERS)
def test_k_layers_reach_k_steps(name: str) -> None:
    line = torch.stack((torch.arange(5), torch.arange(1, 6)))
    edges, x = Edges.of(line, 6), normal(6, 4).requires_grad_(True)
    (grad,) = torch.autograd.grad(LAYERS[name]().double()(x, edges)[5].sum(), x)
    assert (grad[:4] == 0).all() and grad[4].abs().sum() > 0


@pytest.mark.parametrize("name", LAYERS)
def test_a_batch_of_graphs_is_each_alone(name: str) -> None:
    layer = LAYERS[name]().double()
    sizes = (3, 1, 5)
    rows = [(normal(n, 4, seed=n), random_edges(n, n, 6).T if n > 1 else []) for n in sizes]
    graphs = Graphs.of(rows)
    nodes = torch.cat([r[0] for r in rows])
    together = layer(nodes, Edges.of_graphs(graphs)).split(sizes)
    for (x, e), got in zip(rows, together):
        index = torch.as_tensor(e, dtype=torch.int64).reshape(-1, 2).T
        assert torch.allclose(got, layer(x, Edges.of(index, len(x))), atol=1e-12)


@pytest.mark.parametrize("name", [n for n in LAYERS if n != "messages"])
def test_layers_are_stored(name: str) -> None:
    layer, edges, x = LAYERS[name](), Edges.of(PATH, 3), torch.ones(3, 4)
    assert torch.equal(loads(dumps(layer))(x, edges), layer(x, edges))


def test_a_grid_of_four_neighbours_is_a_convolution() -> None:
    side = 5
    at = torch.arange(side * side).reshape(side, side)
    pairs = [(at[:-1], at[1:]), (at[:, :-1], at[:, 1:])]
    one = torch.cat([torch.stack((a.flatten(), b.flatten())) for a, b in pairs], 1)
    edges = Edges.of(torch.cat((one, one.flip(0)), 1), side * side)
    picture = normal(1, 1, side, side)
    kernel = torch.tensor([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]).double()[None, None]
    wanted = torch.nn.functional.conv2d(picture, kernel, padding=1)
    assert torch.allclose(MessagePassing()(picture.reshape(-1, 1), edges), wanted.reshape(-1, 1))


def test_rewiring_matters_to_messages_alone() -> None:
    x, e = normal(N, 4), None
    one, two = Edges.of(random_edges(1), N), Edges.of(random_edges(2), N)
    alone = GraphIndependent(nn.Linear(4, 3).double())
    assert torch.equal(alone(x, one, e)[0], alone(x, two, e)[0])
    assert not torch.allclose(MessagePassing()(x, one), MessagePassing()(x, two))


@pytest.mark.parametrize("order", ["edge_first", "node_first", "weave"])
def test_graph_networks_mix_sizes_and_keep_connections(order: str) -> None:
    index = random_edges()
    edges = Edges.of(index, N)
    net = GraphNetwork(4, 2, 3, 5, order).double()
    x, e, u = normal(N, 4), normal(len(edges.source), 2, seed=1), normal(2, 3, seed=2)
    offsets = torch.tensor([0, 3, N])
    within = Edges.of(torch.tensor([[0, 1, 4], [1, 2, 3]]), N)
    new = net(x, within, e[:3], u, offsets)
    assert [t.shape for t in new if t is not None] == [(N, 5), (3, 5), (2, 5)]
    assert torch.equal(edges.edge_index[:, torch.argsort(edges.order)], index)
    first = net(x[:3], Edges.of(torch.tensor([[0, 1], [1, 2]]), 3), e[:2], u[:1])
    assert torch.allclose(first[2], new[2][:1], atol=1e-12)
    assert torch.equal(loads(dumps(net))(x, within, e[:3], u, offsets)[0], new[0])
    with pytest.raises(ShapeError, match="2 graphs need graph_offsets"):
        net(x, within, e[:3], u)


def test_orders_differ_and_unknown_ones_are_refused() -> None:
    edges = Edges.of(random_edges(), N)
    x, e = normal(N, 4), normal(len(edges.source), 4, seed=1)
    outs = [GraphNetwork(4, 4, 0, 4, order).double()(x, edges, e)[0]
            for order in ("edge_first", "node_first")]  # fmt: skip
    assert not torch.allclose(*outs)
    with pytest.raises(Unsupported, match="edge_first, node_first, weave"):
        GraphNetwork(4, 4, 0, 4, "last")
    with pytest.raises(ShapeError, match="edge_to_node"):
        GraphNetwork(0, 4, 0, 4)


# --- convolutions ------------------------------------------------------------------------


def test_the_path_of_three() -> None:
    layer = GCNConv(3, 3, bias=False).double()
    with torch.no_grad():
        layer.lin.weight.copy_(torch.eye(3))
    r = 0.408248
    wanted = [[0.5, r, 0], [r, 1 / 3, r], [0, r, 0.5]]
    got = layer(torch.eye(3).double(), Edges.of(PATH, 3))
    assert torch.allclose(got, torch.tensor(wanted).double(), atol=1e-6)


def test_convolutions_are_their_formulas() -> None:
    index, x = random_edges(5), normal(N, 4)
    a, edges = dense(index), Edges.of(index, N)
    loops = torch.maximum(a, torch.eye(N).double())
    gcn, sage, gat, gin = (LAYERS[n]().double() for n in ("gcn", "sage", "gat", "gin"))
    scale = loops.sum(1).rsqrt()
    assert torch.allclose(gcn(x, edges), (scale[:, None] * loops * scale) @ (x @ gcn.lin.weight.T))
    mean = a / a.sum(1, keepdim=True).clamp(min=1)
    assert torch.allclose(sage(x, edges), sage.lin_l(mean @ x) + sage.lin_r(x))
    assert torch.allclose(gin(x, edges), gin.nn((1 + gin.eps) * x + a @ x))
    h = gat.lin(x).reshape(N, 2, 3)
    outs = []
    for head in range(2):
        s, t = h[:, head] @ gat.att_src[0, head], h[:, head] @ gat.att_dst[0, head]
        score = torch.nn.functional.leaky_relu(s[None, :] + t[:, None], 0.2)
        weight = score.masked_fill(loops == 0, -torch.inf).softmax(1)
        outs.append(weight @ h[:, head])
    assert torch.allclose(gat(x, edges), torch.cat(outs, 1))


def test_weighted_edges_of_a_gcn() -> None:
    edges, x = Edges.of(PATH, 3), normal(3, 4)
    layer = GCNConv(4, 3).double()
    weight = torch.tensor([2.0, 0.5, 0.5, 3.0]).double()
    a = torch.eye(3).double()
    a[edges.target, edges.source] = weight
    scale = a.sum(1).rsqrt()
    wanted = (scale[:, None] * a * scale) @ (x @ layer.lin.weight.T)
    assert torch.allclose(layer(x, edges, weight), wanted)


def test_a_loop_keeps_its_weight_in_a_gcn() -> None:
    index = torch.tensor([[0, 1, 0, 2, 2], [0, 0, 1, 2, 2]])  # 0 → 0, and two loops of 2
    edges, x = Edges.of(index, 4), normal(4, 4)
    layer = GCNConv(4, 3).double()
    weight = torch.tensor([5.0, 0.5, 2.0, 3.0, 4.0]).double()[edges.order]
    a = torch.diag(torch.tensor([5.0, 1.0, 7.0, 1.0])).double()
    a[0, 1], a[1, 0] = 0.5, 2.0
    scale = a.sum(1).rsqrt()
    wanted = (scale[:, None] * a * scale) @ (x @ layer.lin.weight.T)
    assert torch.allclose(layer(x, edges, weight), wanted)
    none = Edges.of(torch.zeros(2, 0, dtype=torch.int64), 4)
    assert torch.allclose(layer(x, none, weight[:0]), x @ layer.lin.weight.T)


def test_attention_without_a_preference_is_the_mean_with_oneself() -> None:
    layer, x = GATConv(4, 3).double(), normal(3, 4)
    nn.init.zeros_(layer.att_src)
    nn.init.zeros_(layer.att_dst)
    loops = dense(PATH, 3) + torch.eye(3)
    assert torch.allclose(
        layer(x, Edges.of(PATH, 3)), loops / loops.sum(1, keepdim=True) @ layer.lin(x)
    )


def test_sums_tell_apart_what_means_do_not() -> None:
    """Two stars whose leaves differ in number: the mean of equal neighbours is the same."""
    stars = [torch.tensor([[*range(1, n)], [0] * (n - 1)]) for n in (3, 4)]
    outs = {
        name: [layer(torch.ones(int(s.max()) + 1, 4).double(), Edges.of(s, int(s.max()) + 1))[0]
               for s in stars]
        for name, layer in (("gin", LAYERS["gin"]().double()), ("sage", LAYERS["sage"]().double()))
    }  # fmt: skip
    assert not torch.allclose(*outs["gin"]) and torch.allclose(*outs["sage"])


def test_wrong_features_name_both_shapes() -> None:
    for name in ("gcn", "sage", "gat"):
        with pytest.raises(ShapeError, match=r"\(nodes, 4\), got \(3, 5\)"):
            LAYERS[name]()(torch.ones(3, 5), Edges.of(PATH, 3))


def test_an_isolated_node_hears_itself_alone() -> None:
    edges, x = Edges.of(torch.zeros(2, 0, dtype=torch.int64), 2), normal(2, 4)
    layer = GCNConv(4, 3).double()
    assert torch.allclose(layer(x, edges), layer.lin(x))
    assert torch.isfinite(LAYERS["gat"]().double()(x, edges)).all()


# --- pooling -----------------------------------------------------------------------------


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_pooling_is_by_group(reduce: str) -> None:
    x, index = normal(8, 2), torch.tensor([2, 0, 2, 0, 0, 3, 2, 3])
    got = pool(x, index, 4, reduce)
    for g in (0, 2, 3):
        rows = x[index == g]
        wanted = {"sum": rows.sum(0), "mean": rows.mean(0), "max": rows.amax(0)}[reduce]
        assert torch.allclose(got[g], wanted)
    assert (got[1] == 0).all()
    order = torch.randperm(8, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(pool(x[order], index[order], 4, reduce), got)


def test_edges_to_nodes_is_the_incidence_matrix() -> None:
    edges = Edges.of(random_edges(), N)
    e = normal(len(edges.source), 3)
    incidence = torch.nn.functional.one_hot(edges.target, N).T.double()
    assert torch.allclose(edge_to_node(e, edges), incidence @ e)
    star = Edges.of(torch.tensor([[1, 2, 3], [0, 0, 0]]), 4)
    assert torch.allclose(edge_to_node(e[:3], star)[0], e[:3].sum(0))


def test_nodes_to_edges_and_graphs() -> None:
    edges, x = Edges.of(PATH, 3), normal(3, 2)
    ends = torch.stack((x[edges.source], x[edges.target]))
    assert torch.equal(node_to_edge(x, edges), ends.sum(0))
    assert torch.equal(node_to_edge(x, edges, "max"), ends.amax(0))
    offsets = torch.tensor([0, 1, 3])
    assert torch.allclose(global_pool(x, offsets), torch.stack((x[0], x[1] + x[2])))
    assert torch.allclose(global_pool(x[[0, 2, 1]], offsets), global_pool(x, offsets))
    for call in (lambda: pool(x, torch.tensor([0, 0, 1]), 2, "min"),
                 lambda: node_to_edge(x, edges, "min")):  # fmt: skip
        with pytest.raises(Unsupported, match="sum, mean, max"):
            call()


def test_gin_by_name_is_normalised_and_files_without_the_setting_stay_plain() -> None:
    from groundstate.nn.graph.networks import GNN, gin

    by_name = gin(2, 3, hidden=4)
    assert by_name.config()["norm"] and any(isinstance(m, nn.LayerNorm) for m in by_name.modules())
    old = {k: v for k, v in by_name.config().items() if k != "norm"}
    assert not any(isinstance(m, nn.LayerNorm) for m in GNN(**old).modules())
    again = GNN(**by_name.config())
    again.load_state_dict(by_name.state_dict())
    assert not any(isinstance(m, nn.LayerNorm) for m in gin(2, 3, norm=False).modules())

"""Networks that answer once for a sequence: readouts, padding, packing, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from groundstate.compute.rows import Ragged
from groundstate.errors import ShapeError, Unsupported
from groundstate.nn import TransformerEncoder, architectures, masks, pack_rows, pad_batch
from groundstate.nn.recurrent.sequence_network import READOUTS
from groundstate.store import dumps, loads

NETWORKS = ["gru", "lstm", "rnn", "tcn", "transformer"]
SMALL: dict[str, Any] = {"in_features": 3, "num_classes": 2, "hidden": 8}


def made(name: str, **options: Any) -> torch.nn.Module:
    net = architectures.create(name, **SMALL, **options).double().eval()
    for p in net.parameters():
        if not p.any():
            torch.nn.init.normal_(p, std=0.3, generator=torch.Generator().manual_seed(1))
    return net


def ragged(*lengths: int) -> Ragged:
    g = torch.Generator().manual_seed(0)
    rows = [torch.randn(n, 3, generator=g, dtype=torch.float64) for n in lengths]
    return Ragged.of(rows, torch.float64)


@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("name", NETWORKS)
def test_answers_do_not_depend_on_padding(name: str, readout: str) -> None:
    net, rows = made(name, readout=readout), ragged(5, 1, 7, 3)
    out = net(rows)
    for i in range(len(rows)):
        alone = net(rows.take(torch.tensor([i])).values[None])
        torch.testing.assert_close(out[i : i + 1], alone, rtol=0, atol=1e-12)
    for extra in (0, 1, 30):
        x = rows.padded(fill=100.0, length=7 + extra)
        torch.testing.assert_close(net(x, rows.lengths), out, rtol=0, atol=1e-12)
    single = net.float()(rows.floating(torch.float32))
    more = net(rows.floating(torch.float32).padded(-3.0, 40), rows.lengths)
    torch.testing.assert_close(
        more, single, rtol=0, atol=0
    )  # padding is cut before anything is summed


@pytest.mark.parametrize("name", ["gru", "lstm", "rnn"])
def test_both_ways_read_the_ends(name: str) -> None:
    net, rows = made(name, bidirectional=True), ragged(4, 2)
    h = net.body(rows.padded(), rows.lengths)
    expected = torch.cat([h[[0, 1], [3, 1], :8], h[:, 0, 8:]], 1)
    torch.testing.assert_close(net(rows), net.head(expected))
    turned = rows.like(torch.cat([part.flip(0) for part in rows.values.split([4, 2])]))
    assert not torch.allclose(net(turned), net(rows))


@pytest.mark.parametrize("name", NETWORKS)
def test_the_order_of_the_items_matters(name: str) -> None:
    net, rows = made(name), ragged(6)
    assert not torch.allclose(net(rows.like(rows.values.flip(0))), net(rows), atol=1e-4)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_stored(name: str) -> None:
    net, rows = made(name, readout="attention"), ragged(5, 2)
    assert torch.equal(loads(dumps(net))(rows), net(rows))


def test_packed_texts_are_separate_texts() -> None:
    net = TransformerEncoder(8, 2, 2, 16).double().eval()
    g = torch.Generator().manual_seed(0)
    texts = [torch.randn(n, 8, generator=g, dtype=torch.float64) for n in (3, 5, 2, 4)]
    rows = pack_rows([len(t) for t in texts], 7)
    assert len(rows) == 2 < len(texts)
    long = [torch.cat([texts[i] for i in row]) for row in rows]
    packed, real = pad_batch(Ragged.of(long, torch.float64))
    names = [torch.cat([torch.full((len(texts[i]),), i) for i in row]) for row in rows]
    ids, _ = pad_batch(Ragged.of(names), fill=-1)
    out = net(packed, masks.document(ids))
    for r, row in enumerate(rows):
        at = 0
        for i in row:
            alone = net(texts[i][None])[0]
            torch.testing.assert_close(out[r, at : at + len(alone)], alone, rtol=0, atol=1e-12)
            at += len(alone)
        assert at == int(real[r].sum())


@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_row_without_items_is_answered_by_the_bias(name: str, readout: str) -> None:
    net = made(name, readout=readout)
    out = net(ragged(3, 0, 2))
    assert torch.equal(out[1], net.head.bias) and out.isfinite().all()
    torch.testing.assert_close(out[[0, 2]], net(ragged(3, 2)), rtol=0, atol=1e-12)
    assert torch.equal(net(ragged(0, 0)), net.head.bias.expand(2, -1))
    out.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in net.parameters())


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(Unsupported, match="last, mean, max, attention"):
        made("gru", readout="first")
    with pytest.raises(ShapeError, match="at least one item"):
        made("tcn")(torch.zeros(2, 0, 3).double())
    with pytest.raises(ValueError, match="multiple of heads"):
        architectures.create("transformer", hidden=6, heads=4)
    with pytest.raises(ShapeError, match=r"length, 3\), got \(2, 5, 4\)"):
        made("transformer")(torch.zeros(2, 5, 4).double())

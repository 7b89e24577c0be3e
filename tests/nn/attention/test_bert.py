"""BERT: the formulas written out with Hugging Face's names, sizes, padding, segments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F

from groundstate.errors import ShapeError, StoreError
from groundstate.nn import BERT, MaskedBERT
from groundstate.nn.attention.pretrained import bert_state, load_bert
from groundstate.store import dumps, loads

D, HEADS, LAYERS, VOCAB, CONTEXT = 8, 2, 2, 11, 6
CONFIG = {
    "model_type": "bert", "vocab_size": VOCAB, "max_position_embeddings": CONTEXT,
    "hidden_size": D, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS,
    "intermediate_size": 12, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
}  # fmt: skip
TOKENS = torch.tensor([[1, 5, 3, 2, 0], [4, 4, 10, 7, 9]])
SEGMENTS = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 1, 1, 1]])


def weights() -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    dense: dict[str, tuple[int, ...]] = {"bert.pooler.dense": (D, D)}
    norms = ["bert.embeddings.LayerNorm", "cls.predictions.transform.LayerNorm"]
    dense |= {"cls.predictions.transform.dense": (D, D), "cls.seq_relationship": (2, D)}
    for i in range(LAYERS):
        at = f"bert.encoder.layer.{i}."
        for name in ("query", "key", "value"):
            dense[f"{at}attention.self.{name}"] = (D, D)
        dense[f"{at}attention.output.dense"] = (D, D)
        dense[f"{at}intermediate.dense"], dense[f"{at}output.dense"] = (12, D), (D, 12)
        norms += [f"{at}attention.output.LayerNorm", f"{at}output.LayerNorm"]
    sizes: dict[str, tuple[int, ...]] = {
        "bert.embeddings.word_embeddings.weight": (VOCAB, D),
        "bert.embeddings.position_embeddings.weight": (CONTEXT, D),
        "bert.embeddings.token_type_embeddings.weight": (2, D),
        "cls.predictions.bias": (VOCAB,),
    }
    for name, shape in dense.items():
        sizes[f"{name}.weight"], sizes[f"{name}.bias"] = shape, shape[:1]
    for name in norms:
        sizes[f"{name}.weight"] = sizes[f"{name}.bias"] = (D,)
    return {name: 0.4 * torch.randn(s, generator=g) for name, s in sizes.items()}


def written_out(w: dict[str, Tensor], real: Tensor) -> tuple[Tensor, Tensor]:
    """Scores of tokens and of the next sentence, as BERT's authors published them."""

    def norm(name: str, x: Tensor) -> Tensor:
        return F.layer_norm(x, (D,), w[f"{name}.weight"], w[f"{name}.bias"], 1e-12)

    def dense(name: str, x: Tensor) -> Tensor:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    n, t = TOKENS.shape
    e = "bert.embeddings."
    x = w[f"{e}word_embeddings.weight"][TOKENS] + w[f"{e}position_embeddings.weight"][:t]
    x = norm(f"{e}LayerNorm", x + w[f"{e}token_type_embeddings.weight"][SEGMENTS])
    for i in range(LAYERS):
        at = f"bert.encoder.layer.{i}."
        q, k, v = (
            dense(f"{at}attention.self.{name}", x).reshape(n, t, HEADS, -1).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        scores = q @ k.transpose(-1, -2) / (D // HEADS) ** 0.5
        scores = scores.masked_fill(~real[:, None, None], -torch.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, D)
        x = norm(f"{at}attention.output.LayerNorm", x + dense(f"{at}attention.output.dense", mixed))
        h = dense(f"{at}output.dense", F.gelu(dense(f"{at}intermediate.dense", x)))
        x = norm(f"{at}output.LayerNorm", x + h)
    p = "cls.predictions.transform."
    h = norm(f"{p}LayerNorm", F.gelu(dense(f"{p}dense", x)))
    tokens = h @ w[f"{e}word_embeddings.weight"].T + w["cls.predictions.bias"]
    return tokens, dense("cls.seq_relationship", dense("bert.pooler.dense", x[:, 0]).tanh())


def folder(path: Path, w: dict[str, Tensor], config: dict[str, object] = CONFIG) -> Path:
    (path / "config.json").write_text(json.dumps(config))
    save_file({k: v.contiguous() for k, v in w.items()}, path / "model.safetensors")
    return path


@torch.no_grad()
def test_scores_are_those_of_the_formulas(tmp_path: Path) -> None:
    """Equal to transformers 5.22's BertForMaskedLM and BertForPreTraining to 2e-5 on random
    weights, too."""
    w, real = weights(), torch.ones(2, 5, dtype=torch.bool)
    real[0, 3:] = False
    net = load_bert(folder(tmp_path, w))
    hidden = net.bert(TOKENS, real, SEGMENTS)
    tokens, follows = written_out(w, real)
    torch.testing.assert_close(net.scores(hidden)[real], tokens[real], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(net.follows(hidden), follows, atol=1e-5, rtol=1e-5)
    again = loads(dumps(net))
    assert torch.equal(again(TOKENS, real, SEGMENTS), net(TOKENS, real, SEGMENTS))


def test_heads_that_are_not_in_the_file_start_anew(tmp_path: Path) -> None:
    w = {k.removeprefix("bert."): v for k, v in weights().items() if not k.startswith("cls.")}
    w["embeddings.LayerNorm.gamma"] = w.pop("embeddings.LayerNorm.weight")
    net = load_bert(folder(tmp_path, w))
    assert net.follow is None and net.pooler and not net.bias.any()
    assert net(TOKENS).shape == (2, 5, VOCAB)
    assert loads(dumps(net)).bert.pool is not None
    w.pop("embeddings.LayerNorm.bias")
    with pytest.raises(StoreError, match=r"lacks bert.norm.bias"):
        load_bert(folder(tmp_path, w))
    with pytest.raises(StoreError, match="no tensor of a BERT"):
        bert_state({"decoder.weight": torch.ones(1)})
    with pytest.raises(StoreError, match="word_embeddings"):
        bert_state({})


def test_sizes() -> None:
    with torch.device("meta"):
        net = BERT(generator=torch.Generator())
    assert sum(p.numel() for p in net.parameters()) == 109_482_240


@torch.no_grad()
def test_padding_changes_nothing_and_segments_follow_the_separator() -> None:
    net = MaskedBERT(VOCAB, CONTEXT, D, HEADS, LAYERS, separator=2).eval()
    short = torch.tensor([[1, 5, 2]])
    padded = torch.tensor([[1, 5, 2, 9, 9]])
    real = torch.arange(5)[None] < 3
    assert torch.allclose(net(short), net(padded, real)[:, :3], atol=1e-6)
    pair = torch.tensor([[1, 2, 5, 2, 5]])
    given = net(pair, None, torch.tensor([[0, 0, 1, 1, 1]]))
    assert torch.equal(net(pair), given)
    with pytest.raises(ShapeError, match="at most 6"):
        net(torch.ones(1, 7, dtype=torch.int64))

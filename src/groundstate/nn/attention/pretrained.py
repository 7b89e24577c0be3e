"""Weights that a user has: language models as other libraries keep them, read from a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from groundstate.errors import StoreError
from groundstate.nn.attention.bert import MaskedBERT
from groundstate.nn.attention.gpt import GPT

_GPT2 = {  # name in the file: (ours, whether the file keeps the transpose)
    "wte.weight": ("embed.weight", False),
    "wpe.weight": ("place.weight", False),
    "ln_f.weight": ("stack.last.weight", False),
    "ln_f.bias": ("stack.last.bias", False),
}
_GPT2_BLOCK = {
    "ln_1": ("attend_norm", False), "attn.c_attn": ("attend.qkv", True),
    "attn.c_proj": ("attend.out", True), "ln_2": ("feed_norm", False),
    "mlp.c_fc": ("feed.up", True), "mlp.c_proj": ("feed.down", True),
}  # fmt: skip
_BLOCK = re.compile(r"h\.(\d+)\.(.+)\.(weight|bias)")


def gpt2_state(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The ``state_dict`` of a ``GPT`` from that of a GPT-2 with Hugging Face's names."""
    found: dict[str, Tensor] = {}
    for given, tensor in weights.items():
        name = given.removeprefix("transformer.")
        if name == "lm_head.weight" or name.endswith((".attn.bias", ".attn.masked_bias")):
            continue  # tied to the embedding; the causal mask as a buffer of old files
        block = _BLOCK.fullmatch(name)
        if block and block[2] in _GPT2_BLOCK:
            ours, turned = _GPT2_BLOCK[block[2]]
            ours = f"stack.blocks.{block[1]}.{ours}.{block[3]}"
        elif name in _GPT2:
            ours, turned = _GPT2[name]
        else:
            raise StoreError(f"{given!r} is no tensor of a GPT-2")
        found[ours] = tensor.T.contiguous() if turned and tensor.ndim == 2 else tensor
    if "embed.weight" not in found:
        raise StoreError(
            f"the embedding wte.weight of a GPT-2 is missing; found {len(found)} tensors"
        )
    found["score.weight"] = found["embed.weight"]
    return found


def load_gpt2(folder: str | Path) -> GPT:
    """A ``GPT`` from a folder with ``config.json`` and ``model.safetensors`` of a GPT-2.

    Nothing is downloaded.
    """
    config, weights = _checkpoint(folder, "gpt2")
    with torch.device("meta"):
        net = GPT(
            config["vocab_size"], config["n_positions"], config["n_embd"], config["n_head"],
            config["n_layer"], config.get("n_inner"),
            activation=_activation(config.get("activation_function", "gelu_new")),
            generator=torch.Generator(),
        )  # fmt: skip
    net = net.to_empty(device="cpu")
    net.score.weight = net.embed.weight  # one tensor again
    net.load_state_dict(gpt2_state(weights))
    return net.eval()


_BERT = {
    "embeddings.word_embeddings": "bert.embed", "embeddings.position_embeddings": "bert.place",
    "embeddings.token_type_embeddings": "bert.segment", "embeddings.LayerNorm": "bert.norm",
    "pooler.dense": "bert.pool", "cls.predictions.transform.dense": "transform",
    "cls.predictions.transform.LayerNorm": "norm", "cls.seq_relationship": "follow",
}  # fmt: skip
_BERT_BLOCK = {
    "attention.output.dense": "attend.out", "attention.output.LayerNorm": "attend_norm",
    "intermediate.dense": "feed.up", "output.dense": "feed.down", "output.LayerNorm": "feed_norm",
}  # fmt: skip
_BERT_LAYER = re.compile(r"encoder\.layer\.(\d+)\.(.+)")


def bert_state(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The ``state_dict`` of a ``MaskedBERT`` from that of a BERT with Hugging Face's names.

    What the file does not hold (heads, the pooler) is not there.
    """
    found: dict[str, Tensor] = {}
    parts: dict[str, dict[str, Tensor]] = {}  # queries, keys and values of a layer
    for given, tensor in weights.items():
        name = given.removeprefix("bert.").replace(".gamma", ".weight").replace(".beta", ".bias")
        module, _, kind = name.rpartition(".")
        block = _BERT_LAYER.fullmatch(module)
        if module == "cls.predictions.decoder" or kind == "position_ids":
            continue  # tied; a buffer of old files
        if name == "cls.predictions.bias":
            found["bias"] = tensor
        elif module in _BERT:
            found[f"{_BERT[module]}.{kind}"] = tensor
        elif block and block[2] in _BERT_BLOCK:
            found[f"bert.stack.blocks.{block[1]}.{_BERT_BLOCK[block[2]]}.{kind}"] = tensor
        elif block and block[2].startswith("attention.self."):
            ours = f"bert.stack.blocks.{block[1]}.attend.qkv.{kind}"
            parts.setdefault(ours, {})[block[2].rpartition(".")[2]] = tensor
        else:
            raise StoreError(f"{given!r} is no tensor of a BERT")
    for ours, three in parts.items():
        found[ours] = torch.cat([three[n] for n in ("query", "key", "value")])
    if "bert.embed.weight" not in found:
        raise StoreError(
            f"the embedding word_embeddings of a BERT is missing; found {len(found)} tensors"
        )
    return found


def load_bert(folder: str | Path, *, separator: int | None = None) -> MaskedBERT:
    """A ``MaskedBERT`` from a folder with ``config.json`` and ``model.safetensors`` of a BERT.

    Nothing is downloaded. Heads that the file does not hold start anew.

    Parameters
    ----------
    folder : of the checkpoint
    separator : see ``BERT``
    """
    config, weights = _checkpoint(folder, "bert")
    state = bert_state(weights)
    net = MaskedBERT(
        config["vocab_size"], config["max_position_embeddings"], config["hidden_size"],
        config["num_attention_heads"], config["num_hidden_layers"], config["intermediate_size"],
        nsp="follow.weight" in state, pooler="bert.pool.weight" in state, separator=separator,
        activation=_activation(config.get("hidden_act", "gelu")),
        dropout=config.get("hidden_dropout_prob", 0.1), eps=config.get("layer_norm_eps", 1e-12),
    )  # fmt: skip
    missing, wrong = net.load_state_dict(state, strict=False)
    lost = [n for n in missing if not n.startswith(("transform.", "norm.", "bias"))]
    if lost or wrong:
        raise StoreError(f"{folder} lacks {', '.join(lost[:3]) or 'nothing'} and has "
                         f"{', '.join(wrong[:3]) or 'nothing'} that a BERT does not")  # fmt: skip
    return net.eval()


def _checkpoint(folder: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The configuration and the tensors of a folder."""
    folder = Path(folder)
    missing = [n for n in ("config.json", "model.safetensors") if not (folder / n).is_file()]
    if missing:
        raise StoreError(f"{folder} holds no {' and no '.join(missing)}; give a folder with both")
    from safetensors.torch import load_file

    config = json.loads((folder / "config.json").read_text())
    if config.get("model_type") != kind:
        raise StoreError(f"{folder} holds a {config.get('model_type')!r}, expected {kind!r}")
    return config, load_file(folder / "model.safetensors")


def _activation(given: str) -> str:
    return {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}.get(given, given)

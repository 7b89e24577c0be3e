"""Weights of GPT-2 by Hugging Face's names: the same scores as its formulas written out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F

from groundstate.errors import StoreError
from groundstate.nn.attention.pretrained import gpt2_state, load_gpt2

D, HEADS, LAYERS, VOCAB, CONTEXT = 8, 2, 2, 11, 6
CONFIG = {
    "model_type": "gpt2", "vocab_size": VOCAB, "n_positions": CONTEXT, "n_embd": D, "n_head": HEADS,
    "n_layer": LAYERS, "n_inner": None, "activation_function": "gelu_new",
}  # fmt: skip


def weights() -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    sizes: dict[str, tuple[int, ...]] = {"wte.weight": (VOCAB, D), "wpe.weight": (CONTEXT, D)}
    for i in range(LAYERS):
        for name, shape in {
            "ln_1": (D,), "attn.c_attn": (D, 3 * D), "attn.c_proj": (D, D), "ln_2": (D,),
            "mlp.c_fc": (D, 4 * D), "mlp.c_proj": (4 * D, D),
        }.items():  # fmt: skip
            sizes[f"h.{i}.{name}.weight"], sizes[f"h.{i}.{name}.bias"] = shape, shape[-1:]
    sizes |= {"ln_f.weight": (D,), "ln_f.bias": (D,)}
    return {f"transformer.{n}": 0.3 * torch.randn(s, generator=g) for n, s in sizes.items()}


def written_out(w: dict[str, Tensor], tokens: Tensor) -> Tensor:
    """GPT-2 with weights (in, out), as its authors published it."""
    w = {name.removeprefix("transformer."): v for name, v in w.items()}

    def norm(name: str, x: Tensor) -> Tensor:
        return F.layer_norm(x, (D,), w[f"{name}.weight"], w[f"{name}.bias"])

    def dense(name: str, x: Tensor) -> Tensor:
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    t = tokens.shape[1]
    x = w["wte.weight"][tokens] + w["wpe.weight"][:t]
    for i in range(LAYERS):
        q, k, v = dense(f"h.{i}.attn.c_attn", norm(f"h.{i}.ln_1", x)).chunk(3, -1)
        q, k, v = (a.reshape(len(x), t, HEADS, D // HEADS).transpose(1, 2) for a in (q, k, v))
        scores = q @ k.transpose(-1, -2) / (D // HEADS) ** 0.5
        scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(len(x), t, D)
        x = x + dense(f"h.{i}.attn.c_proj", mixed)
        h = F.gelu(dense(f"h.{i}.mlp.c_fc", norm(f"h.{i}.ln_2", x)), approximate="tanh")
        x = x + dense(f"h.{i}.mlp.c_proj", h)
    return norm("ln_f", x) @ w["wte.weight"].T


def folder(path: Path, config: dict[str, object] = CONFIG) -> Path:
    (path / "config.json").write_text(json.dumps(config))
    save_file(weights(), path / "model.safetensors")
    return path


def test_scores_are_those_of_the_formulas(tmp_path: Path) -> None:
    net = load_gpt2(folder(tmp_path))
    tokens = torch.randint(VOCAB, (3, CONTEXT), generator=torch.Generator().manual_seed(1))
    assert torch.allclose(net(tokens), written_out(weights(), tokens), atol=1e-5)
    assert net.score.weight is net.embed.weight and not net.training


def test_masks_and_tied_heads_of_files_are_passed_over() -> None:
    w = weights()
    w["transformer.h.0.attn.bias"] = torch.ones(1, 1, CONTEXT, CONTEXT)
    w["lm_head.weight"] = w["transformer.wte.weight"]
    assert gpt2_state(w).keys() == gpt2_state(weights()).keys()


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no config\.json and no model\.safetensors"):
        load_gpt2(tmp_path)
    with pytest.raises(StoreError, match="holds a 'bert'"):
        load_gpt2(folder(tmp_path, {**CONFIG, "model_type": "bert"}))
    with pytest.raises(StoreError, match="'encoder.weight' is no tensor of a GPT-2"):
        gpt2_state({"encoder.weight": torch.ones(1)})
    with pytest.raises(StoreError, match="wte.weight"):
        gpt2_state({})

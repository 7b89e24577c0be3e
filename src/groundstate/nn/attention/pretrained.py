"""Weights that a user has: language models as other libraries keep them, read from a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from groundstate.errors import StoreError
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
    folder = Path(folder)
    missing = [n for n in ("config.json", "model.safetensors") if not (folder / n).is_file()]
    if missing:
        raise StoreError(f"{folder} holds no {' and no '.join(missing)}; give a folder with both")
    from safetensors.torch import load_file

    config = json.loads((folder / "config.json").read_text())
    if config.get("model_type") != "gpt2":
        raise StoreError(f"{folder} holds a {config.get('model_type')!r}, expected 'gpt2'")
    activations = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}
    given = config.get("activation_function", "gelu_new")
    with torch.device("meta"):
        net = GPT(
            config["vocab_size"], config["n_positions"], config["n_embd"], config["n_head"],
            config["n_layer"], config.get("n_inner"), activation=activations.get(given, given),
            generator=torch.Generator(),
        )  # fmt: skip
    net = net.to_empty(device="cpu")
    net.score.weight = net.embed.weight  # one tensor again
    net.load_state_dict(gpt2_state(load_file(folder / "model.safetensors")))
    return net.eval()

"""Weights of torchvision and Hugging Face in our networks: the same names, shapes and answers.

Usage: python bench/scripts/weights_parity.py [NAME ...]

Every peer is made on the spot with random weights, nothing is downloaded; running statistics of batch norms
are drawn as well, so that they count. Printed is the largest difference of the answers, over the largest
answer.
"""

from __future__ import annotations

import re
import sys
import tempfile
from importlib import import_module
from typing import Any

import torch
from torch import nn

from groundstate import architectures
from groundstate.nn.attention.pretrained import load_bert, load_gpt2

IMAGES = ("alexnet", "vgg11", "vgg16", "resnet18", "resnet50", "densenet121", "vit_b_16")
TOL = 1e-5
OPERATIONS = torch.library.Library("torchvision", "FRAGMENT")


def stirred(net: nn.Module) -> nn.Module:
    """Batch norms with statistics of their own, and heads that are not zero."""
    draws = torch.Generator().manual_seed(0)
    for name, value in net.state_dict().items():
        if name.endswith("running_mean"):
            value.copy_(0.1 * torch.randn(value.shape, generator=draws))
        elif name.endswith("running_var"):
            value.copy_(0.5 + torch.rand(value.shape, generator=draws))
        elif name.startswith(("heads.", "classifier.", "fc.")) and value.ndim == 2:
            value.copy_(0.02 * torch.randn(value.shape, generator=draws))
    return net.eval()


def pictures() -> Any:
    """torchvision; one that was built for another torch is without its compiled operations, which its import
    names and nothing here needs."""
    while True:
        try:
            return import_module("torchvision.models")
        except RuntimeError as error:
            lacks = re.search(r"torchvision::(\w+) does not exist", str(error))
            if lacks is None:
                raise
        for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        OPERATIONS.define(f"{lacks[1]}(Tensor x) -> Tensor")


@torch.no_grad()
def image(name: str) -> float:
    peer = stirred(getattr(pictures(), name)(weights=None))
    net = architectures.create(name)
    net.load_state_dict(peer.state_dict(), strict=True)
    x = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(1))
    return apart(net.eval()(x), peer(x))


@torch.no_grad()
def gpt2() -> float:
    import transformers

    config = transformers.GPT2Config(n_embd=64, n_layer=3, n_head=4, vocab_size=101, n_positions=40)
    peer = transformers.GPT2LMHeadModel(config).eval()
    x = torch.randint(101, (3, 40), generator=torch.Generator().manual_seed(1))
    with tempfile.TemporaryDirectory() as folder:
        peer.save_pretrained(folder)
        return apart(load_gpt2(folder)(x), peer(x).logits)


@torch.no_grad()
def bert() -> float:
    import transformers

    config = transformers.BertConfig(
        hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=128,
        vocab_size=101, max_position_embeddings=40,
    )  # fmt: skip
    peer = transformers.BertForPreTraining(config).eval()
    x = torch.randint(101, (3, 40), generator=torch.Generator().manual_seed(1))
    with tempfile.TemporaryDirectory() as folder:
        peer.save_pretrained(folder)
        return apart(load_bert(folder)(x), peer(x).prediction_logits)


def apart(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    return float((ours - theirs).abs().max() / theirs.abs().max())


def main() -> None:
    others: dict[str, Any] = {"gpt2": gpt2, "bert": bert}
    bad = []
    pictures()  # transformers looks for it as well
    for name in sys.argv[1:] or [*IMAGES, *others]:
        found = others[name]() if name in others else image(name)
        print(f"{name}: {found:.2e}", flush=True)
        if not found <= TOL:
            bad.append(name)
    if bad:
        raise SystemExit(f"further apart than {TOL}: {', '.join(bad)}")


if __name__ == "__main__":
    main()

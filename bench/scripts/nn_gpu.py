"""Networks on a GPU: the same values as on the CPU, the same bits twice, and steps beside a bare loop.

Usage: python bench/scripts/nn_gpu.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy import SequenceEnergy
from groundstate.infer import decode
from groundstate.nn import GPT, TCN, Edges, GATConv, GCNConv, GINConv, Recurrent, SAGEConv, masks
from groundstate.nn import dot_product_attention as attend
from groundstate.nn.attention.flex import causal_mod, document_mod, flex_attention, window_mod


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def timed(f: Callable[[], Any], n: int = 20) -> float:
    f()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(n):
        f()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / n


def flex() -> None:
    q, k, v = (drawn(2, 4, 512, 64, seed=s).cuda() for s in range(3))
    ids = (torch.arange(512).expand(2, -1) // 200).cuda()
    pairs = {
        "causal": (causal_mod, masks.causal(512, device="cuda")),
        "window": (window_mod(64), masks.sliding_window(512, 64, device="cuda")),
        "documents": (document_mod(ids), masks.document(ids) & masks.causal(512, device="cuda")),
    }
    for name, (mod, mask) in pairs.items():
        off = (flex_attention(q, k, v, mod) - attend(q, k, v, mask)).abs().max().item()
        print(f"flex {name}: off from the dense mask by {off:.1e}")


def modules() -> None:
    cases = {
        "lstm": (Recurrent("lstm", 16, 32, 2), drawn(8, 40, 16)),
        "gru": (Recurrent("gru", 16, 32), drawn(8, 40, 16)),
        "tcn": (TCN(16, 32), drawn(8, 40, 16)),
        "gpt": (GPT(100, 64, 64, 4, 3), torch.arange(64).expand(4, -1)),
    }
    for name, (net, x) in cases.items():
        net.eval()
        off = (net(x) - net.cuda()(x.cuda()).cpu()).abs().max().item()
        print(f"{name}: GPU off from CPU by {off:.1e}")


def graphs() -> None:
    for n, e in ((1_000, 10_000), (100_000, 1_000_000)):
        index = torch.randint(n, (2, e), generator=torch.Generator().manual_seed(0))
        index = torch.unique(index, dim=1)
        x = drawn(n, 64)
        home, there = Edges.of(index, n), Edges.of(index.cuda(), n)
        layers = GCNConv(64, 64), SAGEConv(64, 64), GATConv(64, 16, 4), GINConv(nn.Linear(64, 64))
        for layer in layers:
            cpu = layer(x, home)
            layer = layer.cuda()
            grads = []
            for _ in range(3):
                given = x.cuda().requires_grad_(True)
                out = layer(given, there)
                out.square().sum().backward()
                grads.append((out.detach(), given.grad))
            off = (cpu - out.cpu()).abs().max().item()
            same = all(torch.equal(a, b) for g in grads[1:] for a, b in zip(g, grads[0]))
            took = timed(partial(step_of, layer, x.cuda(), there), 5)
            print(f"{type(layer).__name__}, {e} edges: off {off:.1e}, same bits {same}, "
                  f"step {1e3 * took:.2f} ms")  # fmt: skip


def step_of(layer: nn.Module, x: Tensor, edges: Edges) -> None:
    layer(x.detach().requires_grad_(True), edges).sum().backward()


def language() -> None:
    net = GPT(1000, 512, 384, 6, 6).cuda().eval()
    energy = SequenceEnergy(net, 1000, 511, bos=999).cuda()
    prompt = torch.randint(998, (16, 32), generator=torch.Generator().manual_seed(0)).cuda()
    for method in ("greedy", "beam"):
        start = time.perf_counter()
        decode(energy, method, prompt=prompt, max_new_tokens=256)
        torch.cuda.synchronize()
        print(f"decode {method}, 16 rows, 256 new tokens: {time.perf_counter() - start:.2f} s")
    tokens = torch.randint(1000, (64, 256), device="cuda")
    net.train()
    steps = torch.optim.AdamW(net.parameters(), fused=True)

    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        steps.step()
        steps.zero_grad()

    took = timed(step)
    flops = 64 * 256 * (6 * sum(p.numel() for p in net.parameters()) + 12 * 6 * 384 * 256)
    print(
        f"GPT 6 x 384, 64 x 256 tokens, bf16: {1e3 * took:.1f} ms, {flops / took / 1e12:.0f} TFLOP/s"
    )


if __name__ == "__main__":
    print(torch.cuda.get_device_name(), torch.__version__)
    flex()
    modules()
    graphs()
    language()

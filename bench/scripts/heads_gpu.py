"""Losses, heads, gradients and landscapes on a GPU against the same on the CPU.

``python bench/scripts/heads_gpu.py [--device cuda]`` compares values and gradients of every loss in
double precision and prints the largest difference of each.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch import Tensor

from groundstate import optim
from groundstate.learn.gradients import gradcheck, jacobian, per_example_grads
from groundstate.learn.losses import LOSSES, head_of, triplet_batch

N, M = 256, 4
F64 = torch.float64


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


OUTCOMES: dict[str, Callable[[], Tensor]] = {
    "real": lambda: normal(N, M, seed=3),
    "positive": lambda: normal(N, M, seed=3).exp(),
    "unit": lambda: normal(N, M, seed=3).sigmoid(),
    "angle": lambda: normal(N, M, seed=3).clamp(-3, 3),
    "binary": lambda: (normal(N, M, seed=3) > 0).double(),
    "count": lambda: normal(N, M, seed=3).exp().floor(),
    "labels": lambda: torch.arange(N) % M,
    "ranking": lambda: normal(N, M, seed=3).argsort(dim=1),
}


def heads(device: str) -> dict[str, float]:
    """Largest difference of values and gradients, by loss."""
    found = {}
    for name, row in LOSSES.items():
        y, n = OUTCOMES[row.kind](), head_of(name, M).n_outputs
        answers = []
        for where in ("cpu", device):
            head = head_of(name, M).to(where, F64)
            raw = normal(N, n).to(where).requires_grad_()
            target = y.to(where)
            head.check(target)
            rows = head(raw, target)
            (g,) = torch.autograd.grad(rows.sum(), raw)
            parts = [rows.detach().cpu(), g.cpu().flatten()]
            if row.is_likelihood and row.kind not in ("labels", "ranking"):
                parts.append(head.interval(raw.detach(), 0.9).cpu().flatten())
            answers.append(torch.cat(parts))
        found[name] = float((answers[0] - answers[1]).abs().max())
    return found


def tools(device: str) -> dict[str, float]:
    """The same for Jacobians, single gradients, curvature and landscapes."""
    found = {}
    jobs: dict[str, Callable[[str], Tensor]] = {
        "jacobian": lambda d: jacobian(lambda x: torch.tanh(x).outer(x).flatten(), normal(5).to(d)),
        "per_example_grads": lambda d: per_example_grads(
            lambda p, x, y: (torch.tanh(x @ p["w"]) - y) ** 2,
            {"w": normal(3).to(d)}, normal(50, 3).to(d), normal(50, seed=1).to(d),
        )["w"],
        "hessian_spectrum": lambda d: optim.hessian_spectrum(
            lambda w: torch.cos(w).sum() + (w @ w) ** 2, normal(40).to(d), k=20
        ).values[[0, -1]],
        "landscape": lambda d: optim.landscape(
            lambda w: torch.cos(w).sum() + (w @ w) ** 2, normal(40).to(d), n=21
        ).values,
        "triplets": lambda d: triplet_batch(normal(40, 3).to(d), (torch.arange(40) % 4).to(d)),
    }  # fmt: skip
    for name, job in jobs.items():
        a, b = job("cpu"), job(device).cpu()
        found[name] = float((a - b).abs().max())
    report = gradcheck(lambda x: torch.tanh(x).sum(1), {"x": normal(3, 2).to(device)}, ("x",))
    return {**found, "gradcheck": report.worst}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    device = parser.parse_args().device
    found = {**heads(device), **tools(device)}
    for name, error in found.items():
        print(f"{name:22s} {error:.1e}")
    worst = max(found.values())
    print(f"largest difference {worst:.1e}: {'ok' if worst < 1e-7 else 'TOO LARGE'}")


if __name__ == "__main__":
    main()

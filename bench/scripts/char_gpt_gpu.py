"""A character GPT on a GPU: tokens per second, MFU and the time to a validation loss of 1.47.

``python bench/scripts/char_gpt_gpu.py [--text tinyshakespeare.txt] [--steps 3000] [--device cuda]``.
6 layers, 384 features, context 256, batch 64, dropout .2, bf16, compiled: ``LanguageModel`` as a user
calls it, and the loop that one would write by hand (nanoGPT's) on the same network and batches of the
same size, each in a process of its own with an empty cache of compiled kernels. Without a text,
made-up reviews are used, whose loss is another one. Results go to ``$OUT/char-gpt-gpu.csv`` where OUT
is set.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from groundstate import LanguageModel
from groundstate.data import Tokenizer, make_reviews
from groundstate.data.text.blocks import NOTHING, blocks_of
from groundstate.learn.callbacks import Callback
from groundstate.learn.train.schedules import Cosine, Warmup

PEAK = 989e12  # bf16 operations per second of an H100 or H200, dense
GOAL = 1.47
WHO = {"ours": "LanguageModel", "hand": "loop by hand"}
END = "<|endoftext|>"
LR, DECAY, WARM = 1e-3, 0.1, 100
Point = tuple[float, float]  # seconds of training, validation loss


def corpus(path: str | None) -> tuple[str, str]:
    if path and Path(path).is_file():
        text = Path(path).read_text()
    else:
        text = "\n".join(make_reviews(14_000)[0])
    cut = int(0.9 * len(text))
    return text[:cut], text[cut:]


def flops_per_token(net: Any, context: int) -> float:
    """6 N + 12 L H Q T: products with weights, and of queries with keys and values."""
    n = sum(p.numel() for p in net.parameters()) - net.place.weight.numel()
    return 6 * n + 12 * net.layers * net.dim * context


class Watch(Callback):
    """Times epochs and reads the validation loss, whose time is not counted."""

    def __init__(self, ask: Any, every: int) -> None:
        self.ask, self.every = ask, every
        self.points: list[Point] = []
        self.spent = 0.0
        self.first: tuple[int, float] | None = None
        self.last: tuple[int, float] | None = None

    def on_begin(self, run: Any) -> None:
        self.start = time.perf_counter()

    def on_epoch(self, run: Any) -> bool | None:
        synchronise()
        now = time.perf_counter()
        took = now - self.start - self.spent
        self.first = self.first or (run.total_steps, took)
        self.last = (run.total_steps, took)
        if run.epoch % self.every == 0:
            self.points.append((took, self.ask(run.energy)))
            self.spent += time.perf_counter() - now
        return None


def synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def validation(blocks: Any, device: str) -> Any:
    @torch.no_grad()
    def ask(energy: Any) -> float:
        was = energy.training
        energy.eval()
        total = 0.0
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            for y, first in zip(blocks.tokens.split(64), blocks.first.split(64)):
                total += float(energy(y=y.to(device), first=first.to(device)).sum())
        energy.train(was)
        return total / int((blocks.tokens != NOTHING).sum())

    return ask


def ours(args: Any, train: str, held: str) -> tuple[float, float, list[Point], LanguageModel]:
    """``LanguageModel``: tokens per second after the first epoch, flops, losses."""
    device = args.device
    model = LanguageModel(
        "gpt", args.context, tokenizer="char", dim=args.dim, layers=args.layers, heads=6,
        dropout=0.2, stride=args.context // 4, max_epochs=1, batch_size=args.batch, lr=LR,
        weight_decay=DECAY, val_fraction=0.0, patience=None, schedule=Warmup(WARM, Cosine(0.1)),
        precision="bf16" if device == "cuda" else "32", compile=args.compile, device=device,
        random_state=0,
    )  # fmt: skip
    n_blocks = math.ceil(len(train) / (args.context // 4))
    epochs = max(2, round(args.steps / (n_blocks / args.batch)))
    tokenizer = Tokenizer.train(texts=[train], kind="char", special_tokens=[END])
    model.set_params(max_epochs=epochs, tokenizer=tokenizer)
    end = tokenizer.number(END)
    ask = validation(blocks_of(tokenizer.encode([held]), args.context, end), device)
    watch = Watch(ask, 1)
    model.set_params(callbacks=[watch]).fit([train])
    assert watch.first is not None and watch.last is not None
    steps, seconds = (b - a for a, b in zip(watch.first, watch.last))
    rate = steps * args.batch * args.context / seconds
    return rate, flops_per_token(model.network_, args.context), watch.points, model


def by_hand(args: Any, train: str, held: str) -> tuple[float, float, list[Point]]:
    """The loop of nanoGPT around the same network."""
    from groundstate.energy import SequenceEnergy
    from groundstate.nn import GPT

    device = args.device
    tokenizer = Tokenizer.train(texts=[train], kind="char", special_tokens=[END])
    end = tokenizer.number(END)
    data = torch.tensor(tokenizer.encode(train), device=device)
    torch.manual_seed(0)
    net = GPT(tokenizer.size, args.context, args.dim, 6, args.layers, dropout=0.2).to(device)
    energy = SequenceEnergy(net, tokenizer.size, args.context, bos=end, ignore=NOTHING)
    ask = validation(blocks_of(tokenizer.encode([held]), args.context, end), device)
    run = torch.compile(net) if args.compile else net
    optimizer = torch.optim.AdamW(
        net.parameters(), LR, betas=(0.9, 0.99), weight_decay=DECAY, fused=device == "cuda"
    )
    at = torch.arange(args.context + 1, device=device)
    points: list[Point] = []
    spent, warm, start = 0.0, 0.0, time.perf_counter()
    first = min(100, args.steps // 2)
    net.train()
    for step in range(args.steps):
        rate = min(1, (step + 1) / WARM)
        rate *= 0.1 + 0.45 * (1 + math.cos(math.pi * step / args.steps))
        for group in optimizer.param_groups:
            group["lr"] = LR * rate
        rows = data[
            torch.randint(len(data) - args.context - 1, (args.batch, 1), device=device) + at
        ]
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            scores = run(rows[:, :-1])
            loss = torch.nn.functional.cross_entropy(
                scores.flatten(0, 1).float(), rows[:, 1:].flatten()
            )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        if step + 1 == first:
            synchronise()
            warm = time.perf_counter() - start - spent
        if (step + 1) % args.every == 0:
            synchronise()
            now = time.perf_counter()
            points.append((now - start - spent, ask(energy)))
            net.train()
            spent += time.perf_counter() - now
    synchronise()
    seconds = time.perf_counter() - start - spent - warm
    rate = (args.steps - first) * args.batch * args.context / seconds
    return rate, flops_per_token(net, args.context), points


def reached(points: list[Point]) -> float:
    return next((seconds for seconds, loss in points if loss <= GOAL), math.nan)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--every", type=int, default=250)
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--who", choices=list(WHO), help="one of the two, as JSON")
    args = parser.parse_args()
    if args.who:
        print(json.dumps(measured(args)))
        return
    rows = []
    for who in WHO:
        with tempfile.TemporaryDirectory() as cache:
            found = subprocess.run(
                [sys.executable, __file__, *sys.argv[1:], "--who", who],
                env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache, "TRITON_CACHE_DIR": cache},
                stdout=subprocess.PIPE, text=True, check=True,
            )  # fmt: skip
        result = json.loads(found.stdout.splitlines()[-1])
        points, tokens = result["points"], result["tokens_per_second"]
        best = min((loss for _, loss in points), default=math.nan)
        rows.append([WHO[who], f"{tokens:.0f}", f"{tokens * result['flops'] / PEAK:.4f}",
                     f"{best:.4f}", f"{reached(points):.1f}", f"{points[-1][0]:.1f}"])  # fmt: skip
        print(f"{WHO[who]}: {tokens:,.0f} tokens/s, MFU {tokens * result['flops'] / PEAK:.1%} of an "
              f"H200, best validation loss {best:.4f}, {GOAL} after {reached(points):.1f} s")  # fmt: skip
        print("  ", " ".join(f"{s:.0f}s:{loss:.3f}" for s, loss in points))
        print(result["text"])
    if out := os.environ.get("OUT"):
        with (Path(out) / "char-gpt-gpu.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["what", "tokens_per_second", "mfu", "validation_loss",
                             "seconds_to_1.47", "seconds"])  # fmt: skip
            writer.writerows(rows)


def measured(args: Any) -> dict[str, Any]:
    train, held = corpus(args.text)
    text = ""
    if args.who == "ours":
        rate, flops, points, model = ours(args, train, held)
        start = "ROMEO:" if args.text else "in the end"
        text = model.generate(start, max_new_tokens=200, random_state=0)
    else:
        rate, flops, points = by_hand(args, train, held)
    return {"tokens_per_second": rate, "flops": flops, "points": points, "text": str(text)}


if __name__ == "__main__":
    main()

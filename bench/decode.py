"""Greedy and beam decoding with a cache against transformers' generate, the same GPT-2."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

NEW = 100


def data(size: tuple[int, int, int, int], seed: int) -> dict[str, Any]:
    """A GPT-2 with random weights, read by both from the same folder."""
    import tempfile

    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    from groundstate.energy import SequenceEnergy
    from groundstate.nn.attention.pretrained import load_gpt2

    rows, dim, layers, beams = size
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = GPT2Config(
            vocab_size=1000, n_positions=128, n_embd=dim, n_layer=layers, n_head=4,
            bos_token_id=999, eos_token_id=998, pad_token_id=998, initializer_range=0.2,
        )  # fmt: skip
        theirs = GPT2LMHeadModel(config).eval()
        prompt = torch.randint(0, 998, (rows, 8))
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        ours = load_gpt2(folder)
    energy = SequenceEnergy(ours, 1000, 127, bos=999)
    return {"energy": energy, "theirs": theirs, "prompt": prompt, "beams": beams}


def ours(data: dict[str, Any]) -> Any:
    from groundstate.infer import decode

    beams = data["beams"]
    found = decode(
        data["energy"], "greedy" if beams == 1 else "beam", beams=beams,
        prompt=data["prompt"], max_new_tokens=NEW,
    )  # fmt: skip
    return found.tokens[:, 0]


def transformers(data: dict[str, Any]) -> Any:
    import torch

    prompt = torch.nn.functional.pad(data["prompt"], (1, 0), value=999)
    found = data["theirs"].generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=NEW, min_new_tokens=NEW,
        do_sample=False, num_beams=data["beams"], eos_token_id=None,
    )  # fmt: skip
    return found[:, 1:]


def energy(data: dict[str, Any], tokens: Any) -> float:
    """Mean energy of the sequences, −log p, prompts included."""
    import torch

    with torch.no_grad():
        return data["energy"](y=tokens).mean().item()


DECODE = Benchmark(
    name="decode",
    title="decode of a GPT-2, 100 new tokens, with keys and values cached",
    sizes={
        "greedy, 1 row, 4 x 128": (1, 128, 4, 1),
        "greedy, 16 rows, 4 x 128": (16, 128, 4, 1),
        "beam of 4, 4 rows, 4 x 128": (4, 128, 4, 4),
    },
    data=data,
    ours={"groundstate": ours},
    peers={"transformers": Peer(transformers, "transformers")},
    score=energy,
    score_name="mean energy",
    target=1.0,
)

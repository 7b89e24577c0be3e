"""Greedy and beam decoding with a cache against transformers' generate, the same GPT-2."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

NEW = 100
VOCABULARY = 1000


def weights(dim: int, layers: int, generator: Any) -> dict[str, Any]:
    """Random weights of a GPT-2 by Hugging Face's names."""
    import torch

    sizes: dict[str, tuple[int, ...]] = {
        "wte": (VOCABULARY, dim),
        "wpe": (128, dim),
        "ln_f": (dim,),
    }
    for i in range(layers):
        sizes |= {
            f"h.{i}.ln_1": (dim,), f"h.{i}.attn.c_attn": (dim, 3 * dim),
            f"h.{i}.attn.c_proj": (dim, dim), f"h.{i}.ln_2": (dim,),
            f"h.{i}.mlp.c_fc": (dim, 4 * dim), f"h.{i}.mlp.c_proj": (4 * dim, dim),
        }  # fmt: skip
    made = {}
    for name, shape in sizes.items():
        drawn = 0.2 * torch.randn(shape, generator=generator)
        made[f"{name}.weight"] = drawn + 1 if len(shape) == 1 else drawn
        if not name.startswith("w"):
            made[f"{name}.bias"] = torch.zeros(shape[-1])
    return made


def data(size: tuple[int, int, int, int], seed: int) -> dict[str, Any]:
    import torch

    from groundstate.energy import SequenceEnergy
    from groundstate.nn import GPT
    from groundstate.nn.attention.pretrained import gpt2_state

    rows, dim, layers, beams = size
    generator = torch.Generator().manual_seed(seed)
    given = weights(dim, layers, generator)
    net = GPT(VOCABULARY, 128, dim, 4, layers, activation="gelu_tanh")
    net.load_state_dict(gpt2_state(given))
    energy = SequenceEnergy(net.eval(), VOCABULARY, 127, bos=VOCABULARY - 1)
    prompt = torch.randint(0, VOCABULARY - 2, (rows, 8), generator=generator)
    return {"energy": energy, "weights": given, "sizes": (dim, layers), "prompt": prompt,
            "beams": beams}  # fmt: skip


def theirs(data: dict[str, Any]) -> Any:
    """The same network in transformers, made once."""
    if "theirs" not in data:
        from transformers import GPT2Config, GPT2LMHeadModel

        dim, layers = data["sizes"]
        config = GPT2Config(
            vocab_size=VOCABULARY, n_positions=128, n_embd=dim, n_layer=layers, n_head=4,
            bos_token_id=VOCABULARY - 1, eos_token_id=VOCABULARY - 2, pad_token_id=VOCABULARY - 2,
        )  # fmt: skip
        made = GPT2LMHeadModel(config).eval()
        made.transformer.load_state_dict(data["weights"])
        data["theirs"] = made
    return data["theirs"]


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

    prompt = torch.nn.functional.pad(data["prompt"], (1, 0), value=VOCABULARY - 1)
    found = theirs(data).generate(
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

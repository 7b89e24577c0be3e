"""Decoding: the hand tree, methods against each other and against listing all strings."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from groundstate.energy import ChainEnergy, ChainRuleEnergy, LinearEnergy, SequenceEnergy
from groundstate.errors import ShapeError, Unsupported
from groundstate.infer import Beam, decode, draw_tree, minimise
from groundstate.nn import GPT


def tree() -> ChainRuleEnergy:
    joint = torch.tensor([[0.6 * 0.55, 0.6 * 0.45], [0.4 * 0.95, 0.4 * 0.05]])
    return ChainRuleEnergy.from_joint(joint)


def language(seed: int = 0, k: int = 5, length: int = 8) -> SequenceEnergy:
    net = GPT(k + 1, length, 8, 2, 2, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():  # scores that differ
        net.embed.weight.mul_(40)
    net = torch.nn.ModuleDict({"net": net})["net"].double().eval()
    return SequenceEnergy(Cut(net, k), k, length)


class Cut(torch.nn.Module):
    """Scores of the k symbols, without the begin symbol."""

    def __init__(self, net: GPT, k: int) -> None:
        super().__init__()
        self.net, self.k = net, k

    def forward(self, tokens: Tensor) -> Tensor:
        return self.net(tokens)[..., : self.k]

    def start(self, rows: int, x: None = None):  # type: ignore[no-untyped-def]
        return self.net.start(rows)

    def step(self, token: Tensor, cache):  # type: ignore[no-untyped-def]
        logits, cache = self.net.step(token, cache)
        return logits[..., : self.k], cache


class Again(Cut):
    """The same network without a memory: the prefix is run again."""

    start = None  # type: ignore[assignment]


def listed(energy: SequenceEnergy, steps: int) -> tuple[Tensor, Tensor]:
    strings = torch.cartesian_prod(*[torch.arange(energy.k)] * steps)
    padded = torch.nn.functional.pad(strings, (0, energy.length - steps))
    lengths = torch.full((len(strings),), steps)
    return strings, -energy(y=padded, lengths=lengths)


def test_the_hand_tree() -> None:
    p = {
        m: decode(tree(), m, beams=2).log_prob.exp().item()
        for m in ("greedy", "beam", "exhaustive")
    }  # type: ignore[arg-type]
    assert p == pytest.approx({"greedy": 0.33, "beam": 0.38, "exhaustive": 0.38}, abs=1e-6)
    independent = decode(tree(), "beam", beams=2, independent=True)
    assert independent.log_prob.exp().item() == pytest.approx(0.38, abs=1e-6)
    assert decode(tree(), "beam", beams=1).tokens.tolist() == decode(tree()).tokens.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_exhaustive_finds_the_best_of_all_strings(seed: int) -> None:
    energy = language(seed)
    strings, log_prob = listed(energy, 4)
    best = decode(energy, "exhaustive", max_new_tokens=4)
    assert best.tokens[0, 0].tolist() == strings[log_prob.argmax()].tolist()
    assert best.log_prob.item() == pytest.approx(log_prob.max().item(), abs=1e-10)
    beam = decode(energy, "beam", beams=25, n=3, max_new_tokens=4)
    assert beam.log_prob[0].diff().le(0).all()
    assert beam.log_prob[0, 0] <= best.log_prob[0, 0] + 1e-12
    assert torch.allclose(beam.token_log_prob.sum(-1), beam.log_prob, atol=1e-12)


def test_wider_beams_are_no_worse_on_average() -> None:
    means = []
    for width in (1, 2, 4, 25):
        found = [decode(language(s), "beam", beams=width, max_new_tokens=4) for s in range(12)]
        means.append(sum(f.log_prob.item() for f in found) / 12)
    assert all(a <= b + 1e-9 for a, b in pairwise(means))


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_cached_is_uncached(method: str) -> None:
    energy = language()
    other = SequenceEnergy(Again(energy.net.net, energy.k), energy.k, energy.length)
    prompt = torch.tensor([[0, 3, 1], [4, 2, 2]])
    options = {"prompt": prompt, "n": 2 if method == "sample" else 1}
    one, two = (decode(e, method, **options) for e in (energy, other))  # type: ignore[arg-type]
    assert torch.equal(one.tokens, two.tokens)
    assert torch.allclose(one.log_prob, two.log_prob, atol=1e-10)
    assert torch.equal(one.tokens[:, 0, :3], prompt)


def test_a_prompt_is_read_as_if_it_had_been_chosen() -> None:
    energy = language()
    free = decode(energy)
    held = decode(energy, prompt=free.tokens[:, 0, :3])
    assert torch.equal(held.tokens, free.tokens)
    assert torch.allclose(held.token_log_prob, free.token_log_prob[..., 3:], atol=1e-10)


def test_rows_do_not_see_each_other() -> None:
    energy, prompt = language(), torch.tensor([[0], [1], [2], [3]])
    together = decode(energy, "beam", prompt=prompt, end=0)
    for i in range(4):
        alone = decode(energy, "beam", prompt=prompt[i : i + 1], end=0)
        assert torch.equal(alone.tokens[0], together.tokens[i])


def test_an_end_ends() -> None:
    energy = language(3)
    for method in ("greedy", "beam", "sample"):
        found = decode(energy, method, end=1, generator=torch.Generator().manual_seed(0))  # type: ignore[arg-type]
        n = int(found.lengths[0, 0])
        tokens = found.tokens[0, 0]
        assert (tokens[n:] == 1).all() and (tokens[: n - 1] != 1).all()
        whole = energy(y=tokens[None], lengths=torch.tensor([n]))
        assert -whole.item() == pytest.approx(found.log_prob.item(), abs=1e-9)


def test_a_length_penalty_prefers_longer_sequences() -> None:
    lengths = [
        float(decode(language(s), "beam", end=1, length_penalty=a).lengths) for a in (0.0, 2.0)
        for s in range(8)
    ]  # fmt: skip
    assert sum(lengths[8:]) >= sum(lengths[:8])


def test_beam_inference_is_the_same_search() -> None:
    energy = language()
    best = minimise(energy, "y", method=Beam(3))
    found = decode(energy, "beam", beams=3)
    assert torch.equal(best["y"], found.tokens[:, 0])
    assert best.energy.item() == pytest.approx(-found.log_prob.item())


# --- draws -------------------------------------------------------------------------------


def test_frequencies_are_the_probabilities() -> None:
    energy = language(k=3, length=4)
    _, log_prob = listed(energy, 3)
    drawn = decode(energy, "sample", n=20_000, max_new_tokens=3).tokens[0]
    code = (drawn * torch.tensor([9, 3, 1])).sum(1)
    seen = torch.bincount(code, minlength=27).double()
    expected = 20_000 * log_prob.exp()
    large = expected > 5
    chi2 = ((seen - expected).square() / expected)[large].sum().item()
    dof = int(large.sum())
    assert chi2 < dof + 4 * math.sqrt(2 * dof)


def test_temperature_goes_to_greedy_and_zero_is_it() -> None:
    energy, greedy = language(), decode(language())
    for t in (0.0, 1e-4):
        assert torch.equal(decode(energy, "sample", temperature=t).tokens, greedy.tokens)


@pytest.mark.parametrize(
    ("options", "allowed"),
    [({"top_k": 1}, {0}), ({"top_k": 2}, {0, 1}), ({"top_p": 0.45}, {0}), ({"top_p": 0.6}, {0, 1}),
     ({"top_p": 0.81}, {0, 1, 2}), ({"min_p": 0.7}, {0}), ({"min_p": 0.3}, {0, 1}),
     ({"min_p": 0.1}, {0, 1, 2, 3})],
)  # fmt: skip
def test_what_is_drawn_from(options: dict[str, float], allowed: set[int]) -> None:
    p = torch.tensor([0.5, 0.3, 0.12, 0.08])
    drawn = decode(ChainRuleEnergy.from_joint(p), "sample", n=2000, **options).tokens  # type: ignore[arg-type]
    assert set(drawn.flatten().tolist()) == allowed


def test_repetition_is_punished() -> None:
    energy = language()
    plain = decode(energy, "sample", n=300).tokens[0]
    other = decode(energy, "sample", n=300, repetition_penalty=5.0).tokens[0]
    distinct = [sum(len(set(t.tolist())) for t in rows) for rows in (plain, other)]
    assert distinct[1] > 1.2 * distinct[0]


def test_same_seed_same_draws() -> None:
    one, two = (
        decode(language(), "sample", n=4, generator=torch.Generator().manual_seed(5)) for _ in "ab"
    )
    assert torch.equal(one.tokens, two.tokens)
    assert not torch.equal(one.tokens, decode(language(), "sample", n=4).tokens)


# --- doors -------------------------------------------------------------------------------


def test_energies_of_given_things() -> None:
    chain = ChainEnergy(2, 3, 4, scale=1.0)
    x = torch.randn(5, 4, 2, generator=torch.Generator().manual_seed(0))
    found = decode(chain, "exhaustive", given={"x": x})
    best = minimise(chain, "y", {"x": x})
    assert torch.equal(found.tokens[:, 0], best["y"])


def test_refusals() -> None:
    energy = language()
    with pytest.raises(Unsupported, match="greedy, beam, exhaustive, sample"):
        decode(energy, "viterbi")  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="too many to list"):
        decode(ChainRuleEnergy(50, 10), "exhaustive")
    with pytest.raises(ShapeError, match="leaves room for 5, got max_new_tokens=9"):
        decode(energy, prompt=torch.zeros(1, 3, dtype=torch.int64), max_new_tokens=9)
    with pytest.raises(ShapeError, match="int64"):
        decode(energy, prompt=torch.zeros(1, 3))
    with pytest.raises(ValueError, match="use more beams"):
        decode(energy, "beam", beams=2, n=3)
    for option in ({"top_p": 0.0}, {"top_k": 0}, {"temperature": -1.0}, {"min_p": 2.0},
                   {"repetition_penalty": 0.0}):  # fmt: skip
        with pytest.raises(ValueError, match=next(iter(option))):
            decode(energy, "sample", **option)  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="declares none"):
        decode(LinearEnergy(2, 3))


def test_results_print_short() -> None:
    assert repr(decode(tree())) == "Decoded: 1 rows × 1 sequences of up to 2 symbols, log p -1.109"


def test_the_tree_of_all_beginnings_is_drawn() -> None:
    energy = tree()
    best, greedy = decode(energy, "beam", beams=2), decode(energy)
    picture = draw_tree(energy, best, greedy, names="AB")
    assert (picture.nodes, picture.edges) == (7, 6)
    for p in (".60", ".40", ".55", ".95", ".33", ".38", ".27"):
        assert f">{p}</text>" in picture.svg
    assert picture.svg.count("#3b6fb6") == 2 and picture.svg.count("#d9822b") == 2
    fewer = draw_tree(energy, least=0.3)
    assert (fewer.nodes, fewer.edges) == (5, 4)


def test_a_tree_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(Unsupported, match="more than 400 nodes; draw fewer steps"):
        draw_tree(language())
    assert draw_tree(language(), steps=2).nodes == 1 + 5 + 25

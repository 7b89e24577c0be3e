"""Codes: lengths against entropy, exact round trips."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from groundstate import info
from groundstate.math.divergences import kl


def test_worked_huffman_codes() -> None:
    code = info.huffman([0.5, 0.25, 0.125, 0.125])
    assert code.mean_length == 1.75 == info.entropy([0.5, 0.25, 0.125, 0.125], base=2)
    p = [0.4, 0.3, 0.2, 0.1]
    assert info.huffman(p).mean_length == pytest.approx(1.9)
    assert info.entropy(p, base=2) == pytest.approx(1.846439, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_huffman_is_a_prefix_code_within_a_bit_of_the_entropy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(rng.integers(2, 40), 0.3))
    code = info.huffman(p)
    for a in code.codes:
        assert sum(b.startswith(a) for b in code.codes) == 1
    assert float((0.5**code.lengths).sum()) == pytest.approx(1)  # Kraft with equality
    H = info.entropy(p, base=2)
    assert H - 1e-12 <= code.mean_length < H + 1
    x = rng.choice(len(p), 200, p=p).tolist()
    bits = code.encode(x)
    assert code.decode(bits) == x and len(bits) == sum(int(code.lengths[i]) for i in x)


def test_huffman_edges() -> None:
    assert info.huffman([3.0]).codes == ("0",)
    with pytest.raises(ValueError, match="inside a code word"):
        info.huffman([4, 2, 1, 1]).decode(info.huffman([4, 2, 1, 1]).codes[2][:-1])
    with pytest.raises(ValueError, match="negative"):
        info.huffman([1.0, -1.0])


@pytest.mark.parametrize("seed", range(3))
def test_arithmetic_code_is_as_short_as_the_model_allows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(27))
    x = rng.choice(27, 10_000, p=p).tolist()
    coder = info.ArithmeticCoder(p)
    message = coder.encode(x)
    assert coder.decode(message) == x
    ideal = float(info.code_length(p, x).sum())
    assert ideal - 1 <= message.bits <= 1.001 * ideal
    wrong = info.ArithmeticCoder(np.ones(27)).encode(x)
    assert wrong.bits == pytest.approx(10_000 * math.log2(27), rel=1e-3)
    shares = np.bincount(x, minlength=27) / len(x)
    assert (wrong.bits - len(x) * info.entropy(shares, base=2)) / len(x) == pytest.approx(
        kl(shares, np.ones(27), base=2), abs=1e-2
    )


def test_any_conditional_model_round_trips() -> None:
    rng = np.random.default_rng(0)
    T = rng.dirichlet(np.full(5, 0.2), size=5) + 1e-7
    T /= T.sum(1, keepdims=True)
    x = [0]
    for _ in range(3000):
        x.append(int(rng.choice(5, p=T[x[-1]])))
    coder = info.ArithmeticCoder(lambda seen: T[seen[-1]] if seen else np.ones(5))
    message = coder.encode(x)
    assert coder.decode(message) == x
    ideal = math.log2(5) - sum(math.log2(T[a, b]) for a, b in pairwise(x))
    assert message.bits <= ideal + 3
    # symbols of tiny probability: the interval nearly vanishes and the message survives
    rare = info.ArithmeticCoder([1.0, 1e-12])
    assert rare.decode(rare.encode([1, 0, 1, 1, 0] * 20)) == [1, 0, 1, 1, 0] * 20
    assert info.ArithmeticCoder([1, 1]).decode(info.ArithmeticCoder([1, 1]).encode([])) == []


def test_messages() -> None:
    with pytest.raises(ValueError, match="probability 0; smooth the model"):
        info.ArithmeticCoder([1.0, 0.0]).encode([1])
    with pytest.raises(ValueError, match=r"symbol 2 at place 1 is not in 0\.\.1"):
        info.ArithmeticCoder([1.0, 1.0]).encode([0, 2])

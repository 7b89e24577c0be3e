"""Keys: the same stream everywhere, children independent of each other and of their number."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from groundstate.compute import Key, mix64, seeded, split
from groundstate.errors import DataError, Unsupported


def test_same_seed_same_key_in_another_process() -> None:
    code = (
        "from groundstate.compute.random import Key; k = Key.of(7).fold('a', 3);"
        "print(k.high, k.low, k.numpy().integers(1 << 60), k.words(2).tolist())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    k = Key.of(7).fold("a", 3)
    here = f"{k.high} {k.low} {k.numpy().integers(1 << 60)} {k.words(2).tolist()}"
    assert out.stdout.strip() == here


def test_streams_never_change() -> None:
    key = Key.of(0)
    assert (key.high, key.low) == (11914341451174929668, 8929299523803136482)
    assert key.words(1).tolist() == [17343636217046826776]


def test_children_do_not_depend_on_their_number() -> None:
    key = Key.of(1)
    assert key.split(2) == key.split(5)[:2] and key.split(2)[1] == key.fold(1)
    assert (key.words(3) == key.words(10)[:3]).all()
    assert key.fold("a", 1) == key.fold("a").fold(1)
    names = [key.fold(n) for n in ("a", "b", "", 0, -1, 1, 256, "0", "1")]
    assert len({key, *names}) == 10


def test_children_are_independent() -> None:
    streams = np.stack([k.numpy().normal(size=4000) for k in Key.of(0).split(20)])
    correlation = np.corrcoef(streams)[np.triu_indices(20, 1)]
    assert np.abs(correlation).max() < 4.5 / np.sqrt(4000)
    uniform = np.concatenate([k.uniform(500) for k in Key.of(3).split(40)])
    assert abs(uniform.mean() - 0.5) < 4 / np.sqrt(12 * 20_000)
    assert uniform.min() >= 0 and uniform.max() < 1


def test_every_random_state_makes_a_key() -> None:
    assert Key.of(np.int64(3)) == Key.of(3)
    assert Key.of(Key.of(3)) == Key.of(3)
    assert Key.of(None) != Key.of(None)
    state = np.random.RandomState(0)
    assert Key.of(state) != Key.of(state)
    assert Key.of(np.random.RandomState(0)) == Key.of(np.random.RandomState(0))
    assert Key.of(np.random.default_rng(0)) == Key.of(np.random.default_rng(0))
    generators = [torch.Generator().manual_seed(5) for _ in range(2)]
    assert Key.of(generators[0]) == Key.of(generators[1])
    assert len({Key.of(2**k) for k in range(0, 200, 7)}) == 29


def test_a_key_is_two_integers() -> None:
    key = Key.of(9)
    assert Key(*dataclasses.astuple(key)) == key
    with pytest.raises(dataclasses.FrozenInstanceError):
        key.low = 3  # type: ignore[misc]


def test_torch_streams() -> None:
    a, b = (Key.of(0).torch() for _ in range(2))
    assert torch.equal(torch.randn(4, generator=a), torch.randn(4, generator=b))
    children = split(Key.of(0).torch(), 3)
    again = split(Key.of(0).torch(), 3)
    draws = [torch.randn(4, generator=g) for g in children]
    assert torch.equal(draws[2], torch.randn(4, generator=again[2]))
    assert not torch.equal(draws[0], draws[1])
    assert len(split(None, 2)) == 2


def test_seeded_lends_the_global_stream_and_gives_it_back() -> None:
    before = torch.random.get_rng_state()
    with seeded(Key.of(0)):
        first = torch.nn.Linear(3, 3).weight
    with seeded(Key.of(0)):
        assert torch.equal(torch.nn.Linear(3, 3).weight, first)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_mix64_is_one_to_one_and_avalanches() -> None:
    words = np.arange(1 << 16, dtype=np.uint64)
    assert len(np.unique(mix64(words))) == 1 << 16
    flips = mix64(words) ^ mix64(words ^ np.uint64(1))
    share = ((flips[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).mean(0)
    assert np.abs(share - 0.5).max() < 0.02


def test_errors_teach() -> None:
    with pytest.raises(Unsupported, match="random_state is a str; pass an integer, None"):
        Key.of("seed")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="random_state=-1 is negative"):
        Key.of(-1)
    with pytest.raises(DataError, match="not a 64-bit word"):
        Key(1 << 64, 0)

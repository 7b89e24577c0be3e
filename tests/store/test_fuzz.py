"""Ten thousand damaged or hostile files: a clean error or the same object, nothing else."""

from __future__ import annotations

import hashlib
import io
import json
import random
import struct
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from groundstate.energy.spaces import Finite, Real
from groundstate.errors import StoreError
from groundstate.store import dumps, load

FILES = 10_000
rng = np.random.default_rng(0)
X = rng.normal(size=(8, 2))
SEEDS = [
    dumps({"theta": rng.normal(size=(3, 2)), "names": np.array(["a", "bc"]), "n": (1, None, 2.5)}),
    dumps(make_pipeline(StandardScaler(), StandardScaler(with_mean=False)).fit(X)),
    dumps(OneHotEncoder().fit(np.array([["a"], ["b"]], object))),
    dumps({"net": torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh()), "z": Finite(3)}),
    dumps([torch.Generator().manual_seed(1), np.random.default_rng(2), Real(2, low=0.0)]),
    dumps({"big": 2**100, "bytes": b"abc", 3: {1, 2}, "when": np.datetime64("2026-01-01")}),
]
JUNK: list[Any] = [
    None, True, -1, 10**30, 1e308, "", "$", "models.EnergyEstimator", "os.system", "../x", [], {},
    [[]], {"$": "object"}, {"$": "array", "key": "value"}, {"$": "float", "v": "nan"}, "float8",
    {"$": "objects", "shape": [2**62, 4], "v": []}, {"$": "dict", "v": [[[], 1]]}, "O", "U999999",
    {"$": "generator", "name": "torch", "state": {"device": "cpu", "state": 1}}, "cuda:7", "meta",
    {"$": "tensor", "key": "theta", "device": "mps"}, {"$": "slice", "v": [1, 2, 3, 4]},
]  # fmt: skip


def flip(data: bytes, r: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(r.choice((1, 1, 2, 5, 40))):
        out[r.randrange(len(out))] = r.choice((0, 1, 0x7F, 0x80, 0xFF, r.randrange(256)))
    return bytes(out)


def shorten(data: bytes, r: random.Random) -> bytes:
    start, end = sorted((r.randrange(len(data)), r.randrange(len(data))))
    return r.choice((data[:end], data[start:], data[:start] + data[end:]))


def lengthen(data: bytes, r: random.Random) -> bytes:
    at = r.randrange(len(data))
    extra = r.choice((r.randbytes(r.randrange(60)), data[at : at + 200], b"PK\5\6" + bytes(18)))
    return data[:at] + extra + data[at:]


def splice(data: bytes, r: random.Random) -> bytes:
    other = r.choice(SEEDS)
    return r.choice(
        (data + other, other[: r.randrange(len(other))] + data[r.randrange(len(data)) :])
    )


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        return {name: zipped.read(name) for name in zipped.namelist()}


def rezip(parts: dict[str, bytes], r: random.Random, consistent: bool = True) -> bytes:
    """A valid zip of these members, with hashes that fit: only the content is hostile."""
    if consistent:
        found = json.loads(parts["manifest.json"])
        for name in ("state.json", "arrays.safetensors"):
            found["members"][name]["sha256"] = hashlib.sha256(parts[name]).hexdigest()
        parts["manifest.json"] = json.dumps(found).encode()
    stream = io.BytesIO()
    method = r.choice((zipfile.ZIP_STORED,) * 9 + (zipfile.ZIP_DEFLATED,))
    with zipfile.ZipFile(stream, "w", method) as zipped:
        for name, content in parts.items():
            zipped.writestr(name, content)
    return stream.getvalue()


def poison(node: Any, r: random.Random) -> Any:
    """One value somewhere in the tree is replaced, removed or renamed."""
    children = (
        list(node)
        if isinstance(node, dict)
        else list(range(len(node)) if isinstance(node, list) else ())
    )
    if not children or r.random() < 0.15:
        return r.choice(JUNK)
    key = r.choice(children)
    node = node.copy()
    action = r.random()
    if action < 0.1:
        node.pop(key)
    elif action < 0.15 and isinstance(node, dict):
        node[r.choice(("$", "key", "class", "v", "x"))] = node.pop(key)
    else:
        node[key] = poison(node[key], r)
    return node


def hostile_state(data: bytes, r: random.Random) -> bytes:
    parts = members(data)
    state = json.loads(parts["state.json"])
    for _ in range(r.choice((1, 1, 3))):
        state = poison(state, r)
    parts["state.json"] = json.dumps(state).encode()
    return rezip(parts, r)


def hostile_manifest(data: bytes, r: random.Random) -> bytes:
    parts = members(data)
    parts["manifest.json"] = json.dumps(poison(json.loads(parts["manifest.json"]), r)).encode()
    return rezip(parts, r, consistent=False)


def hostile_text(data: bytes, r: random.Random) -> bytes:
    parts = members(data)
    name = r.choice(("state.json", "manifest.json"))
    depth = r.choice((150, 2_000, 20_000))
    deep = r.choice(
        (b"[" * depth, b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth)
    )
    parts[name] = r.choice(
        (deep, b"", b"\xff\xfe", b"NaN", b"9" * 5000, b'{"a":1,"a":2}', flip(parts[name], r))
    )
    return rezip(parts, r, consistent=name == "state.json")


def hostile_arrays(data: bytes, r: random.Random) -> bytes:
    parts = members(data)
    arrays = parts["arrays.safetensors"]
    (length,) = struct.unpack("<Q", arrays[:8])
    header = json.loads(arrays[8 : 8 + length])
    action = r.randrange(4)
    if action == 0:
        arrays = (
            struct.pack("<Q", r.choice((0, 1, length - 1, length + 1, 2**31, 2**63, 2**64 - 1)))
            + arrays[8:]
        )
    elif action == 1:
        arrays = flip(arrays, r)
    else:
        if header:
            entry = header[r.choice(list(header))]
            entry[r.choice(("shape", "dtype", "data_offsets"))] = r.choice(
                (
                    [2**62],
                    [2**40, 2**40],
                    [0, 2**60],
                    [-1],
                    [],
                    "F64",
                    "BF16",
                    "F8_E5M2",
                    "BOOL",
                    [8, 0],
                    None,
                    3,
                )
            )
        text = json.dumps(header).encode()
        arrays = struct.pack("<Q", len(text)) + text + arrays[8 + length :]
    parts["arrays.safetensors"] = arrays
    return rezip(parts, r)


def zip_trick(data: bytes, r: random.Random) -> bytes:
    parts = members(data)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as zipped:
        for name, content in parts.items():
            zipped.writestr(
                r.choice((name, name, name, "../" + name, "/etc/x", name.upper())), content
            )
        if r.random() < 0.5:
            zipped.writestr(
                r.choice(("../../evil", "extra", "a" * 60_000)), b"x" * r.randrange(2000)
            )
    out = bytearray(stream.getvalue())
    at = bytes(out).rfind(b"PK\1\2")
    field, size = r.choice(((8, 2), (10, 2), (20, 4), (24, 4), (28, 2), (42, 4)))
    if r.random() < 0.6:  # sizes, offsets, method or flags of one entry of the directory
        out[at + field : at + field + size] = r.choice(
            (b"\xff" * size, bytes(size), r.randbytes(size))
        )
    return bytes(out)


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [
    flip, flip, shorten, lengthen, splice,
    hostile_state, hostile_state, hostile_manifest, hostile_text, hostile_arrays, zip_trick,
]  # fmt: skip
# what is left after these is the file's own content, not something else that is well formed
DAMAGE = (flip, shorten, lengthen)


@pytest.mark.parametrize("files", [FILES // 10, pytest.param(FILES, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.filterwarnings("ignore::groundstate.store.StoreWarning")
def test_mutated_files(files: int, tmp_path: Path) -> None:
    r = random.Random(2026)
    path = tmp_path / "mutant.gs"
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for i in range(files):
        seed, mutate = SEEDS[i % len(SEEDS)], MUTATIONS[i % len(MUTATIONS)]
        mutant = mutate(seed, r)
        path.write_bytes(mutant)
        start = time.process_time()
        try:
            value = load(path)
        except StoreError as error:
            outcomes["refused"] += 1
            assert len(str(error)) < 2_000
        else:
            outcomes["loaded"] += 1
            if mutate in DAMAGE:
                assert dumps(value) == seed, f"file {i} loaded as something else"
        slowest = max(slowest, time.process_time() - start)
    assert outcomes.total() == files
    assert outcomes["refused"] > files // 2 and outcomes["loaded"] > files // 100, outcomes
    assert slowest < 5, "no file may hold the reader up"

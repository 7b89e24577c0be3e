"""Files: atomic, deterministic, checked, and of every past format."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from groundstate.errors import StoreError
from groundstate.store import MIGRATIONS, StoreWarning, archive, dumps, load, loads, manifest, save
from groundstate.store.archive import Archive

VALUE = {"theta": np.arange(6.0).reshape(2, 3), "name": "ring", "seed": 3}
FIXTURES = Path(__file__).parent / "fixtures"


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        return {name: zipped.read(name) for name in zipped.namelist()}


def rezip(parts: dict[str, bytes], **options: Any) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", **options) as zipped:
        for name, data in parts.items():
            zipped.writestr(name, data)
    return stream.getvalue()


def altered(**changes: Any) -> bytes:
    parts = members(dumps(VALUE))
    found = json.loads(parts["manifest.json"])
    found.update(changes)
    return rezip({**parts, "manifest.json": json.dumps(found).encode()})


def test_same_content_same_bytes_in_another_process(tmp_path: Path) -> None:
    path = save(VALUE, tmp_path / "a.gs")
    code = (
        "import sys, numpy as np; from groundstate.store import save;"
        "save({'theta': np.arange(6.0).reshape(2, 3), 'name': 'ring', 'seed': 3}, sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "b.gs")], check=True)
    assert path.read_bytes() == (tmp_path / "b.gs").read_bytes()


def test_manifest_says_what_is_inside(tmp_path: Path) -> None:
    scaler = StandardScaler(with_std=False).fit(np.eye(3))
    path = save(scaler, tmp_path / "s.gs", meta={"rows": 3}, created="2026-01-01")
    found = manifest(path)
    assert found["kind"] == "sklearn.StandardScaler" and found["format"] == 1
    assert found["params"] == {"copy": True, "with_mean": True, "with_std": False}
    assert found["meta"] == {"rows": 3} and found["created"] == "2026-01-01"
    assert found["versions"]["numpy"] == np.__version__
    assert "created" not in manifest(save(VALUE, tmp_path / "v.gs"))


def test_arrays_open_with_safetensors_alone() -> None:
    import safetensors.numpy

    arrays = safetensors.numpy.load(members(dumps(VALUE))["arrays.safetensors"])
    assert np.array_equal(arrays["theta"], VALUE["theta"])


class Full(io.RawIOBase):
    """A disk that takes ``room`` bytes."""

    def __init__(self, inner: Any, room: int) -> None:
        self.inner, self.room = inner, room

    def write(self, data: Any) -> int:
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return int(self.inner.write(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __exit__(self, *args: Any) -> None:
        self.inner.close()


@pytest.mark.parametrize("room", [0, 100, 700, 1500])
def test_full_disk_leaves_the_previous_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    path = save({"old": 1}, tmp_path / "m.gs")
    before, fdopen = path.read_bytes(), os.fdopen
    monkeypatch.setattr(os, "fdopen", lambda *args: Full(fdopen(*args), room))
    with pytest.raises(StoreError, match="No space left on device; the previous file is unchanged"):
        save({"new": np.zeros(1000)}, path)
    monkeypatch.undo()
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["m.gs"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failure_at_the_last_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = save({"old": 1}, tmp_path / "m.gs")

    def refuse(*args: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, step, refuse)
    with pytest.raises(StoreError, match="Input/output error"):
        save({"new": 2}, path)
    monkeypatch.undo()
    assert load(path) == {"old": 1} and os.listdir(tmp_path) == ["m.gs"]


def test_file_size_limit_of_the_system(tmp_path: Path) -> None:
    path = save({"old": 1}, tmp_path / "m.gs")
    code = f"""
import resource, signal
import numpy as np
from groundstate.store import save
from groundstate.errors import StoreError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    save(np.zeros(100_000), {str(path)!r})
except StoreError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "File too large; the previous file is unchanged" in run.stdout
    assert load(path) == {"old": 1} and os.listdir(tmp_path) == ["m.gs"]


def test_interruption_and_unstorable_values_leave_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save({"old": 1}, tmp_path / "m.gs")
    with pytest.raises(StoreError, match=r"value\.f"):
        save({"f": print}, path)

    def interrupt(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipFile, "writestr", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save({"new": 2}, path)
    assert load(path) == {"old": 1} and os.listdir(tmp_path) == ["m.gs"]


def test_permissions_links_and_places(tmp_path: Path) -> None:
    path = save(VALUE, tmp_path / "m.gs")
    path.chmod(0o640)
    (tmp_path / "link.gs").symlink_to(path)
    save({"new": 1}, tmp_path / "link.gs")
    assert (tmp_path / "link.gs").is_symlink() and load(path) == {"new": 1}
    assert path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(StoreError, match="it is a folder"):
        save(VALUE, tmp_path)
    with pytest.raises(StoreError, match="No such file or directory; nothing was written"):
        save(VALUE, tmp_path / "missing" / "m.gs")


def test_unreadable_places(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        load(tmp_path / "none.gs")
    with pytest.raises(StoreError, match="is not a file"):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="is not a file"):
        load(tmp_path / "pipe")
    with pytest.raises(StoreError, match="not a path"):
        load("a\0b")


PARTS = members(dumps(VALUE))
DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"a,b\n1,2\n", "is not a groundstate file"),
        (b"\x80\x05K\x01.", "is not a groundstate file"),
        (dumps(VALUE)[:-30], "truncated or damaged"),
        (dumps(VALUE)[:200], "truncated or damaged"),
        (rezip({"a.txt": b"hi"}), r"no manifest\.json"),
        (rezip({**PARTS, "../evil": b""}), "should hold three members"),
        (rezip(PARTS, compression=zipfile.ZIP_DEFLATED), "is compressed"),
        (rezip({**PARTS, "manifest.json": b"[]"}), "no magic word"),
        (rezip({**PARTS, "manifest.json": DEEP}), "cannot be read"),
        (rezip({**PARTS, "manifest.json": b'{"a":1,"a":2}'}), "a key occurs twice"),
        (rezip({**PARTS, "manifest.json": b"NaN"}), "NaN is not JSON"),
        (rezip({**PARTS, "manifest.json": b"\xff"}), "cannot be read"),
        (rezip({**PARTS, "state.json": b"{}"}), r"state\.json does not match its hash"),
        (rezip({**PARTS, "arrays.safetensors": b""}), r"safetensors does not match its hash"),
        (altered(members=None), "does not match its hash"),
        (altered(magic="other"), "no magic word"),
        (altered(format=3), r"newer groundstate \(format 3, this reads up to 1\); upgrade"),
        (altered(format="1"), "its format version is '1'"),
        (altered(versions=7), "lacks classes or versions"),
    ],
)
def test_bad_files_get_one_clear_sentence(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.gs").write_bytes(data)
    with pytest.raises(StoreError, match=message) as caught:
        load(tmp_path / "bad.gs")
    assert "bad.gs" in str(caught.value) and "\n" not in str(caught.value)


def hostile(state: Any, arrays: dict[str, Any] | None = None) -> bytes:
    stream = io.BytesIO()
    about = {"kind": "x", "classes": [], "versions": {}}
    archive.write_archive(stream, Archive(about, state, arrays or {}))
    return stream.getvalue()


def tagged(kind: str, **fields: Any) -> dict[str, Any]:
    return {"$": kind, **fields}


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (tagged("object", **{"class": "os.system", "state": {}}), "does not know"),
        (tagged("object", **{"class": "subprocess.Popen", "params": {"args": "ls"}}), "not know"),
        (tagged("object", **{"class": "sklearn.GridSearchCV", "params": {}}), "does not know"),
        (tagged("object", **{"class": "torch.load", "params": {}}), "does not know"),
        (tagged("object", **{"class": "energy.spaces.torch", "params": {}}), "does not know"),
        (tagged("object", **{"class": 3}), "cannot be named 3"),
        (tagged("object", **{"class": "energy.Space", "fields": {}}), "cannot be restored"),
        (tagged("object", **{"class": "energy.Finite", "fields": {"m": 1}}), "no field 'm'"),
        (tagged("object", **{"class": "energy.Finite", "fields": {"n": -1}}), "at least one value"),
        (tagged("object", **{"class": "energy.Finite"}), "does not fit"),
        (
            tagged(
                "object",
                **{
                    "class": "torch.Linear",
                    "config": {"in_features": 10**7, "out_features": 10**7},
                    "state": {"training": True, "tensors": {}},
                },
            ),
            "disagree about the tensor",
        ),
        (
            tagged(
                "object",
                **{"class": "sklearn.StandardScaler", "params": {}, "learned": {"fit": 1}},
            ),
            "no learned attribute 'fit'",
        ),
        (tagged("pickle", v="gASVAAAA"), "unknown kind of value 'pickle'"),
        (tagged("array", key="nowhere"), "that is not there"),
        (tagged("array", key="codes", dtype="U2"), "wrong width"),
        (tagged("array", key="codes", dtype="U1"), "are no characters"),
        (tagged("array", key="codes", dtype="O"), "unknown array dtype 'O'"),
        (tagged("array", key="codes", dtype="c8"), "holds uint32 instead of float32"),
        (tagged("tensor", key="codes", bits="bfloat16"), "unknown tensor dtype"),
        (tagged("objects", shape=[10**12], v=[]), "cannot have shape"),
        (tagged("dtype", v="i4,(9999999,9999999)i4"), "unknown dtype"),
        (tagged("scalar", dtype="object", v=1), "unknown kind of number"),
        (tagged("generator", name="numpy", state={"bit_generator": "x"}), "unknown bit generator"),
        (
            tagged(
                "generator",
                name="numpy",
                state={"bit_generator": "MT19937", "state": {"pos": 10**9}},
            ),
            "with position",
        ),
        (tagged("tuple", v=3), "in place of a list"),
        (tagged("float", v="1"), "does not fit"),
        ([[[{"$": [1]}]]], "unknown kind of value"),
    ],
)
def test_hostile_states_are_refused(state: Any, message: str) -> None:
    data = hostile(state, {"codes": np.array([[2**32 - 1]], np.uint32)})
    with pytest.raises(StoreError, match=message):
        loads(data)


def test_a_name_in_a_file_imports_nothing() -> None:
    code = (
        "import sys; from groundstate.store import loads\n"
        "try: loads(sys.stdin.buffer.read())\n"
        "except Exception as e: print(type(e).__name__, 'wsgiref' in str(sys.modules.keys()))"
    )
    data = hostile(tagged("object", **{"class": "wsgiref.util.FileWrapper", "params": {}}))
    run = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    assert run.stdout.decode().split() == ["StoreError", "False"]


def test_files_of_format_1_open() -> None:
    """Made once with ``save(..., "format-1.gs")`` at the first release and never again."""
    back = load(FIXTURES / "format-1.gs")
    assert back["words"].tolist() == ["a", "b"] and back["nested"] == ({"x": None}, -np.inf)
    assert torch.equal(back["tensor"], torch.arange(4.0))
    assert back["dummy"].predict(np.zeros((2, 1))).tolist() == ["yes", "yes"]


def test_older_formats_migrate_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dumps(VALUE)

    def to_2(old: Archive) -> Archive:
        old.state["title"] = old.state.pop("name")
        return old

    def to_3(old: Archive) -> Archive:
        old.arrays["theta"] = old.arrays["theta"] * 2
        return old

    monkeypatch.setattr(archive, "FORMAT", 3)
    with pytest.raises(StoreError, match="no longer reads"):
        loads(data)
    monkeypatch.setitem(MIGRATIONS, 1, to_2)
    monkeypatch.setitem(MIGRATIONS, 2, to_3)
    back = loads(data)
    assert back["title"] == "ring" and np.array_equal(back["theta"], VALUE["theta"] * 2)


def test_another_scikit_learn_is_mentioned() -> None:
    data = dumps(StandardScaler().fit(np.eye(2)))
    parts = members(data)
    found = json.loads(parts["manifest.json"])
    found["versions"]["scikit-learn"] = "1.2.0"
    with pytest.warns(StoreWarning, match=r"scikit-learn 1\.2\.0"):
        loads(rezip({**parts, "manifest.json": json.dumps(found).encode()}))


def test_devices() -> None:
    data = dumps(torch.ones(2))
    assert loads(data, device="stored").device.type == "cpu"
    assert loads(data, device="meta").is_meta
    with pytest.raises(StoreError, match="cannot be used here"):
        loads(data, device="nonsense")

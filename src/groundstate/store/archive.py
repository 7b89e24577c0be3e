"""The container: one uncompressed zip of ``manifest.json``, ``state.json``, ``arrays.safetensors``.

Same content, same bytes: members have a fixed order and date, JSON is written one way, arrays are
laid out by safetensors. Reading trusts nothing: members, sizes and hashes are checked before any
of them is interpreted, and nothing in a file is ever executed.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from groundstate.errors import StoreError

Array = np.ndarray[Any, np.dtype[Any]]

FORMAT = 1
MAGIC = "groundstate"
MANIFEST, STATE, ARRAYS = "manifest.json", "state.json", "arrays.safetensors"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date a zip can hold


@dataclass
class Archive:
    """What a file holds, before it is turned into objects.

    Attributes
    ----------
    manifest : dict[str, Any]
        Format and library versions, what is stored, hashes of the other two members.
    state : Any
        JSON with array keys where arrays belong.
    arrays : dict[str, np.ndarray]
        The arrays by key.
    """

    manifest: dict[str, Any]
    state: Any = None
    arrays: dict[str, Array] = field(default_factory=dict)


def write_archive(stream: IO[bytes], archive: Archive) -> None:
    """Write the archive; its manifest gets format, magic and the hashes of the members."""
    from safetensors.numpy import save

    members = {STATE: _json_bytes(archive.state, None), ARRAYS: save(archive.arrays)}
    manifest = {
        "magic": MAGIC,
        "format": FORMAT,
        **archive.manifest,
        "members": {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
            for name, data in members.items()
        },
    }
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as zipped:
        for name, data in {MANIFEST: _json_bytes(manifest, 2), **members}.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.external_attr = 0o644 << 16
            info.create_system = 3  # the same bytes on every system
            zipped.writestr(info, data)


def read_archive(stream: IO[bytes], name: str, *, manifest_only: bool = False) -> Archive:
    """Read and check an archive; ``name`` is only for messages."""
    stream.seek(0, io.SEEK_END)
    size = stream.tell()
    stream.seek(0)
    if size == 0:
        raise StoreError(f"{name} is empty; it is not a groundstate file")
    try:
        with zipfile.ZipFile(stream) as zipped:
            return _read(zipped, size, name, manifest_only)
    except StoreError:
        raise
    # zipfile answers damaged input with a dozen kinds of exception, many undocumented
    except Exception as error:
        stream.seek(0)
        if stream.read(2) == b"PK":
            raise StoreError(
                f"{name} is truncated or damaged ({brief(error)}); save it again or use a copy"
            ) from error
        raise StoreError(
            f"{name} is not a groundstate file; load reads files written by save"
        ) from error


def _read(zipped: zipfile.ZipFile, size: int, name: str, manifest_only: bool) -> Archive:
    infos = zipped.infolist()
    names = [info.filename for info in infos]
    if MANIFEST not in names:
        raise StoreError(f"{name} is a zip archive but not a groundstate file (no {MANIFEST})")
    if sorted(names) != sorted((MANIFEST, STATE, ARRAYS)):
        raise StoreError(
            f"{name} is altered: it should hold three members but holds {brief(names)}"
        )
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise StoreError(f"{name} is altered: its member {info.filename} is compressed")
    if sum(info.file_size for info in infos) > size:
        raise StoreError(f"{name} is truncated or damaged: its members claim more than its size")
    manifest = parse_json(zipped.read(MANIFEST), f"{name}: {MANIFEST}")
    check_manifest(manifest, name)
    archive = Archive(manifest)
    if manifest_only:
        return archive
    data = {member: _checked(zipped, manifest, member, name) for member in (STATE, ARRAYS)}
    archive.state = parse_json(data[STATE], f"{name}: {STATE}")
    archive.arrays = _read_arrays(data[ARRAYS], name)
    return archive


def check_manifest(manifest: Any, name: str) -> None:
    """Raise unless this is a manifest of a format we can read."""
    if not isinstance(manifest, dict) or manifest.get("magic") != MAGIC:
        raise StoreError(f"{name} is a zip archive but not a groundstate file (no magic word)")
    found = manifest.get("format")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise StoreError(f"{name} is altered: its format version is {found!r:.40}")
    if found > FORMAT:
        raise StoreError(
            f"{name} was written by a newer groundstate (format {found}, this reads up to "
            f"{FORMAT}); upgrade groundstate to open it"
        )


def parse_json(data: bytes, name: str) -> Any:
    """Parse strict JSON: UTF-8, no repeated keys, no NaN literals, no bottomless nesting."""
    try:
        return json.loads(
            data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{name} cannot be read ({brief(error)})") from error


def _checked(zipped: zipfile.ZipFile, manifest: dict[str, Any], member: str, name: str) -> bytes:
    data = zipped.read(member)
    members = manifest.get("members")
    entry = members.get(member) if isinstance(members, dict) else None
    expected = entry.get("sha256") if isinstance(entry, dict) else None
    if hashlib.sha256(data).hexdigest() != expected:
        raise StoreError(f"{name} is altered: {member} does not match its hash in {MANIFEST}")
    return data


def _read_arrays(data: bytes, name: str) -> dict[str, Array]:
    from safetensors.numpy import load

    try:
        arrays: dict[str, Array] = load(data)
        return arrays
    # SafetensorError, and KeyError or ValueError for dtypes and shapes numpy does not have
    except Exception as error:
        raise StoreError(f"{name} is altered: {ARRAYS} cannot be read ({brief(error)})") from error


def _json_bytes(value: Any, indent: int | None) -> bytes:
    separators = None if indent else (",", ":")
    try:
        text = json.dumps(value, indent=indent, separators=separators, allow_nan=False)
    except ValueError as error:  # an integer of more than 4,300 digits
        raise StoreError(f"cannot store a number: {error}") from error
    return text.encode("ascii")


def brief(what: Any) -> str:
    """Foreign text for a message: one line, not too long."""
    text = " ".join(str(what).split()) or type(what).__name__
    return text if len(text) <= 200 else f"{text[:197]}..."


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice")
    return result


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")

"""STORE: files that open next year. JSON and safetensors, never pickle, written all or nothing."""

from __future__ import annotations

from groundstate.store.atomic import atomic_file, write_bytes
from groundstate.store.checkpoints import Checkpoints, latest
from groundstate.store.files import FORMAT, StoreWarning, dumps, load, loads, manifest, save
from groundstate.store.migrations import MIGRATIONS
from groundstate.store.objects import register
from groundstate.store.pack import pack
from groundstate.store.rundir import RunDir
from groundstate.store.unpack import unpack

__all__ = [
    "FORMAT",
    "MIGRATIONS",
    "Checkpoints",
    "RunDir",
    "StoreWarning",
    "atomic_file",
    "dumps",
    "latest",
    "load",
    "loads",
    "manifest",
    "pack",
    "register",
    "save",
    "unpack",
    "write_bytes",
]

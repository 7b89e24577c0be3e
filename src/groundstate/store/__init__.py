"""STORE: files that open next year. JSON and safetensors, never pickle, written all or nothing."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.store.atomic import atomic_file as atomic_file
    from groundstate.store.atomic import write_bytes as write_bytes
    from groundstate.store.checkpoints import Checkpoints as Checkpoints
    from groundstate.store.checkpoints import latest as latest
    from groundstate.store.files import FORMAT as FORMAT
    from groundstate.store.files import StoreWarning as StoreWarning
    from groundstate.store.files import dumps as dumps
    from groundstate.store.files import load as load
    from groundstate.store.files import loads as loads
    from groundstate.store.files import manifest as manifest
    from groundstate.store.files import save as save
    from groundstate.store.migrations import MIGRATIONS as MIGRATIONS
    from groundstate.store.objects import register as register
    from groundstate.store.pack import pack as pack
    from groundstate.store.rundir import RunDir as RunDir
    from groundstate.store.unpack import unpack as unpack

lazy(__name__)

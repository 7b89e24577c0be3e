"""Reading rows of any kind; tables with schema and preparation, built-in data, streams."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groundstate.data.builtin.densities import (
        TOYS,
        make_bars_and_stripes,
        make_checkerboard,
        make_disc,
        make_double_well,
        make_eight_gaussians,
        make_pinwheel,
        make_two_gaussians,
        toy_log_prob,
    )
    from groundstate.data.builtin.load import available, load
    from groundstate.data.builtin.mnist1d import mnist1d
    from groundstate.data.builtin.pictures import (
        COLOURS,
        FACTORS,
        draw_factors,
        make_captions,
        make_edge_pairs,
        make_factor_shapes,
    )
    from groundstate.data.builtin.shapes import SHAPES, Scene, Scenes, make_shapes
    from groundstate.data.builtin.texts import make_facts, make_relations, make_reviews
    from groundstate.data.builtin.toys import (
        make_anisotropic,
        make_elongated,
        make_half_circle,
        make_ring,
        roll_arc_length,
    )
    from groundstate.data.catalogue.cards import CARDS, Card
    from groundstate.data.catalogue.named import Named, read_named
    from groundstate.data.detection.coco import read_coco
    from groundstate.data.detection.read import read_detection
    from groundstate.data.detection.truths import DetectionSet, Truth
    from groundstate.data.detection.voc import read_voc
    from groundstate.data.detection.yolo import read_yolo
    from groundstate.data.graphs.graph import Graph
    from groundstate.data.images.decode import ImageReader
    from groundstate.data.images.folder import ImageFolder
    from groundstate.data.images.formats import cifar10, idx, mnist, read_images
    from groundstate.data.images.sets import ImageSet, channel_moments
    from groundstate.data.preparation.preparation import Preparation
    from groundstate.data.reader import read
    from groundstate.data.rows import KINDS, Taken, rows_of
    from groundstate.data.sequences.long import LongTable, read_long
    from groundstate.data.streams.datasets import Rereadable
    from groundstate.data.streams.stream import stream
    from groundstate.data.tables.findings import Finding, audit
    from groundstate.data.tables.kinds import MISSING
    from groundstate.data.tables.schema import Column, Kind, Schema, Task
    from groundstate.data.tables.sparse import SparseTable
    from groundstate.data.tables.table import Table
    from groundstate.data.text.conll import read_conll
    from groundstate.data.text.files import read_texts
    from groundstate.data.text.pairs import read_pairs
    from groundstate.data.text.reference_bpe import reference_bpe
    from groundstate.data.text.tokenizer import Tokenizer

# Loaded when asked for: tables need polars, rows of other kinds torch, and neither needs the other.
_HOMES = {
    "builtin.densities": (
        "TOYS",
        "make_bars_and_stripes",
        "make_checkerboard",
        "make_disc",
        "make_double_well",
        "make_eight_gaussians",
        "make_pinwheel",
        "make_two_gaussians",
        "toy_log_prob",
    ),
    "builtin.load": ("available", "load"),
    "builtin.mnist1d": ("mnist1d",),
    "builtin.pictures": (
        "COLOURS",
        "FACTORS",
        "draw_factors",
        "make_captions",
        "make_edge_pairs",
        "make_factor_shapes",
    ),
    "builtin.shapes": ("SHAPES", "Scene", "Scenes", "make_shapes"),
    "builtin.texts": ("make_facts", "make_relations", "make_reviews"),
    "builtin.toys": (
        "make_anisotropic",
        "make_elongated",
        "make_half_circle",
        "make_ring",
        "roll_arc_length",
    ),
    "catalogue.cards": ("CARDS", "Card"),
    "catalogue.named": ("Named", "read_named"),
    "detection.coco": ("read_coco",),
    "detection.read": ("read_detection",),
    "detection.truths": ("DetectionSet", "Truth"),
    "detection.voc": ("read_voc",),
    "detection.yolo": ("read_yolo",),
    "images.decode": ("ImageReader",),
    "images.folder": ("ImageFolder",),
    "images.formats": ("cifar10", "idx", "mnist", "read_images"),
    "images.sets": ("ImageSet", "channel_moments"),
    "graphs.graph": ("Graph",),
    "preparation.preparation": ("Preparation",),
    "rows": ("KINDS", "Taken", "rows_of"),
    "sequences.long": ("LongTable", "read_long"),
    "streams.datasets": ("Rereadable",),
    "streams.stream": ("stream",),
    "tables.findings": ("Finding", "audit"),
    "tables.kinds": ("MISSING",),
    "reader": ("read",),
    "tables.schema": ("Column", "Kind", "Schema", "Task"),
    "tables.sparse": ("SparseTable",),
    "tables.table": ("Table",),
    "text.conll": ("read_conll",),
    "text.files": ("read_texts",),
    "text.pairs": ("read_pairs",),
    "text.reference_bpe": ("reference_bpe",),
    "text.tokenizer": ("Tokenizer",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CARDS",
    "COLOURS",
    "FACTORS",
    "KINDS",
    "MISSING",
    "SHAPES",
    "TOYS",
    "Card",
    "Column",
    "DetectionSet",
    "Finding",
    "Graph",
    "ImageFolder",
    "ImageReader",
    "ImageSet",
    "Kind",
    "LongTable",
    "Named",
    "Preparation",
    "Rereadable",
    "Scene",
    "Scenes",
    "Schema",
    "SparseTable",
    "Table",
    "Taken",
    "Task",
    "Tokenizer",
    "Truth",
    "audit",
    "available",
    "channel_moments",
    "cifar10",
    "draw_factors",
    "idx",
    "load",
    "make_anisotropic",
    "make_bars_and_stripes",
    "make_captions",
    "make_checkerboard",
    "make_disc",
    "make_double_well",
    "make_edge_pairs",
    "make_eight_gaussians",
    "make_elongated",
    "make_factor_shapes",
    "make_facts",
    "make_half_circle",
    "make_pinwheel",
    "make_relations",
    "make_reviews",
    "make_ring",
    "make_shapes",
    "make_two_gaussians",
    "mnist",
    "mnist1d",
    "read",
    "read_coco",
    "read_conll",
    "read_detection",
    "read_images",
    "read_long",
    "read_named",
    "read_pairs",
    "read_texts",
    "read_voc",
    "read_yolo",
    "reference_bpe",
    "roll_arc_length",
    "rows_of",
    "stream",
    "toy_log_prob",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value  # later reads do not come through here
    return value

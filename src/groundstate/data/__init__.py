"""Reading rows of any kind; tables with schema and preparation, built-in data, streams."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.data.builtin.densities import TOYS as TOYS
    from groundstate.data.builtin.densities import make_bars_and_stripes as make_bars_and_stripes
    from groundstate.data.builtin.densities import make_checkerboard as make_checkerboard
    from groundstate.data.builtin.densities import make_disc as make_disc
    from groundstate.data.builtin.densities import make_double_well as make_double_well
    from groundstate.data.builtin.densities import make_eight_gaussians as make_eight_gaussians
    from groundstate.data.builtin.densities import make_pinwheel as make_pinwheel
    from groundstate.data.builtin.densities import make_two_gaussians as make_two_gaussians
    from groundstate.data.builtin.densities import toy_log_prob as toy_log_prob
    from groundstate.data.builtin.load import available as available
    from groundstate.data.builtin.load import load as load
    from groundstate.data.builtin.mnist1d import mnist1d as mnist1d
    from groundstate.data.builtin.pictures import COLOURS as COLOURS
    from groundstate.data.builtin.pictures import FACTORS as FACTORS
    from groundstate.data.builtin.pictures import draw_factors as draw_factors
    from groundstate.data.builtin.pictures import make_captions as make_captions
    from groundstate.data.builtin.pictures import make_edge_pairs as make_edge_pairs
    from groundstate.data.builtin.pictures import make_factor_shapes as make_factor_shapes
    from groundstate.data.builtin.shapes import SHAPES as SHAPES
    from groundstate.data.builtin.shapes import Scene as Scene
    from groundstate.data.builtin.shapes import Scenes as Scenes
    from groundstate.data.builtin.shapes import make_shapes as make_shapes
    from groundstate.data.builtin.texts import make_facts as make_facts
    from groundstate.data.builtin.texts import make_relations as make_relations
    from groundstate.data.builtin.texts import make_reviews as make_reviews
    from groundstate.data.builtin.texts import make_topics as make_topics
    from groundstate.data.builtin.toys import make_anisotropic as make_anisotropic
    from groundstate.data.builtin.toys import make_elongated as make_elongated
    from groundstate.data.builtin.toys import make_half_circle as make_half_circle
    from groundstate.data.builtin.toys import make_ring as make_ring
    from groundstate.data.builtin.toys import roll_arc_length as roll_arc_length
    from groundstate.data.catalogue.cards import CARDS as CARDS
    from groundstate.data.catalogue.cards import Card as Card
    from groundstate.data.catalogue.named import Named as Named
    from groundstate.data.catalogue.named import read_named as read_named
    from groundstate.data.detection.coco import read_coco as read_coco
    from groundstate.data.detection.read import read_detection as read_detection
    from groundstate.data.detection.truths import DetectionSet as DetectionSet
    from groundstate.data.detection.truths import Truth as Truth
    from groundstate.data.detection.voc import read_voc as read_voc
    from groundstate.data.detection.yolo import read_yolo as read_yolo
    from groundstate.data.graphs.graph import Graph as Graph
    from groundstate.data.images.decode import ImageReader as ImageReader
    from groundstate.data.images.folder import ImageFolder as ImageFolder
    from groundstate.data.images.formats import cifar10 as cifar10
    from groundstate.data.images.formats import idx as idx
    from groundstate.data.images.formats import mnist as mnist
    from groundstate.data.images.formats import read_images as read_images
    from groundstate.data.images.sets import ImageSet as ImageSet
    from groundstate.data.images.sets import channel_moments as channel_moments
    from groundstate.data.preparation.preparation import Preparation as Preparation
    from groundstate.data.reader import read as read
    from groundstate.data.reader import written as written
    from groundstate.data.rows import KINDS as KINDS
    from groundstate.data.rows import Taken as Taken
    from groundstate.data.rows import rows_of as rows_of
    from groundstate.data.sequences.long import LongTable as LongTable
    from groundstate.data.sequences.long import read_long as read_long
    from groundstate.data.streams.datasets import Rereadable as Rereadable
    from groundstate.data.streams.stream import stream as stream
    from groundstate.data.tables.findings import Finding as Finding
    from groundstate.data.tables.findings import audit as audit
    from groundstate.data.tables.kinds import MISSING as MISSING
    from groundstate.data.tables.schema import Column as Column
    from groundstate.data.tables.schema import Kind as Kind
    from groundstate.data.tables.schema import Schema as Schema
    from groundstate.data.tables.schema import Task as Task
    from groundstate.data.tables.sparse import SparseTable as SparseTable
    from groundstate.data.tables.table import Table as Table
    from groundstate.data.tables.written import Written as Written
    from groundstate.data.text.conll import read_conll as read_conll
    from groundstate.data.text.files import read_texts as read_texts
    from groundstate.data.text.pairs import read_pairs as read_pairs
    from groundstate.data.text.reference_bpe import reference_bpe as reference_bpe
    from groundstate.data.text.token_files import write_tokens as write_tokens
    from groundstate.data.text.tokenizer import Tokenizer as Tokenizer

lazy(__name__)

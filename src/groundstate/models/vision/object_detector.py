"""Boxes, classes and masks of the objects in pictures."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.reduce import current
from groundstate.compute.rows import Objects, part, to_device
from groundstate.compute.thread_policy import answering
from groundstate.data.detection import Truth
from groundstate.data.detection.truths import truth_of
from groundstate.data.images.sets import channel_moments
from groundstate.energy.base import Energy
from groundstate.energy.networks.detection import DetectionEnergy
from groundstate.errors import DataError
from groundstate.learn.base import Rule
from groundstate.learn.rules.assigned import BalancedSample
from groundstate.learn.solvers.networks.estimator import NetworkTraining
from groundstate.learn.solvers.networks.stopping import Score
from groundstate.models.arrays import Home
from groundstate.models.networks.seeds import init_key
from groundstate.models.rows.budget import Budget
from groundstate.models.rows.making import make_network
from groundstate.models.rows.network import RowNetwork, minus_loss, pieces
from groundstate.models.traits import Traits
from groundstate.models.vision.detection import door
from groundstate.models.vision.detection.methods import METHODS
from groundstate.models.vision.detection.scores import mean_precision
from groundstate.nn.augment import PRESETS, Augment, preset
from groundstate.nn.detection.parts import Detected
from groundstate.nn.detection.precision import DetectionScores, average_precision_detection
from groundstate.nn.detection.rcnn import Detector
from groundstate.registry import models


@models.register(family="vision", task="detection", role="detector", auto=False, shortlist=1)
class ObjectDetector(RowNetwork):
    r"""Objects in pictures: their boxes, classes and, with ``method="mask"``, masks.

    .. math:: e(x, y) = \sum_b -\log p(c_b\mid x) + \sum_{b: c_b > 0}\ell(t_b(x) - t^*_b)

    over all anchors and proposed regions b, each assigned to the object of the set y that it overlaps
    most, or to the background. Learning lowers the energy on a balanced sample of the boxes;
    ``predict`` searches the set of lowest energy: the best class of each region, its box moved by the
    offset, thinned out by non-maximum suppression.

    X and y are a folder in the form of COCO, Pascal VOC or YOLO, a list of rows
    ``(image, boxes, labels)`` or ``(image, boxes, labels, masks)``, or images and a list of
    ``(boxes, labels)`` or dicts. Images are arrays ``(channels, height, width)`` with values in
    [0, 1], arrays of 8 bits, or files. Boxes are corners x1, y1, x2, y2 in pixels. A picture may hold
    no object.

    Parameters
    ----------
    method : "rcnn", "fast", "faster" or "mask"
        R-CNN, a pass of the network for every region that selective search finds on the picture, with
        a support vector machine for each class; Fast R-CNN, one pass for all of them; Faster R-CNN,
        which learns to propose them; or Mask R-CNN, which also learns masks.
    backbone : str or module
        "small", a residual network by name such as "resnet50", or a module with ``stages(x)`` that
        gives its maps from the finest to the coarsest.
    fpn : bool
        A pyramid of feature maps; otherwise the last map of the backbone alone.
    size : (height, width) or None
        To which pictures are scaled, and boxes with them; needed where their sizes differ.
    anchor_sizes : sequence or None
        Sides of the anchors in pixels, one for each map; None takes quantiles of the objects' sides.
    mirror : float
        Share of the pictures that are mirrored left to right in each step, with what is in them; 0
        where left and right matter, as in texts.
    augment : "scenes", "none", another preset or Augment
        Further changes in training; "scenes" moves, scales and lights pictures otherwise and keeps boxes
        tight. Methods that search regions on the picture take none.
    score_threshold : float
        Score below which nothing is reported.
    max_detections : int
        Objects of a picture at most.
    max_epochs : int or None
        Passes over the pictures at most; None takes as many as make 1,200 steps, and five at least.
    network : class or function of another detector, given the sizes of the data; None is the method's

    Attributes
    ----------
    classes_ : (n_classes,) array of labels
    size_ : (height, width) of the pictures as the network sees them
    anchor_sizes_ : sides of the anchors

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import ObjectDetector
    >>> from groundstate.data import make_shapes
    >>> scenes = make_shapes(6, size=32, n_objects=1, random_state=0)
    >>> objects = [(boxes, labels) for boxes, labels in zip(scenes.boxes, scenes.labels)]
    >>> model = ObjectDetector(max_epochs=1, val_fraction=0, random_state=0).fit(scenes.images, objects)
    >>> found = model.predict(scenes.images[:2])
    >>> len(found), sorted(found[0])
    (2, ['boxes', 'labels', 'scores'])
    """

    rows: ClassVar[str] = "image"
    traits = Traits(program=None)
    budget = Budget(1200, least=5, most=300)
    _takes_target: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "method": [StrOptions(set(METHODS))],
        "network": [nn.Module, callable, None],
        "backbone": [str, nn.Module],
        "fpn": ["boolean"],
        "size": [tuple, list, None],
        "anchor_sizes": ["array-like", None],
        "mirror": [Interval(Real, 0, 1, closed="both")],
        "augment": [StrOptions(set(PRESETS) - {"strong"}), Augment],
        "score_threshold": "no_validation",
        "max_detections": [Interval(Integral, 1, None, closed="left")],
    }
    method: str
    backbone: Any
    fpn: bool
    size: Any
    anchor_sizes: Any
    mirror: float
    augment: Any
    score_threshold: float
    max_detections: int
    classes_: NDArray[Any]
    size_: tuple[int, int]
    anchor_sizes_: tuple[float, ...]

    def __init__(
        self,
        method: str = "faster",
        *,
        backbone: Any = "small",
        fpn: bool = True,
        size: Any = None,
        anchor_sizes: Any = None,
        mirror: float = 0.5,
        augment: Any = "scenes",
        score_threshold: float = 0.05,
        max_detections: int = 100,
        network: Any = None,
        network_params: dict[str, Any] | None = None,
        max_epochs: int | None = None,
        batch_size: int = 4,
        optimizer: Any = "adamw",
        lr: float = 2e-3,
        weight_decay: float = 1e-4,
        val_fraction: float | None = None,
        patience: int | None = None,
        schedule: Any = "onecycle",
        clip_norm: float | None = 10.0,
        precision: str = "auto",
        compile: bool | str = False,
        warm_start: bool = False,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    # --- what comes in -------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from pictures and the objects in them.

        Parameters
        ----------
        X : folder, list of ``(image, boxes, labels)`` or ``(image, boxes, labels, masks)``, or images
        y : list with the objects of each picture: ``(boxes, labels)``, ``(boxes, labels, masks)`` or a
            dict of these; None where X holds them
        sample_weight : (n_samples,) array; a weight of 2 is the picture twice
        """
        X, truths = door.pictures_and_truths(X, y)
        X, sizes = door.uniform(X, self._size())
        if sizes is not None:
            truths = door.with_sizes(truths, sizes)
        super().fit(X, truths, sample_weight)
        finish = METHODS[self.method].finish
        if finish is not None and self.network is None:
            energy: Any = self.energy_
            rows = self._rows(X)[0]
            own = self._known_sizes(truths, self._as_given(X))
            objects = door.objects_of(truths, own, self.size_, self.classes_, self._masks)
            pictures = pieces(rows, energy.placement()[0], self.batch_size)
            finish(self.network_, (energy.prepared(x) for x in pictures), objects, sample_weight)
        return self

    def _size(self) -> tuple[int, int] | None:
        if self.size is None:
            return None
        height, width = (int(v) for v in self.size)
        return height, width

    @property
    def _masks(self) -> bool:
        return METHODS[self.method].masks

    def _row_target(self, y: Any, rows: Any) -> tuple[Objects, dict[str, Any]]:
        truths = [truth_of(one, i) for i, one in enumerate(y)]
        sizes = self._known_sizes(truths, rows)
        goes_on = (self.warm_start or self._partial) and hasattr(self, "energy_")
        classes = self.classes_ if goes_on else door.class_names(truths)
        size = self.size_ if goes_on else door.one_size(sizes, self._size())
        objects = door.objects_of(truths, sizes, size, classes, self._masks)
        return objects, {"classes_": classes, "size_": size}

    def _example_target(self, X: Any) -> Any:
        box = [[1.0, 1.0, 3.0, 3.0]]
        height, width = X.shape[2:]
        return [
            (box, [i % 2], np.ones((1, height, width)) if self._masks else None)
            for i in range(len(X))
        ]

    def _known_sizes(self, truths: list[Truth], rows: Any) -> list[tuple[int, int]]:
        if len(truths) != len(rows):
            raise DataError(
                f"X has {len(rows)} pictures, y the objects of {len(truths)}; give one for each"
            )
        known = [truth.size for truth in truths]
        if all(size is not None for size in known):
            return known  # type: ignore[return-value]
        return door.sizes_of(rows)

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        self._moments_of_pixels = channel_moments(door.scaled_rows(X, self.size_), weight)
        if self.anchor_sizes is not None:
            self.anchor_sizes_ = tuple(float(s) for s in self.anchor_sizes)
            return
        boxes = y.boxes.values.double()
        sides = (boxes[:, 2:] - boxes[:, :2]).prod(1).sqrt().cpu().numpy()
        own = np.ones(len(y)) if weight is None else weight.double().cpu().numpy()
        both = np.stack((sides, own[y.boxes.row.cpu().numpy()]), 1)
        self.anchor_sizes_ = door.side_quantiles(
            *current().gather(torch.from_numpy(both)).numpy().T
        )

    def _prepared(self, X: Any) -> Any:
        return door.scaled_rows(X, self.size_)

    # --- network and energy --------------------------------------------------------------

    def _sizes(self, X: Any, y: Any) -> dict[str, Any]:
        small = self.backbone == "small"
        method = METHODS[self.method]
        more = dict(method.small) if small else {}
        more["fpn"] = (48 if small else 256) if self.fpn else None
        sizes: Any = self.anchor_sizes_
        maps = more.get("levels", 4) + 1
        if self.fpn and self.anchor_sizes is None:
            place = np.linspace(0, len(sizes) - 1, maps).round().astype(int)
            sizes = tuple(sizes[i] for i in place)
        return {
            "num_classes": len(self.classes_) + 1,
            "in_channels": self._space(X).shape[0],
            "backbone": self.backbone,
            "sizes": sizes,
            "lowest": self.score_threshold,
            "most": self.max_detections,
            "frozen": False,
            **more,
        }

    def _made(self, X: Any, y: Any) -> nn.Module:
        key = init_key(self.random_state).fold("init")
        network = METHODS[self.method].network if self.network is None else self.network
        return make_network(network, self._sizes(X, y), self.network_params or {}, self.rows, key)

    def _energy_of(self, net: nn.Module, X: Any, y: Any) -> Energy:
        # rounded, so that sums in another order of the rows give the same numbers
        mean, scale = (v.float().tolist() for v in self.__dict__.pop("_moments_of_pixels"))
        shape, detector = self._space(X).shape, cast(Detector, net)
        return DetectionEnergy(detector, shape, len(self.classes_), mean, scale)

    def _loss(self, energy: Energy) -> Rule:
        if METHODS[self.method].searched:
            return BalancedSample(self.mirror)
        augment = preset(self.augment) if isinstance(self.augment, str) else self.augment
        return BalancedSample(self.mirror, augment)

    def _score_of(self, rule: Rule) -> Score:
        if METHODS[self.method].finish is not None:  # it finds nothing before that
            return partial(minus_loss, rule, size=self.batch_size)
        return partial(mean_precision, size=self.batch_size)  # pictures may be large

    def _training(self, rule: Rule, total: float) -> NetworkTraining:
        return replace(super()._training(rule, total), stratify=False)

    # --- answers -------------------------------------------------------------------------

    def predict(self, X: Any) -> list[dict[str, Any]]:
        """The objects of each picture, the highest score first.

        Returns
        -------
        list of dicts with ``boxes`` ``(n, 4)`` in pixels of the picture as it was given, ``labels``
        ``(n,)`` and ``scores`` ``(n,)``; with ``method="mask"`` also ``masks`` ``(n, H, W)`` bool
        """
        check_is_fitted(self, "energy_")
        X, sizes = door.uniform(X, self.size_)
        if sizes is None:
            sizes = door.sizes_of(self._as_given(X))
        rows, home = self._rows(X)
        energy: Any = self.energy_
        found: list[Detected] = []
        with torch.no_grad(), answering(energy, rows):
            for x in pieces(rows, energy.placement()[0], self.batch_size):
                found += energy.detect(x)
        return [self._result(f, size, home) for f, size in zip(found, sizes, strict=True)]

    def _as_given(self, X: Any) -> Any:
        from groundstate.data.rows import rows_of

        return rows_of(X, self.rows).rows

    def _result(self, found: Detected, size: tuple[int, int], home: Home) -> dict[str, Any]:
        """An answer in the pixels and the labels of the caller."""
        height, width = size
        scale = found.boxes.new_tensor([width / self.size_[1], height / self.size_[0]] * 2)
        labels = self.classes_[found.labels.cpu().numpy() - 1]
        if home.device is not None and labels.dtype.kind not in "OUS":
            labels = home.give(labels)
        result = {
            "boxes": home.give(found.boxes * scale),
            "labels": labels,
            "scores": home.give(found.scores),
        }
        if found.masks is not None:
            masks = found.masks
            if size != self.size_ and len(masks):
                masks = nn.functional.interpolate(masks[:, None], size, mode="bilinear")[:, 0]
            elif not len(masks):
                masks = masks.new_zeros(0, *size)
            result["masks"] = home.give(masks > 0.5)
        return result

    def average_precision(
        self, X: Any, y: Any = None, *, masks: bool = False, **settings: Any
    ) -> DetectionScores:
        """Average precision and recall on pictures whose objects are known, as COCO counts them.

        Parameters
        ----------
        X, y : as in ``fit``
        masks : overlap of masks instead of boxes
        settings : of ``groundstate.evaluate.metrics.average_precision_detection``
        """
        X, truths = door.pictures_and_truths(X, y)
        sizes = door.sizes_of(self._as_given(door.uniform(X, self.size_)[0])) if masks else []
        known: list[dict[str, Any]] = []
        for i, truth in enumerate(truths):
            known.append({"boxes": truth.boxes, "labels": np.array(truth.labels)})
            if masks:
                known[i]["masks"] = truth.drawn(truth.size or sizes[i])
        return average_precision_detection(known, self.predict(X), masks=masks, **settings)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean average precision (mAP) of the boxes over classes and overlaps 0.5, 0.55, ..., 0.95.

        A weight of 2 is the picture twice; weights are whole numbers.
        """
        if sample_weight is None:
            return self.average_precision(X, y).ap
        weight = np.asarray(sample_weight)
        if (weight < 0).any() or (weight != np.rint(weight)).any():
            raise ValueError("average precision counts pictures: weights must be whole numbers")
        X, truths = door.pictures_and_truths(X, y)
        index = np.repeat(np.arange(len(truths)), weight.astype(int))
        rows = [X[i] for i in index] if isinstance(X, list | tuple) else X[index]
        return self.average_precision(rows, [truths[i] for i in index]).ap

    def energy(self, X: Any, y: Any = None, z: Any = None) -> Any:
        """Energy of each picture with the objects y in it, ``(n_samples,)``."""
        X, truths = door.pictures_and_truths(X, y)
        X, sizes = door.uniform(X, self.size_)
        truths = truths if sizes is None else door.with_sizes(truths, sizes)
        given = self._as_given(X)
        own = self._known_sizes(truths, given)
        objects = door.objects_of(truths, own, self.size_, self.classes_, self._masks)
        rows, home = self._rows(X)
        device, dtype = self.energy_.placement()
        e, at = [], 0
        with torch.no_grad(), answering(self.energy_, rows):
            for x in pieces(rows, device, self.batch_size):
                here = to_device(part(objects, at, at + len(x)), device).floating(dtype)  # type: ignore[union-attr]
                e.append(self.energy_(x=x, y=here))
                at += len(x)
        return home.give(torch.cat(e) if e else torch.zeros(0))

"""A network that labels every pixel of a picture."""

from __future__ import annotations

import inspect
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.reduce import current
from groundstate.compute.rows import Files, count, part, to_device
from groundstate.compute.thread_policy import answering
from groundstate.data.images.decode import ImageReader
from groundstate.data.images.masks import IGNORED, masked_pictures, picture_list
from groundstate.data.images.sets import channel_moments
from groundstate.energy.base import Energy
from groundstate.energy.basic.labels import ClassEnergy
from groundstate.energy.spaces import label_grid
from groundstate.errors import ShapeError
from groundstate.infer.tiles import tiled
from groundstate.learn import Augmented
from groundstate.learn.base import Rule
from groundstate.learn.rules.masks import MASK_LOSSES, MaskLoss
from groundstate.learn.solvers.networks.stopping import Score
from groundstate.math.info.overlap import label_counts
from groundstate.models.arrays import Home
from groundstate.models.rows.budget import Budget
from groundstate.models.rows.network import RowNetwork, pieces
from groundstate.models.traits import Traits
from groundstate.models.vision.labels import decoded_masks, encoded_masks
from groundstate.nn.architectures import architectures
from groundstate.nn.augment import PRESETS, Augment, preset
from groundstate.nn.blocks.channels import standardized
from groundstate.nn.zoo.base import SMALLEST
from groundstate.registry import models

# maps at full resolution of a U-Net that is asked for by name, by the pictures from which they are worth it
BASES: tuple[tuple[int, int], ...] = ((1000, 32), (0, 16))
DEEPEST = 4  # halvings
CHUNK = 16  # pictures answered at once


@models.register(family="vision", task="segmentation", role="segmenter", auto=False, shortlist=1)
class Segmenter(RowNetwork):
    r"""A label for every pixel by a network whose answer has the size of the picture.

    .. math:: e(x, y) = -\sum_p \log\operatorname{softmax}(f_\theta(x)_p)_{y_p}

    X is an array ``(n, channels, height, width)``, ``(n, height, width)`` or of volumes
    ``(n, channels, depth, height, width)``, a list of pictures of different sizes, a list of image
    files, or a folder; y are masks of whole numbers ``(n, height, width)``, a list of them, mask files
    (PNG with class numbers or a palette) or their folder, where a mask has the name of its picture.
    ``fit("folder")`` reads ``folder/images`` and ``folder/masks``. Each channel gets mean 0 and unit
    contrast. Where sizes differ, smaller pictures are padded and what was added does not count.

    Parameters
    ----------
    network : "unet", "fcn", "hourglass", a module or a function that makes one; U-Nets by name have 16
        maps at full resolution (32 from 1,000 pictures on) and at most 4 halvings unless
        ``network_params`` says otherwise
    loss : "ce+dice", "ce" or "dice"
        Cross-entropy of the pixels, Dice loss of the classes, or their sum.
    tile : int, tuple or None
        Answer by overlapping tiles of this side (one for each axis) with blended borders: for pictures
        that are too large for memory. None answers for whole pictures.
    ignore_index : int
        Label of pixels that do not count.
    augment : "auto", "none", "light", "scenes", "photo" or Augment
        Random changes of pictures and masks in training; "auto" is "light" for pictures and "none" for
        volumes.
    max_epochs : int or None
        Passes over the pictures at most; None takes as many as make 800 steps, and twenty at least.
    class_weight : dict, "balanced" or None
        Factors on the cross-entropy of the classes; "balanced" is :math:`n/(K n_k)` with
        :math:`n_k` pixels of class k.

    Attributes
    ----------
    classes_ : (n_classes,) array of the labels in the masks
    mean_, std_ : (channels,) arrays

    Examples
    --------
    >>> from groundstate import Segmenter
    >>> from groundstate.data import make_shapes
    >>> scenes = make_shapes(20, size=16, n_objects=1, random_state=0)
    >>> model = Segmenter(network_params={"base": 4, "depth": 2}, max_epochs=2, random_state=0)
    >>> model = model.fit(scenes.images, scenes.semantic > 0)
    >>> model.predict(scenes.images[:3]).shape, model.predict_proba(scenes.images[:3]).shape
    ((3, 16, 16), (3, 2, 16, 16))
    """

    rows: ClassVar[str] = "image"
    _takes_target: ClassVar[bool] = True
    _store_private: ClassVar[tuple[str, ...]] = ("_factors",)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [StrOptions(set(MASK_LOSSES))],
        "tile": [Interval(Integral, 1, None, closed="left"), tuple, list, None],
        "ignore_index": [Integral],
        "augment": [StrOptions({"auto", *PRESETS} - {"strong"}), Augment],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    traits = Traits(program=None)  # pictures with masks are learned from one fit at a time
    budget = Budget(800, least=20, most=300)

    loss: str
    tile: Any
    ignore_index: int
    augment: Any
    class_weight: Any
    classes_: NDArray[Any]
    mean_: NDArray[np.float64]
    std_: NDArray[np.float64]
    _factors: NDArray[np.float64] | None
    _pictures: float = 0.0  # that the network is made for
    _named: Any = None

    def __init__(
        self,
        network: Any = "unet",
        loss: str = "ce+dice",
        tile: Any = None,
        *,
        network_params: Any = None,
        ignore_index: int = IGNORED,
        augment: Any = "auto",
        max_epochs: int | None = None,
        batch_size: int = 8,
        optimizer: Any = "adamw",
        lr: float = 3e-3,
        weight_decay: float = 1e-4,
        val_fraction: float | None = None,
        patience: Any = None,
        schedule: Any = "onecycle",
        clip_norm: Any = None,
        precision: str = "auto",
        compile: Any = False,
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    # --- pictures and masks --------------------------------------------------------------

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        return super()._checked(*masked_pictures(X, y, self.ignore_index))

    def _row_target(self, y: Any, rows: Any) -> tuple[Any, dict[str, Any]]:
        goes_on = hasattr(self, "classes_") and (
            self._partial or (self.warm_start and hasattr(self, "energy_"))
        )
        known = self._named if self._named is not None else self.classes_ if goes_on else None
        labels, classes = encoded_masks(
            y, _first(rows).shape[2:], count(rows), self.ignore_index, known
        )
        return labels, {"classes_": classes}

    def _example_target(self, X: Any) -> Any:
        return (X[:, 0] > 0).numpy()

    def partial_fit(
        self, X: Any, y: Any = None, *, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Go once over these rows, from where the model and its optimiser stand.

        ``classes`` are all labels that will ever come; without them, those of the first call.
        """
        self._named = None if classes is None else np.unique(np.asarray(classes))
        try:
            return super().partial_fit(X, y, sample_weight=sample_weight)
        finally:
            del self._named

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        mean, std = channel_moments(X, weight)
        self.mean_, self.std_ = mean.cpu().numpy(), std.cpu().numpy()
        self._factors = self._class_factors(y, weight)
        seen = torch.tensor(float(count(X))) if weight is None else weight.double().sum()
        self._pictures = float(current().sum(seen.double().cpu()))

    def _class_factors(self, y: Tensor, weight: Tensor | None) -> NDArray[np.float64] | None:
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, dict):
            foreign = sorted(set(self.class_weight) - set(self.classes_.tolist()))
            if foreign:
                raise ValueError(
                    f"class_weight names {foreign}, but the masks hold {self.classes_.tolist()}"
                )
            return np.array([float(self.class_weight.get(c, 1.0)) for c in self.classes_.tolist()])
        _, true, _ = label_counts(y, y, len(self.classes_), by_image=True, ignore_index=IGNORED)
        w = np.ones(len(y)) if weight is None else weight.double().cpu().numpy()
        pixels = current().sum(torch.as_tensor(w @ true)).numpy()
        factors: NDArray[np.float64] = pixels.sum() / (len(pixels) * np.maximum(pixels, 1e-12))
        return np.where(pixels > 0, factors, 0.0)

    # --- the network ---------------------------------------------------------------------

    def _sizes(self, X: Any, y: Any) -> dict[str, Any]:
        first, k = _first(X), len(self.classes_)
        base = next(maps for least, maps in BASES if self._pictures >= least)
        halvings = int(np.log2(max(2, min(first.shape[2:])))) - 1
        options = {
            "in_channels": first.shape[1], "out_channels": k, "num_classes": k,
            "n_dim": first.ndim - 2, "base": base, "depth": max(1, min(DEEPEST, halvings)),
        }  # fmt: skip
        make = architectures[self.network].obj if isinstance(self.network, str) else self.network
        named = {} if isinstance(make, nn.Module) else inspect.signature(make).parameters
        return {name: value for name, value in options.items() if name in named}

    def _energy_of(self, net: nn.Module, X: Any, y: Any) -> Energy:
        first, k = _first(X), len(self.classes_)
        whole = standardized(net, self.mean_, self.std_)
        self._try(whole, first, k)
        spatial = first.shape[2:]
        labels = label_grid(k, *spatial)
        return ClassEnergy(whole, first.shape[1:], labels, normalise=True, ignore=IGNORED)

    def _try(self, net: nn.Module, first: Tensor, k: int) -> None:
        """A network that does not label pixels says so before it learns."""
        own = next(net.parameters(), torch.zeros(()))
        with torch.no_grad():
            found = net.eval()(first.to(own))
        if tuple(found.shape) != (1, k, *first.shape[2:]):
            raise ShapeError(
                f"a segmenter needs scores (n, {k}, {', '.join(map(str, first.shape[2:]))}) for these "
                f"pictures, network={self.network!r:.80} gives {tuple(found.shape)}; use 'unet', "
                "'fcn' or 'hourglass'"
            )

    def _loss(self, energy: Energy) -> Rule:
        factors = None if self._factors is None else torch.from_numpy(self._factors)
        rule = MaskLoss(self.loss, factors)
        augment = self.augment
        if augment == "auto":
            augment = "light" if len(energy.spaces["x"].shape) == 3 else "none"
        augment = preset(augment) if isinstance(augment, str) else augment
        return rule if augment is None else Augmented(rule, augment, masks="y", outside=IGNORED)

    def _score_of(self, rule: Rule) -> Score:
        plain: Any = rule.rule if isinstance(rule, Augmented) else rule
        return super()._score_of(plain)  # of the pictures as they are

    @property
    def network_(self) -> nn.Module:
        net: Any = self.energy_.net
        return net[1]

    # --- answers -------------------------------------------------------------------------

    def _rows(self, X: Any) -> tuple[Any, Home]:
        """Pictures of any size with the channels that were learned."""
        rows: Any
        rows, home = super(RowNetwork, self)._rows(X)
        channels = self.energy_.spaces["x"].shape[0]
        if isinstance(rows, Files) and isinstance(rows.reader, ImageReader) and channels in (1, 3):
            rows = Files(rows.paths, replace(rows.reader, channels=channels))
        own = tuple(_first(rows).shape[1:]) if count(rows) else ()
        if own and (own[0] != channels or len(own) != len(self.energy_.spaces["x"].shape)):
            raise ShapeError(
                f"{type(self).__name__} was fitted to pictures of shape "
                f"{self.energy_.spaces['x'].shape}, got {own}; channels and number of axes must agree"
            )
        return rows, home

    def _answers(self, X: Any, one: Any) -> Any:
        """An answer for pictures of one size, or a list of answers."""
        listed = picture_list(X)
        if listed is not None:
            return [self._answers(rows, one)[0] for rows in listed]
        x, home = self._rows(X)
        device = self.energy_.placement()[0]
        if not count(x):
            raise ValueError(f"{type(self).__name__} got no pictures to answer for")
        found = []
        with answering(self.energy_, x):
            for rows in pieces(x, device, CHUNK):
                found.append(one(self._scores(rows)))
        return home.give(torch.cat(found))

    def _scores(self, x: Tensor) -> Tensor:
        """Scores ``(n, K, *spatial)``."""
        net: Any = self.energy_.net
        if self.tile is None:
            scores: Tensor = net(x)
            return scores
        align = getattr(self.network_, "align", SMALLEST)
        tile = self.tile if isinstance(self.tile, int) else tuple(self.tile)
        prepared = net[0](x)  # beyond the border is the mean colour, for tiles as for the whole
        return tiled(net[1], prepared, tile, align=align)

    def predict(self, X: Any) -> Any:
        """The label of every pixel, ``(n_samples, *spatial)``; a list where sizes differ."""
        found = self._answers(X, lambda s: s.argmax(1))
        return decoded_masks(found, self.classes_)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes of every pixel, ``(n_samples, n_classes, *spatial)``; a list
        where sizes differ."""
        return self._answers(X, lambda s: s.softmax(1))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean over classes of intersection over union, all pixels pooled; classes that are in neither
        the masks nor the answers are left out. A folder is read with its masks."""
        X, y = masked_pictures(X, y, self.ignore_index)
        rows, _ = self._rows(X)
        labels, _ = encoded_masks(
            y, _first(rows).shape[2:], count(rows), self.ignore_index, self.classes_
        )
        found = self._answers(rows, lambda s: s.argmax(1))
        counts = label_counts(
            labels, found, len(self.classes_), by_image=True, ignore_index=IGNORED
        )
        w = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        hit, true, predicted = (w @ c for c in counts)
        union = true + predicted - hit
        return float((hit[union > 0] / union[union > 0]).mean())

    def energy(self, X: Any, y: Any = None, z: Any = None) -> Any:
        r"""Energy of each picture with its mask, :math:`-\sum_p\log p(y_p \mid x)`, ``(n_samples,)``; without
        masks the free energy, which is 0."""
        x, home = self._rows(X)
        size = tuple(_first(x).shape[2:])
        labels = None
        if y is not None:
            labels, _ = encoded_masks(y, size, count(x), self.ignore_index, self.classes_)
        found, at = [], 0
        with answering(self.energy_, x):
            for rows in pieces(x, self.energy_.placement()[0], CHUNK):
                if labels is None:
                    found.append(rows.new_zeros(len(rows)))
                    continue
                own = labels[at : at + len(rows)].to(rows.device).long()
                found.append(self.energy_.forward(x=rows, y=own))
                at += len(rows)
        return home.give(torch.cat(found))

    def _encoded(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        if name != "y":
            return values
        spatial = self.energy_.spaces["x"].shape[1:]
        labels, _ = encoded_masks(values, spatial, len(values), self.ignore_index, self.classes_)
        return np.asarray(labels.cpu().numpy(), np.int64)

    def _decoded(self, name: str, values: Tensor, home: Home) -> Any:
        found = home.give(values)
        return decoded_masks(found, self.classes_) if name == "y" else found


def _first(rows: Any) -> Tensor:
    """The first picture; of files, one is read."""
    found: Any = part(rows, 0, 1)
    if not isinstance(found, Tensor):
        found = to_device(found, torch.device("cpu"))
    assert isinstance(found, Tensor)
    return found

"""A convolutional network that names what is on a picture."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.reduce import current
from groundstate.compute.rows import Files, count, floating
from groundstate.data.images.cache import cached
from groundstate.data.images.formats import read_images
from groundstate.data.images.sets import ImageSet, channel_moments
from groundstate.energy.base import Energy
from groundstate.energy.basic.net_class import NetClassEnergy
from groundstate.errors import ShapeError
from groundstate.learn import Augmented, SoftMin
from groundstate.learn.base import Rule
from groundstate.learn.solvers.networks.stopping import Score
from groundstate.models.networks.cam import grad_cam, map_layer
from groundstate.models.rows.budget import Budget
from groundstate.models.rows.network import pieces
from groundstate.models.rows.transfer import TransferClassifier
from groundstate.models.traits import Traits
from groundstate.models.vision.choice import NAMED, Choice, chosen
from groundstate.models.vision.forms import Form
from groundstate.nn.augment import PRESETS, Augment, preset
from groundstate.nn.blocks.channels import standardized
from groundstate.registry import models

SMALL = 64  # below this side a stem that halves the picture twice sees too little


@models.register(family="vision", task="classification", role="classifier", auto=False, shortlist=1)
class ImageClassifier(TransferClassifier):
    r"""Labels of pictures by a convolutional network.

    .. math:: e(x, y) = -f_\theta(x)_y, \qquad p(y \mid x) = \operatorname{softmax}(-e)_y

    X is an array ``(n, channels, height, width)`` or ``(n, height, width)`` (uint8 counts as values in
    [0, 1]), a list of image files, or a folder: ``fit("folder")`` reads class folders, their part
    ``train`` where there is one, CIFAR-10's and MNIST's files. Each channel gets mean 0 and unit
    contrast, learned from the rows of ``fit``. The loss is the cross-entropy on augmented pictures.

    Parameters
    ----------
    network : "auto", of ``groundstate.architectures.list(kind="image")``, or a module
        "auto" is a plain convolutional network with as many blocks as the side of the pictures allows,
        and "resnet18" from 20,000 pictures on. ResNets get the stem for small pictures where both sides
        are below 64.
    image_size : int, (height, width) or None
        To which all pictures are resized; None keeps the size of those in ``fit``.
    augment : "none", "light", "photo", "strong" or Augment
        Random changes in training; "light" (small shifts, turns and scales) suits every kind of
        picture, "photo" and "strong" also mirror left and right and change colours.
    max_epochs : int or None
        Passes over the pictures at most; None takes as many as make the steps that the network needs.
    lr : float or None
        Highest learning rate; None is 0.003 for the networks of "auto" and 0.001 for others.

    Attributes
    ----------
    form_ : Form
        Channels and size of the pictures that the network takes.
    mean_, std_ : (channels,) arrays

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import ImageClassifier
    >>> X = np.zeros((40, 1, 8, 8)); X[:20, :, :4] = 1; X[20:, :, 4:] = 1
    >>> X += 0.1 * np.random.default_rng(0).normal(size=X.shape)
    >>> y = np.repeat(["top", "bottom"], 20)
    >>> model = ImageClassifier("cnn", {"channels": (4,), "head": "flatten"}, max_epochs=30, lr=1e-2,
    ...                         random_state=0)
    >>> model.fit(X, y).predict(X[[0, 39]]).tolist()
    ['top', 'bottom']
    >>> model.explain(X[:1]).shape
    (1, 8, 8)
    """

    rows: ClassVar[str] = "image"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "image_size": [Interval(Integral, 1, None, closed="left"), tuple, list, None],
        "augment": [StrOptions(set(PRESETS)), Augment],
        "lr": [Interval(Real, 0, None, closed="neither"), None],
        "freeze": ["boolean", StrOptions({"backbone"}), Interval(Integral, 0, None, closed="left")],
    }
    traits = Traits(program=None)  # augmentations of members have no keys of their own
    _store_private: ClassVar[tuple[str, ...]] = ("_pictures",)

    image_size: Any
    augment: Any
    form_: Form
    mean_: NDArray[np.float64]
    std_: NDArray[np.float64]
    _pictures: float = 0.0  # that the network was chosen for

    def __init__(
        self,
        network: Any = "auto",
        network_params: Any = None,
        *,
        image_size: Any = None,
        augment: Any = "light",
        freeze: Any = False,
        max_epochs: Any = None,
        batch_size: int = 32,
        optimizer: Any = "adamw",
        lr: Any = None,
        weight_decay: float = 1e-2,
        val_fraction: Any = None,
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

    # --- pictures ------------------------------------------------------------------------

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        if y is None and isinstance(X, str | Path) and Path(X).is_dir():
            X = read_images(X, size=self.image_size)["train"]
        rows, labels, encoded = super()._checked(X, y)
        if isinstance(rows, Files):  # read in every epoch, so decoded once where they are few
            form = Form.of(rows).sized(self.image_size)
            rows = cached(form.take(rows, True))  # type: ignore[arg-type]
        return floating(rows, torch.float32), labels, encoded

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        if self._keeps_preparation:
            return
        form = Form.of(X).sized(self.image_size)
        backbone = getattr(self._start, "in_channels", None)
        if backbone in (1, 3):
            form = Form(backbone, form.size)
        self.form_ = form
        seen = torch.tensor(float(count(X))) if weight is None else weight.double().sum()
        self._pictures = float(current().sum(seen.double().cpu()))
        mean, std = channel_moments(form.take(X, True), weight)
        self.mean_, self.std_ = mean.cpu().numpy(), std.cpu().numpy()

    def _prepared(self, X: Any) -> Any:
        resize = self.image_size is not None or self._keeps_preparation
        return self.form_.take(X, resize)

    # --- the network ---------------------------------------------------------------------

    @property
    def _choice(self) -> Choice:
        """What "auto" stands for, and how a network that is named learns."""
        auto = isinstance(self.network, str) and self.network == "auto"
        if not auto or self._start is not None or not hasattr(self, "form_"):
            return NAMED
        return chosen(self.form_.size, self._pictures)

    def _architecture(self) -> tuple[Any, Mapping[str, Any]]:
        network, given = super()._architecture()
        if not isinstance(network, str) or network != "auto":
            return network, given
        if given:
            raise ValueError(
                f"network_params={dict(given)} are settings of one network, and network='auto' chooses it; "
                "name the network as well, such as network='resnet18'"
            )
        return self._choice.network, self._choice.params

    @property
    def _rate(self) -> float:
        return self._choice.lr if self.lr is None else float(self.lr)

    @property
    def budget(self) -> Budget:  # type: ignore[override]
        return self._choice.budget

    def _sizes(self, X: Any, y: Any) -> dict[str, Any]:
        height, width = size = self.form_.size
        sizes = {**super()._sizes(X, y), "in_channels": self.form_.channels}
        sizes["image_size"] = height if height == width else size
        return {**sizes, "stem": "cifar"} if max(size) < SMALL else sizes

    def _energy_of(self, net: nn.Module, X: Any, y: Any) -> Energy:
        whole = standardized(net, self.mean_, self.std_)
        k = len(self.classes_)
        _try(whole, self.form_, self._architecture()[0], k)
        return NetClassEnergy((self.form_.channels, *self.form_.size), k, whole)

    def _loss(self, energy: Energy) -> Rule:
        augment = preset(self.augment) if isinstance(self.augment, str) else self.augment
        return SoftMin() if augment is None else Augmented(SoftMin(), augment)

    def _score_of(self, rule: Rule) -> Score:
        return super()._score_of(SoftMin())  # of the pictures as they are

    @property
    def network_(self) -> nn.Module:
        net: Any = self.energy_.net
        return net[1]

    # --- answers -------------------------------------------------------------------------

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of the pictures whose label is right; a folder is read with its labels, its part
        ``test`` (else ``val``) where there is one.
        """
        if y is None and isinstance(X, str | Path):
            parts = read_images(X, size=self.form_.size)
            X = parts.get("test") or parts.get("val") or parts["train"]
        if isinstance(X, ImageSet):
            y = X.y if y is None else y
        return super().score(X, y, sample_weight)

    def explain(self, X: Any, label: Any = None, *, layer: Any = None) -> Any:
        r"""Where a picture shows its class: Grad-CAM,
        :math:`\mathrm{ReLU}(\sum_k w_kA_k)` of the maps :math:`A_k` of a layer.

        Parameters
        ----------
        X : pictures
        label : whose evidence is shown, one for all or for each; by default the predicted ones
        layer : module of ``network_``, or its name; by default the last one with 4 x 4 places or more

        Returns
        -------
        array (n, height, width), at least 0, in the size of the pictures
        """
        x, home = self._rows(X)
        if label is None:
            with torch.no_grad():
                index = self._best(x)
        else:
            labels = np.full(len(x), label) if np.ndim(label) == 0 else np.asarray(label)
            index = torch.from_numpy(self._encoded("y", labels))
        device = self.energy_.placement()[0]
        net = self.energy_.net
        assert isinstance(net, nn.Module)
        if isinstance(layer, str):
            layer = self.network_.get_submodule(layer)
        maps, at = [], 0
        for rows in pieces(x, device):
            where = layer if layer is not None else map_layer(net, rows[:1])
            own = index[at : at + len(rows)].to(device)
            maps.append(grad_cam(net, rows, own, where, upsample=True))
            at += len(rows)
        return home.give(torch.cat(maps))


def _try(net: nn.Module, form: Form, name: Any, k: int) -> None:
    """A network that cannot take pictures of this form says so before it learns."""
    net.eval()
    place = next((p for p in net.parameters()), torch.zeros(()))
    x = torch.zeros(1, form.channels, *form.size, device=place.device, dtype=place.dtype)
    called = name if isinstance(name, str) else type(name).__name__
    try:
        with torch.no_grad():
            found = tuple(net(x).shape)
    except (RuntimeError, ValueError) as error:
        raise ShapeError(
            f"network={called!r} does not take pictures of {form.channels} x {form.size[0]} x "
            f"{form.size[1]} ({str(error).splitlines()[0]}); use image_size= to resize them, or "
            "another network"
        ) from None
    if found != (1, k):
        raise ShapeError(
            f"network={called!r} gives scores of shape {found[1:]} for a picture of {k} classes; use "
            "a network with one score for each class"
        )

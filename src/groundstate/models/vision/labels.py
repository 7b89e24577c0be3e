"""Labels of pixels as class numbers and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.data.images.masks import IGNORED, check_pair
from groundstate.errors import DataError, ShapeError


def encoded_masks(
    y: Any, spatial: Sequence[int], n: int, ignore: int, known: NDArray[Any] | None = None
) -> tuple[Tensor, NDArray[Any]]:
    """Class numbers of pixels as bytes, ``(n, *spatial)``, 255 where a pixel does not count.

    Parameters
    ----------
    y : masks of whole numbers, or a list of them
    spatial, n : size and number of the pictures
    ignore : label of pixels that do not count
    known : the classes, or None to find them

    Returns
    -------
    labels : uint8 on the device of y
    classes : sorted labels

    Examples
    --------
    >>> encoded_masks(np.array([[[7, 3, 255]]]), (1, 3), 1, 255)
    (tensor([[[  1,   0, 255]]], dtype=torch.uint8), array([3, 7]))
    """
    labels = _stacked(y, spatial, n)
    counts = labels != ignore
    found = torch.unique(labels[counts])
    if found.is_floating_point():
        if not bool((found == found.round()).all()):
            raise DataError("masks hold whole numbers, one class each; got fractions")
        found, labels = found.long(), labels.long()
    values = found.cpu().numpy()
    classes = current().union(values) if known is None else known
    foreign = np.setdiff1d(values, classes)
    if len(foreign):
        raise ValueError(f"y holds labels not seen in fit: {foreign[:5].tolist()}")
    if known is None and len(classes) < 2:
        raise DataError(
            f"the masks hold one label alone, {classes.tolist()}, beside {ignore}, which is ignored; "
            "give each class a number of its own, such as 0 for the background and 1 (masks of 0 and "
            "255 by y // 255)"
        )
    if len(classes) > IGNORED:
        raise DataError(f"masks may hold {IGNORED} classes at most, got {len(classes)}")
    order = torch.as_tensor(classes, device=labels.device)
    index = torch.searchsorted(order, labels.to(order.dtype).contiguous())
    return torch.where(counts, index, IGNORED).to(torch.uint8), classes


def decoded_masks(index: Any, classes: NDArray[Any]) -> Any:
    """Labels by class numbers, of arrays, tensors and lists of them."""
    if isinstance(index, list):
        return [decoded_masks(one, classes) for one in index]
    if isinstance(index, Tensor):
        return torch.as_tensor(classes, device=index.device)[index.long()]
    return classes[index]


def _stacked(y: Any, spatial: Sequence[int], n: int) -> Tensor:
    if not isinstance(y, Tensor | np.ndarray):
        y = [
            one.detach().cpu().numpy() if isinstance(one, Tensor) else np.asarray(one) for one in y
        ]
        _same_number(len(y), n)
        for i, one in enumerate(y):
            check_pair(f"picture {i}", spatial, f"mask {i}", one.shape)
        y = np.stack(y) if y else np.zeros((0, *spatial), np.uint8)
    if isinstance(y, np.ndarray):
        if y.dtype.kind not in "biuf":
            raise DataError(f"masks hold whole numbers, one class each; got {y.dtype}")
        y = torch.from_numpy(np.ascontiguousarray(y))
    _same_number(len(y), n)
    if y.ndim == len(spatial) + 2 and y.shape[1] == 1:  # one channel of labels
        y = y[:, 0]
    if y.ndim != len(spatial) + 1:
        raise ShapeError(
            f"pictures of {' x '.join(map(str, spatial))} pixels need masks "
            f"({', '.join(map(str, (n, *spatial)))}), one label for each pixel; got y of shape "
            f"{tuple(y.shape)}"
        )
    check_pair("picture 0", spatial, "mask 0", tuple(y.shape[1:]))
    return y.to(torch.uint8) if y.dtype == torch.bool else y


def _same_number(masks: int, n: int) -> None:
    if masks != n:
        raise ShapeError(f"X has {n} pictures, y has {masks} masks; give one for each")

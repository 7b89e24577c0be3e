"""Several labels for each row."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from groundstate.models.arrays import Home
from groundstate.models.roles import EnergyClassifier


class JointLabels(EnergyClassifier):
    r"""A class of the energy is a combination of labels that occurs in the rows.

    The distribution of each label is the sum of the votes for it, whatever the other labels of the
    voters:
    :math:`p(y_j \mid x) = \sum_i s_i(x)\,[y_{ij} = y_j]`.

    Attributes
    ----------
    outputs_2d_ : bool, whether rows have several labels; ``classes_`` is then a list of arrays
    classes_ : (n_classes,) array, or a list of them for several labels
    outputs_2d_ : bool, whether there are several labels
    """

    _multi_output: ClassVar[bool] = True
    _store_private: ClassVar[tuple[str, ...]] = ("_joint",)
    outputs_2d_: bool
    _joint: NDArray[np.int64]  # (combinations, labels); empty for one label

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags

    def _target(self, y: Any) -> tuple[NDArray[Any], dict[str, Any]]:
        y = y.toarray() if issparse(y) else np.asarray(y)
        if y.ndim == 2 and y.shape[1] == 1:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected; use y.ravel()",
                DataConversionWarning,
                stacklevel=6,
            )
            y = y[:, 0]
        if y.ndim == 1:
            code, found = super()._target(y)
            return code, {**found, "outputs_2d_": False, "_joint": np.zeros((0, 0), np.int64)}
        check_classification_targets(y)
        parts = [np.unique(column, return_inverse=True) for column in y.T]
        table = np.column_stack([part[1] for part in parts])
        joint, code = np.unique(table, axis=0, return_inverse=True)
        attributes = {"classes_": [part[0] for part in parts], "outputs_2d_": True}
        return code.reshape(-1).astype(np.int64), {**attributes, "_joint": joint}

    def _resident_target(self, y: Any, X: Tensor) -> Any:
        found = super()._resident_target(y, X)
        one = {"outputs_2d_": False, "_joint": np.zeros((0, 0), np.int64)}
        return None if found is None else (found[0], {**found[1], **one})

    def _combinations(self) -> int:
        return len(self._joint) if self.outputs_2d_ else len(self.classes_)

    def _each_shares(self, x: Tensor) -> list[Tensor]:
        energy: Any = self.energy_
        labels = torch.from_numpy(self._joint).to(x.device)[energy.target]  # (n, labels)
        found = [energy.tally(x, labels[:, j], len(c)) for j, c in enumerate(self.classes_)]
        return [p.to(x.dtype) for p in found]

    def _encoded(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        if name != "y" or not self._many:
            return super()._encoded(name, values)
        columns = zip(self.classes_, np.atleast_2d(values).T, strict=True)
        codes = np.column_stack([
            np.where(np.isin(column, known), np.searchsorted(known, column), -1)
            for known, column in columns
        ])  # fmt: skip
        same = (codes[:, None] == self._joint).all(-1)  # (n, combinations)
        if not same.any(1).all():
            raise ValueError(
                "y holds a combination of labels not seen in fit: "
                f"{np.atleast_2d(values)[int(same.any(1).argmin())].tolist()}"
            )
        return np.asarray(same.argmax(1))

    def _decoded(self, name: str, values: Tensor, home: Home) -> Any:
        if name != "y" or not self._many:
            return super()._decoded(name, values, home)
        codes = self._joint[values.cpu().numpy()]
        labels = [known[codes[..., j]] for j, known in enumerate(self.classes_)]
        return home.give(np.stack(labels, -1))

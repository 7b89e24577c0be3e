"""What an estimator is for: classify, regress, cluster, encode, judge density."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, ClusterMixin, RegressorMixin
from sklearn.base import TransformerMixin as SklearnTransformerMixin
from sklearn.utils import Tags
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.compute.thread_policy import answering
from groundstate.errors import DataError
from groundstate.infer import energy_moments, minimise, posterior
from groundstate.infer import sample as draw
from groundstate.models.arrays import Home, unwrap
from groundstate.models.base import EnergyEstimator
from groundstate.models.resident import class_numbers, targets
from groundstate.models.validation import checked_count


def _is_calibrated(model: Any) -> bool:
    if not model._calibrated:
        raise AttributeError(f"the energies of {type(model).__name__} are no log probabilities")
    return True


def _has_one_label(model: Any) -> bool:
    if model._many:
        raise AttributeError("with several outputs there is no decision_function; use energies")
    return True


class EnergyClassifier(ClassifierMixin, EnergyEstimator):
    r"""Free discrete y: :math:`\hat y(x) = \arg\min_y e(x, y)`.

    Where the energies are calibrated, :math:`p(y\mid x) = \mathrm{softmax}(-e)`.

    Parameters
    ----------
    class_weight : dict, "balanced" or None

    Attributes
    ----------
    classes_ : (n_classes,) array of labels
    """

    _takes_target: ClassVar[bool] = True
    _single_class: ClassVar[bool] = False  # True where one class is a model too, if a dull one
    _calibrated: ClassVar[bool] = True  # False where a softmax of energies means nothing
    classes_: Any  # an array, or a list of arrays for several labels

    def _target(self, y: Any) -> tuple[NDArray[Any], dict[str, Any]]:
        plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iub"
        if not plain:
            check_classification_targets(y)
        classes, index = _classes_of_all(y)
        if plain and 2 * len(classes) > len(y):
            check_classification_targets(y)  # warns of labels that look like numbers
        if len(classes) < 2 and not self._single_class:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 classes in y, got one class: "
                f"{classes.tolist()[0]!r}"
            )
        return index.astype(np.int64), {"classes_": classes}

    def _resident_target(self, y: Any, X: Tensor) -> tuple[Tensor, dict[str, Any]] | None:
        found = class_numbers(y, len(X)) if current().world == 1 else None
        if found is None or len(found[1]) < 2:
            return None
        return found[0], {"classes_": found[1]}

    def _row_weight(self, y: Any, weight: NDArray[Any] | None) -> NDArray[Any] | None:
        balance = getattr(self, "class_weight", None)
        if balance is None:
            return weight
        assert y is not None
        y = unwrap(y)[0]
        if current().world > 1 and isinstance(balance, str) and balance == "balanced":
            counts = np.bincount(y, weight, len(self.classes_)).astype(np.float64)
            counts = current().sum(torch.from_numpy(counts)).numpy()
            per_class = counts.sum() / (len(counts) * counts)
        else:
            per_class = compute_class_weight(
                balance, classes=self.classes_, y=self.classes_[y], sample_weight=weight
            )
        return per_class[y] if weight is None else per_class[y].astype(weight.dtype) * weight

    def predict(self, X: Any) -> Any:
        """Labels of lowest energy, ``(n_samples,)``, or ``(n_samples, n_outputs)``."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            if self._many:
                best = torch.stack([p.argmax(1) for p in self._each_shares(x)], 1)
            else:
                best = self._best(x)
        return self._labels(best, home)

    def _labels(self, index: Tensor, home: Home) -> Any:
        """Labels of class numbers, on the caller's device where torch can hold them."""
        if self._many:
            at = index.cpu().numpy()
            return home.give(np.stack([c[at[..., o]] for o, c in enumerate(self.classes_)], -1))
        if home.device is None or self.classes_.dtype.kind not in "fiub":
            return home.give(self.classes_[index.cpu().numpy()])
        return torch.from_numpy(self.classes_).to(home.device)[index.to(home.device)]

    def _class_table(self, x: Tensor) -> Tensor:
        """Energies of all classes, ``(B, K)``."""
        return self.energy_.table("y", x=x)

    def _best(self, x: Tensor) -> Tensor:
        """Class numbers of lowest energy, ``(B,)``."""
        return self._class_table(x).argmin(1)

    def _shares(self, x: Tensor) -> Tensor:
        """Class probabilities, ``(B, K)``."""
        return torch.softmax(-self._class_table(x), 1)

    def _log_shares(self, x: Tensor) -> Tensor:
        """Logarithms of the class probabilities, ``(B, K)``."""
        return torch.log_softmax(-self._class_table(x), 1)

    def _each_shares(self, x: Tensor) -> list[Tensor]:
        """Probabilities of each of several labels, ``(B, K_o)``."""
        raise TypeError(f"{type(self).__name__} has one label for each row")

    @property
    def _many(self) -> bool:
        """Whether a row has several labels; ``classes_`` is then a list of arrays."""
        return isinstance(getattr(self, "classes_", None), list)

    def energies(self, X: Any) -> Any:
        """Energies of all classes, ``(n_samples, n_classes)``; the lowest is predicted."""
        if self._many:
            return [-log_p for log_p in self.predict_log_proba(X)]
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return home.give(self._class_table(x))

    @available_if(_has_one_label)
    def decision_function(self, X: Any) -> Any:
        """Scores −e, ``(n_samples, n_classes)``; for two classes their difference, ``(n_samples,)``."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            score = -self._class_table(x)
        return home.give(score[:, 1] - score[:, 0] if score.shape[1] == 2 else score)

    @available_if(_is_calibrated)
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, ``(n_samples, n_classes)``; a list of them for several labels."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            if self._many:
                return [home.give(p) for p in self._each_shares(x)]
            return home.give(self._shares(x))

    @available_if(_is_calibrated)
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the class probabilities, in the shape of ``predict_proba``."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            if self._many:
                return [home.give(p.log()) for p in self._each_shares(x)]
            return home.give(self._log_shares(x))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Fraction of rows whose label is right; with several labels, all of its labels."""
        if not self._many:
            return float(super().score(X, y, sample_weight))
        right = (np.asarray(self.predict(X)) == np.asarray(y)).all(axis=1)
        return float(np.average(right, weights=sample_weight))

    def _encoded(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        if name != "y":
            return values
        if self._many:
            columns = zip(self.classes_, np.asarray(values).T, strict=True)
            return np.stack(
                [_numbers(*one, f"output {o} of y") for o, one in enumerate(columns)], 1
            )
        return _numbers(self.classes_, values, "y")

    def _decoded(self, name: str, values: Tensor, home: Home) -> Any:
        return home.give(values) if name != "y" else self._labels(values, home)


def _classes_of_all(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The sorted labels of all processes' rows, and the number of each own one."""
    reduce = current()
    if reduce.world == 1:
        return np.unique(y, return_inverse=True)
    classes = reduce.union(y)
    return classes, np.searchsorted(classes, y)


def _numbers(classes: NDArray[Any], labels: NDArray[Any], name: str) -> NDArray[Any]:
    unknown = np.setdiff1d(labels, classes)
    if len(unknown):
        raise ValueError(f"{name} holds labels not seen in fit: {unknown[:5].tolist()}")
    return np.searchsorted(classes, labels)


class EnergyRegressor(RegressorMixin, EnergyEstimator):
    r"""Free real y: :math:`\hat y(x) = \arg\min_y e(x, y)`."""

    _takes_target: ClassVar[bool] = True
    _multi_output: ClassVar[bool] = True
    _store_private: ClassVar[tuple[str, ...]] = ("_flat_target", "_column_target")
    _column_is_flat: ClassVar[bool] = False  # whether y of shape (n, 1) is one flat target
    _column_target: bool = False  # and whether it was given
    _flat_target: bool

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = self._multi_output
        return tags

    def _target(self, y: Any) -> tuple[NDArray[Any], dict[str, Any]]:
        y = np.asarray(y)
        if y.dtype.kind not in "fiub":
            y = y.astype(np.float64)
        y = y.astype(np.float64, copy=False)
        flat = y.ndim == 1
        return (y[:, None] if flat else y), self._shape_of(y, flat)

    def _shape_of(self, y: Any, flat: bool) -> dict[str, Any]:
        if not self._column_is_flat:
            return {"_flat_target": flat}
        column = not flat and y.shape[1] == 1
        return {"_flat_target": flat or column, "_column_target": column}

    def _resident_target(self, y: Any, X: Tensor) -> tuple[Tensor, dict[str, Any]] | None:
        found = targets(y, X)
        return None if found is None else (found[0], self._shape_of(*found))

    def predict(self, X: Any) -> Any:
        """Values of lowest energy, ``(n_samples,)`` or ``(n_samples, n_targets)``."""
        x, home = self._rows(X)
        argmin = self.energy_.ability("argmin", "y")  # its energy is not asked for
        with answering(self.energy_, x):
            y = minimise(self.energy_, "y", {"x": x})["y"] if argmin is None else argmin(x=x)
        return home.give(y[:, 0] if self._flat_target else y)

    def _decoded(self, name: str, values: Tensor, home: Home) -> Any:
        if name == "y" and self._flat_target:
            values = values[..., 0]
        return home.give(values)


def _free_energy(self: Any, X: Any, T: float = 1.0) -> Any:
    r""":math:`-T\log\int e^{-e(x, z)/T}\,dz` of each row, ``(n_samples,)``: at T = 1 ``energy(X)``."""
    if T == 1.0:
        return self.energy(X)
    x, home = self._rows(X)
    if x.layout == torch.strided and bool(torch.isnan(x).any()):
        raise DataError("free energies at another temperature than 1 need every value of X")
    hidden = [name for name in self.energy_.spaces if name != "x"]
    with answering(self.energy_, x):
        e = self.energy_.marginal(*hidden, T=T)(x=x) if hidden else self.energy_(x=x)
    return home.give(e)


class EnergyClusterer(ClusterMixin, EnergyEstimator):
    r"""Free discrete z: :math:`\hat z(x) = \arg\min_z e(x, z)`."""

    energy_: Any
    free_energy = _free_energy

    def predict(self, X: Any) -> Any:
        """Index of the cluster of lowest energy, ``(n_samples,)``."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return home.give(self.energy_.table("z", x=x).argmin(1))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn, then the cluster of each row."""
        return self.fit(X, sample_weight=sample_weight).predict(X)


class EnergyTransformer(SklearnTransformerMixin, EnergyEstimator):
    r"""Free z as a code: the mean of :math:`p(z \mid x)`."""

    energy_: Any
    free_energy = _free_energy

    def transform(self, X: Any) -> Any:
        """Codes, ``(n_samples, n_components)``."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return home.give(posterior(self.energy_, "z", {"x": x}).mean)


def _has_hidden(estimator: Any) -> bool:
    check_is_fitted(estimator, "energy_")
    space = estimator.energy_.spaces.get("z")
    if space is None or not space.is_finite:
        raise AttributeError(f"{type(estimator).__name__} has no hidden z that can be listed")
    return True


def _can_sample(estimator: Any) -> bool:
    check_is_fitted(estimator, "energy_")
    return "x" in estimator.energy_.spaces


class DensityMixin:
    r"""Free x: :math:`\log p(x) = -F(x) - \log Z` and draws of x."""

    energy_: Any
    _rows: Any
    _decoded: Any

    def _log_density(self, x: Tensor) -> Tensor:
        hidden = [name for name in self.energy_.spaces if name != "x"]
        free_energy = self.energy_.marginal(*hidden)(x=x) if hidden else self.energy_(x=x)
        if self.energy_.normalised >= set(self.energy_.spaces):
            return -free_energy
        from groundstate.infer import log_partition

        return -free_energy - log_partition(self.energy_, tuple(self.energy_.spaces))

    def score_samples(self, X: Any) -> Any:
        """Log density of each row, ``(n_samples,)``."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return home.give(self._log_density(x))

    @available_if(_has_hidden)
    def energy_variance(self, X: Any) -> Any:
        r""":math:`\operatorname{Var}_{z \sim p(z)}e(x, z)` of each row, ``(n_samples,)``: how much the
        hypotheses z disagree about x. It vanishes where they agree, as on a border between two."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            volume = self.energy_.ability("log_partition", "x")
            z = self.energy_.spaces["z"].enumerate(x.device, x.dtype)
            logits = x.new_zeros(len(z)) if volume is None else volume(z=z)
            prior = torch.softmax(logits, 0)
            return home.give(energy_moments(self.energy_, "z", {"x": x}, weights=prior).variance)

    @available_if(_has_hidden)
    def posterior_entropy(self, X: Any) -> Any:
        r"""Entropy of :math:`p(z \mid x)` of each row in nats, ``(n_samples,)``: which z is it?"""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            p = torch.softmax(-self.energy_.table("z", x=x), 1)
            return home.give(torch.special.entr(p).sum(1))

    @available_if(_can_sample)
    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draw rows from the learned distribution, ``(n_samples, n_features)``."""
        check_is_fitted(self, "energy_")
        generator = Key.of(random_state).torch(self.energy_.placement()[0])
        free = tuple(self.energy_.spaces)
        draws = draw(self.energy_, free, n=checked_count(n_samples), generator=generator)
        return self._decoded("x", draws["x"][:, 0], Home())

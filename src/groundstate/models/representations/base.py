"""Embeddings by a network: tables and pictures in, codes out."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import Tags
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.networks.embedding import EmbeddingEnergy
from groundstate.errors import ShapeError
from groundstate.learn import L2
from groundstate.learn.base import Rule
from groundstate.learn.solvers.networks.estimator import NetworkTraining
from groundstate.learn.train.optimizers import OPTIMIZERS
from groundstate.models import settings
from groundstate.models.arrays import Home
from groundstate.models.base import EnergyEstimator, Plan
from groundstate.models.generative.coding import Coding
from groundstate.models.generative.shapes import flattened
from groundstate.models.networks.seeds import init_key
from groundstate.models.roles import EnergyTransformer
from groundstate.models.rows.making import make_network
from groundstate.models.rows.network import RowNetwork
from groundstate.models.traits import Traits
from groundstate.nn.blocks.mlp import MLP


class EmbeddingNetwork(ClassNamePrefixFeaturesOutMixin, RowNetwork, EnergyTransformer):
    r"""Base of embeddings :math:`z = f_\theta(x)` of rows of a table or of pictures.

    Parameters
    ----------
    encoder : None, str, module or function
        f: None is a dense network of ``hidden_layer_sizes`` for tables and a small convolutional one for
        pictures; else a name of an architecture of pictures, a module from rows as they are (``(B, d)`` or
        ``(B, C, H, W)``) to ``(B, n_components)``, or what makes one.
    n_components : int
        Numbers of a code.
    hidden_layer_sizes : sequence of int
        Of the dense encoder.
    learning_rate_init : float
    batch_size : int
        Rows (units of weight) of a step: those a row is held against.
    max_iter : int
        Epochs.
    alpha : float
        Strength of the penalty :math:`\tfrac\alpha2\|W\|^2` beside the mean loss.

    Attributes
    ----------
    event_shape_ : tuple
        Shape of one row: ``(d,)``, ``(H, W)`` or ``(C, H, W)``.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "encoder": [str, nn.Module, callable, None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions(set(OPTIMIZERS)), callable],
        "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    traits = Traits(
        program=None,
        steps="max_iter",
        space={"learning_rate_init": settings.Real(1e-4, 1e-2, log=True)},
    )
    rows: ClassVar[str] = "table"
    _store_private: ClassVar[tuple[str, ...]] = ("_moments", "_epochs", "_code_size")
    encoder: Any
    n_components: int
    hidden_layer_sizes: Any
    solver: Any
    learning_rate_init: float
    max_iter: int
    alpha: float
    warm_start: bool = False
    schedule: Any = None
    clip_norm: float | None = None
    precision: str = "auto"
    compile: bool | str = False
    network: Any = None
    network_params: dict[str, Any] | None = None
    coding_: Coding
    event_shape_: tuple[int, ...]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters."""
        found: dict[str, Any] = EnergyEstimator.get_params(self, deep)
        return found

    def _min_rows(self) -> int:
        return 2

    # --- the engine's words for scikit-learn's --------------------------------------------

    @property
    def max_epochs(self) -> int:  # type: ignore[override]
        return self.max_iter

    @property
    def lr(self) -> float:  # type: ignore[override]
        return self.learning_rate_init

    @property
    def optimizer(self) -> Any:
        return self.solver

    @property
    def weight_decay(self) -> float:  # type: ignore[override]
        return self.alpha

    val_fraction = 0.0
    patience = None

    # --- rows ----------------------------------------------------------------------------

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        flat, shapes = flattened(X)
        goes_on = (self.warm_start or self._partial) and hasattr(self, "energy_")
        before = self.n_features_in_ if goes_on else None
        rows, labels, attributes = super()._checked(flat, y)
        if before is not None and rows.shape[1] != before:
            self.n_features_in_ = before
            raise ValueError(
                f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting {before} "
                "features as input; use warm_start=False for other data"
            )
        if len(rows) < 2:
            raise ValueError(
                f"{type(self).__name__} contrasts rows with each other and needs at least 2, got "
                f"n_samples = {len(rows)}"
            )
        return rows, labels, {**attributes, "event_shape_": shapes.closed(rows.shape[1]).event}

    def _rows(self, X: Any) -> tuple[Tensor, Home]:
        flat, shapes = flattened(X)
        if shapes.event and shapes.event != getattr(self, "event_shape_", shapes.event):
            raise ShapeError(
                f"{type(self).__name__} was fitted to rows of shape {self.event_shape_}, got "
                f"{shapes.event}"
            )
        x, home = EnergyEstimator._rows(self, flat)
        return self.coding_.encode(x), home

    def _prepared(self, X: Any) -> Any:
        return self.coding_.encode(X)

    # --- learning ------------------------------------------------------------------------

    @property
    def _picture(self) -> tuple[int, ...]:
        """Shape that the encoder takes: pictures have channels."""
        shape = self.event_shape_
        return (1, *shape) if len(shape) == 2 else shape

    def _encoder(self) -> nn.Module:
        """f from flat rows ``(B, d)``."""
        key, shape = init_key(self.random_state).fold("init"), self._picture
        if self.encoder is None and len(shape) == 1:
            sizes = self.hidden_layer_sizes
            hidden = (int(sizes),) if isinstance(sizes, Integral) else tuple(int(n) for n in sizes)
            return MLP(shape[0], hidden, self.n_components, "relu", generator=key.torch())
        given: dict[str, Any] = {}
        network = self.encoder
        if network is None:
            network, given = "cnn", {"channels": (32, 64), "head": "flatten"}
        sides = {} if len(shape) == 1 else {"in_channels": shape[0], "image_size": shape[1:]}
        sizes = {
            "num_classes": self.n_components, "out_features": self.n_components,
            "in_features": math.prod(shape), **sides,
        }  # fmt: skip
        net = make_network(network, sizes, given, "image", key)
        return net if len(shape) == 1 else nn.Sequential(nn.Unflatten(1, shape), net)

    def _made_energy(self, d: int, k: int, net: nn.Module) -> Energy:
        return EmbeddingEnergy(d, k, net)

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        goes_on = (self.warm_start or self._partial) and hasattr(self, "energy_")
        if goes_on:
            energy: Any = self.energy_
        else:
            pooled = len(self.event_shape_) > 1
            self.coding_ = Coding.learned(
                X, {}, code="levels", scale="standard", pooled=pooled, weight=weight
            )
            net = self._encoder()
            self._code_size = self._width(net, X[:2])
            energy = self._made_energy(X.shape[1], self._code_size, net)
            self._moments, self._epochs = None, 0
        energy.eval()
        rows = self._prepared(X)
        total = float(len(X)) if weight is None else math.fsum(weight.tolist())
        rule = self._loss(energy)
        rule.to(rows.device)
        decoupled = self.solver == "adamw" or callable(self.solver)
        penalty = None if decoupled or not self.alpha else L2(self.alpha * total)
        data = {"x": rows} if y is None else {"x": rows, "y": y}
        return Plan(energy, rule, self._training(rule, total), penalty, data)

    def _training(self, rule: Rule, total: float) -> NetworkTraining:
        return replace(super()._training(rule, total), patience=math.inf)

    @torch.no_grad()
    def _width(self, net: nn.Module, x: Tensor) -> int:
        """Numbers of a code, tried out."""
        place = next(net.parameters(), torch.zeros(()))
        net.eval()
        found = tuple(net(torch.zeros(2, x.shape[1], dtype=place.dtype)).shape)
        if len(found) != 2 or found[0] != 2:
            raise ShapeError(f"the encoder must give (B, k) codes, got {found} for two rows")
        return found[1]

    # --- answers -------------------------------------------------------------------------

    @property
    def network_(self) -> nn.Module:
        net: Any = self.energy_.net
        return net

    @property
    def _n_features_out(self) -> int:
        return self._code_size

    _code_size: int

    def _codes(self, x: Tensor, projected: bool = False) -> Tensor:
        energy: Any = self.energy_
        ask = energy.project if projected else energy.embed
        with answering(self.energy_, x):
            return self._in_chunks(ask, x, 1024)

    def transform(self, X: Any) -> Any:
        """Codes of the rows, ``(n_samples, n_components)``."""
        x, home = self._rows(X)
        return home.give(self._codes(x))

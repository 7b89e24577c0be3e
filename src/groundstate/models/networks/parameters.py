"""What the parameters of estimators around a network may be."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from torch import nn

from groundstate.compute.foreign.sklearn import Interval, Options, StrOptions
from groundstate.learn.train.precision import PRECISIONS
from groundstate.nn.blocks.mlp import ACTIVATIONS

CONSTRAINTS: dict[str, Any] = {
    "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
    "activation": [StrOptions({"logistic", *ACTIVATIONS})],
    "dropout": [Interval(Real, 0, 1, closed="left")],
    "module": [nn.Module, callable, None],
    "module_params": [Mapping, None],
    "input_shape": ["array-like", None],
    "clip_norm": [Interval(Real, 0, None, closed="neither"), None],
    "schedule": "no_validation",
    "precision": [StrOptions(set(PRECISIONS))],
    "compile": ["boolean", str],
    "solver": [StrOptions({"lbfgs", "sgd", "adam"})],
    "alpha": [Interval(Real, 0, None, closed="left")],
    "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    "learning_rate": [StrOptions({"constant", "invscaling", "adaptive"})],
    "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
    "power_t": [Interval(Real, 0, None, closed="left")],
    "shuffle": ["boolean"],
    "random_state": "no_validation",
    "momentum": [Interval(Real, 0, 1, closed="both")],
    "nesterovs_momentum": ["boolean"],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="left")],
    "beta_1": [Interval(Real, 0, 1, closed="left")],
    "beta_2": [Interval(Real, 0, 1, closed="left")],
    "epsilon": [Interval(Real, 0, None, closed="neither")],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), Options(Real, {np.inf})],
    "max_fun": [Interval(Integral, 1, None, closed="left")],
    "loss": "no_validation",
}

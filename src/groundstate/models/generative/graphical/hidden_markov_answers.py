"""What a hidden Markov model answers: likelihoods, paths, smoothing, draws, missing steps."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.rows import Ragged, to_device
from groundstate.energy.graphical.emissions import CategoricalEmission
from groundstate.errors import DataError
from groundstate.models.arrays import Home
from groundstate.models.base import EnergyEstimator
from groundstate.models.generative.graphical.sequences_in import SequenceForm, read


class HiddenMarkovAnswers(EnergyEstimator):
    """Answers of a fitted chain of hidden states, in the form in which sequences come."""

    emission: str

    def _sequences(self, X: Any, lengths: Any) -> tuple[Ragged, SequenceForm, Any]:
        check_is_fitted(self, "energy_")
        rows, form = read(X, lengths)
        if rows.values.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has steps of {rows.values.shape[1]} features, but HiddenMarkovModel is expecting "
                f"{self.n_features_in_} features as input"
            )
        energy: Any = self.energy_
        if self.emission == "categorical":
            check_symbols(rows, energy.emission.symbols)
        device, dtype = energy.placement()
        moved = to_device(rows.floating(dtype), device)
        assert isinstance(moved, Ragged)
        return moved, form, energy

    def _rows(self, X: Any) -> tuple[Any, Home]:
        rows, form, _ = self._sequences(X, None)
        return rows, form.home

    def score_samples(self, X: Any, lengths: Any = None) -> Any:
        """Log-likelihood of each sequence in nats, ``(n_sequences,)``."""
        rows, form, energy = self._sequences(X, lengths)
        with torch.no_grad():
            return form.home.give(-energy(x=rows))

    def score(self, X: Any, lengths: Any = None) -> float:
        """Mean log-likelihood of a sequence."""
        return float(np.mean(np.asarray(torch.as_tensor(self.score_samples(X, lengths)).cpu())))

    def energy(self, X: Any, y: Any = None, z: Any = None, *, lengths: Any = None) -> Any:
        """Free energy of each sequence, or with states z its energy together with them."""
        rows, form, energy = self._sequences(X, lengths)
        with torch.no_grad():
            if z is None:
                return form.home.give(energy(x=rows))
            states = torch.as_tensor(np.concatenate([np.ravel(s) for s in z])
                                     if isinstance(z, list) else np.ravel(z))  # fmt: skip
            chain = energy.chain(rows)
            padded = rows.like(states.to(rows.device).long()).padded()
            return form.home.give(chain.factors.energy(padded.long()))

    def _inside(self, rows: Ragged, padded: Tensor) -> Ragged:
        if len(rows.values) == padded.shape[0] * padded.shape[1]:
            return rows.like(padded.flatten(0, 1))
        at = torch.arange(padded.shape[1], device=padded.device) < rows.lengths[:, None]
        return rows.like(padded[at])

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """States along the most probable path (Viterbi), one for each step."""
        rows, form, energy = self._sequences(X, lengths)
        with torch.no_grad():
            return form.give(self._inside(rows, energy.chain(rows).mode))

    def decode(self, X: Any, lengths: Any = None) -> tuple[Any, Any]:
        """Log probability of each sequence with its best path, and the states of that path."""
        rows, form, energy = self._sequences(X, lengths)
        with torch.no_grad():
            chain = energy.chain(rows)
            path = chain.mode
            return form.home.give(-chain.factors.energy(path)), form.give(self._inside(rows, path))

    def predict_proba(self, X: Any, lengths: Any = None) -> Any:
        r"""Smoothing, :math:`p(z_t \mid x_1, \dots, x_T)`: probabilities ``(n_components,)`` of each step."""
        rows, form, energy = self._sequences(X, lengths)
        with torch.no_grad():
            return form.give(self._inside(rows, energy.chain(rows).marginals))

    smooth = predict_proba

    def filter(self, X: Any, lengths: Any = None) -> Any:
        r"""Filtering, :math:`p(z_t \mid x_1, \dots, x_t)`: what is known of a state at its time."""
        rows, form, energy = self._sequences(X, lengths)
        return form.give(energy.filtered(rows))

    def sample(
        self,
        n_samples: int = 1,
        length: int = 100,
        *,
        T: float = 1.0,
        return_latent: bool = False,
        random_state: Any = None,
    ) -> Any:
        """Draw sequences ``(n_samples, length, d)``, and with ``return_latent`` their states too."""
        check_is_fitted(self, "energy_")
        if n_samples < 1 or length < 1:
            raise ValueError(
                f"n_samples and length must be at least 1, got {n_samples} and {length}"
            )
        energy: Any = self.energy_
        generator = Key.of(random_state).torch(energy.start.device)
        x, z = energy.draw_sequences(n_samples, length, T=T, generator=generator)
        found = Home().give(x)
        return (found, Home().give(z)) if return_latent else found

    def impute(
        self,
        X: Any,
        how: Literal["mean", "minimise", "sample"] = "mean",
        *,
        lengths: Any = None,
        random_state: Any = None,
    ) -> Any:
        """Fill in steps that are NaN; the others stay as they are.

        Parameters
        ----------
        how : "mean" over the smoothed states (of symbols the most probable), "minimise" (what the best
            path emits), or a "sample" of path and emissions
        """
        rows, form, energy = self._sequences(X, lengths)
        gone = torch.isnan(rows.values).all(1)
        emission = energy.emission
        generator = Key.of(random_state).torch(rows.device)
        with torch.no_grad():
            chain = energy.chain(rows)
            if how == "mean":
                p = self._inside(rows, chain.marginals).values
                found = _emitted_mean(emission, p)
            elif how == "minimise":
                z = self._inside(rows, chain.mode).values
                found = _emitted_mean(
                    emission, torch.nn.functional.one_hot(z, energy.k).to(rows.values)
                )
            elif how == "sample":
                z = self._inside(rows, chain.sample((), generator)).values
                found = emission.draw(z, generator)
            else:
                raise ValueError(f"how must be 'mean', 'minimise' or 'sample', got {how!r}")
        return form.give(rows.like(torch.where(gone[:, None], found.to(rows.values), rows.values)))

    def infer(
        self,
        observed: Any,
        free: Any = "z",
        mode: Literal["min", "marginal", "sample"] = "min",
        *,
        n: int = 1,
        T: float = 1.0,
        random_state: Any = None,
    ) -> Any:
        """States of observed sequences: the best path, the free energy, or n draws of paths."""
        names = (free,) if isinstance(free, str) else tuple(free)
        if names == ("x",):
            how: Any = {"min": "minimise", "sample": "sample"}.get(mode)
            if how is None or "x" not in observed:
                raise ValueError(
                    "x is free where it is NaN: infer({'x': X}, 'x', 'min' or 'sample')"
                )
            return self.impute(observed["x"], how, random_state=random_state)
        if names != ("z",) or "x" not in observed:
            raise ValueError(f"observe x and ask for z (or the NaN of x), got free={free!r}")
        if mode == "min":
            return self.predict(observed["x"])
        if mode == "marginal":
            return self.energy(observed["x"])
        rows, form, energy = self._sequences(observed["x"], None)
        generator = Key.of(random_state).torch(rows.device)
        with torch.no_grad():
            drawn = energy.chain(rows).sample((n,), generator)
        return [form.give(self._inside(rows, path)) for path in drawn]


def _emitted_mean(emission: Any, p: Tensor) -> Tensor:
    """Mean step, or most probable symbol, under probabilities of the states ``(M, K)``."""
    if isinstance(emission, CategoricalEmission):
        return (p @ emission.log_probabilities().exp()).argmax(1, keepdim=True).to(p)
    mu = emission.gaussians.mu.view(emission.k, emission.m, -1)
    mean = (emission.log_weights().exp()[:, :, None] * mu).sum(1)
    found: Tensor = p @ mean
    return found


def check_symbols(rows: Ragged, symbols: int | None) -> None:
    v = rows.values
    if v.shape[1] != 1:
        raise DataError(f"symbols come in one column, got steps of {v.shape[1]} features")
    known = v[~torch.isnan(v)]
    bad = known[(known < 0) | (known != known.round())]
    if len(bad):
        raise DataError(f"symbols are whole numbers 0, 1, 2, ..., got {float(bad[0]):g}")
    if symbols is not None and len(known) and int(known.max()) >= symbols:
        raise DataError(
            f"X holds the symbol {int(known.max())}, but there are {symbols}: 0..{symbols - 1}"
        )

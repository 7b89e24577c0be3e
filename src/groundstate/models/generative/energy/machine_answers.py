"""What a restricted Boltzmann machine answers."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.nn.functional import softplus

from groundstate.compute.random import Key, mix64
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.energy import BilinearEnergy, RestrictedEnergy
from groundstate.errors import DataError, Unsupported
from groundstate.infer.sampling.annealed_layers import LogPartition, annealed_log_partition
from groundstate.math.distributions.bernoulli_layer_numba import gibbs_sweep
from groundstate.math.distributions.operations import draw
from groundstate.models.generative.energy import sweeps
from groundstate.models.generative.latent import LatentCode
from groundstate.models.learned import Learned


class MachineAnswers(LatentCode):
    """Codes, sweeps, densities, draws, completions and classes of a fitted machine."""

    base_: NDArray[Any]
    burn_in: int
    random_state: Any

    components_ = Learned(lambda model: model.energy_.W.T)
    intercept_hidden_ = Learned(lambda model: model.energy_.c)
    intercept_visible_ = Learned(lambda model: model.energy_.b)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    @property
    def _machine(self) -> sweeps.Machine:
        check_is_fitted(self, "energy_")
        assert isinstance(self.energy_, BilinearEnergy | RestrictedEnergy)
        return self.energy_

    def _encode(self, x: Tensor, y: Tensor | None) -> Tensor:
        return torch.sigmoid(sweeps.up(self._machine, x, y))

    def _decode(self, z: Tensor, y: Tensor | None) -> Tensor:
        energy = self._machine
        return sweeps.columns(energy, sweeps.expected(energy, sweeps.down(energy, z, y)))

    def gibbs(self, v: Any, random_state: Any = None) -> Any:
        """One sweep of Gibbs sampling, hidden then visible, ``(n_samples, n_features)``; bits as bool."""
        x, home = self._rows(v)
        energy = self._machine
        key = Key.of(self.random_state if random_state is None else random_state).fold("gibbs")
        plain = isinstance(energy, BilinearEnergy)
        if plain and x.device.type == "cpu" and x.dtype == torch.float32:
            bits = gibbs_sweep(x, energy.W, energy.b, energy.c, (key.high, key.low))
            return home.give(bits)
        with torch.no_grad():
            new, _ = sweeps.sweep(energy, x, None, 1.0, key.torch(x.device))
        return home.give(new > 0) if plain else home.give(self.coding_.decode(new))

    @property
    def _is_listed(self) -> bool:
        return self._machine.ability("log_partition", "x", "z") is not None

    @property
    def log_prob_kind(self) -> str:
        return "exact" if self._is_listed else "estimate"

    def log_partition(
        self, y: Any = None, *, n: int = 100, n_temps: int = 1000, random_state: Any = 0
    ) -> LogPartition:
        """log Z by annealing from independent columns with the data's rates, forward and back.

        Parameters
        ----------
        y : one label or value, of a model fitted with y
        n : runs in each direction
        n_temps : steps of the path
        random_state : the seed

        Returns
        -------
        LogPartition : estimate, standard error, and stochastic bounds from below and above
        """
        context = self._contexts(y, 1)
        return self._annealed(context, n, n_temps, Key.of(random_state).fold("ais"))

    def _annealed(self, y: Tensor | None, n: int, n_temps: int, key: Key) -> LogPartition:
        device, dtype = self._machine.placement()
        base = torch.from_numpy(self.base_).to(device, dtype)
        return annealed_log_partition(
            self._machine, base, y=y, n=n, n_temps=n_temps, generator=key.torch(device)
        )

    def _log_z(self, y: Tensor | None) -> Tensor:
        """log Z, ``(1,)`` or one for every y: a sum where a layer can be listed, else annealed."""
        energy: Any = self._machine
        if self._is_listed:
            total: Tensor = energy.total() if y is None else energy.total(y)
            return total
        at = {} if y is None else {"y": y}
        mark = tuple((p.data_ptr(), p._version) for p in energy.parameters())
        if getattr(self, "_annealed_at", None) != mark:
            self._annealed_at, self._annealed_z = mark, {}
        if not at:
            rows, index = [None], torch.zeros(1, dtype=torch.int64)
        else:
            unique, index = torch.unique(at["y"], dim=0, return_inverse=True)
            rows = list(unique.split(1))
        found = []
        for row in rows:
            name = () if row is None else tuple(row.reshape(-1).tolist())
            if name not in self._annealed_z:
                self._annealed_z[name] = self._annealed(row, 100, 1000, Key.of(0).fold("ais")).value
            found.append(self._annealed_z[name])
        device, dtype = energy.placement()
        return torch.tensor(found, device=device, dtype=dtype)[index.to(device)]

    _annealed_z: dict[tuple[float, ...], float]

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        energy: Any = self._machine
        free = energy.over_z(x) if y is None else energy.over_z(x, y)
        log_p: Tensor = free - self._log_z(y)
        return log_p

    def _energies(self, x: Tensor, y: Tensor | None, z: Tensor | None) -> Tensor:
        energy: Any = self._machine
        given = {} if y is None else {"y": y}
        found: Tensor = -energy.over_z(x, **given) if z is None else energy(x=x, z=z, **given)
        return found

    def pseudo_score_samples(self, X: Any) -> Any:
        r"""Pseudo-log-likelihood of each row of bits, ``(n_samples,)``: scikit-learn's ``score_samples``.

        :math:`d\log\sigma(F(\tilde x) - F(x))` with one bit of :math:`\tilde x` flipped; which bit
        follows from the content of the row and ``random_state`` (0 if that is not an integer).
        """
        x, home = self._rows(X)
        energy = self._machine
        if not isinstance(energy, BilinearEnergy):
            raise Unsupported(
                "the pseudo-likelihood flips a bit, so it is for columns of bits alone"
            )
        d = x.shape[1]
        seed = self.random_state if isinstance(self.random_state, Integral) else 0
        word = np.uint64(Key.of(seed).fold("flip").low)
        bit = mix64(row_hash(x) ^ word) % np.uint64(d)
        index = torch.from_numpy(bit.astype(np.int64)).to(x.device)[:, None]
        with torch.no_grad():
            flipped = x.scatter(1, index, 1 - x.gather(1, index))
            gap = energy.over_z(x) - energy.over_z(flipped)  # F(x̃) − F(x)
            return home.give(-d * softplus(-gap))

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        energy = self._machine
        base = torch.from_numpy(self.base_).to(energy.W)
        start = draw(energy.visible(base.expand(n, -1)), 1, generator)[0]
        return sweeps.drawn(energy, start, y, T, self.burn_in, generator)

    def _start(self, x: Tensor, unknown: Tensor, generator: torch.Generator) -> Tensor:
        base = torch.from_numpy(self.base_).to(x)
        fresh = draw(self._machine.visible(base.expand(len(x), -1)), 1, generator)[0]
        return torch.where(unknown, fresh, x)

    def _fill(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, how: str, generator: torch.Generator
    ) -> Tensor:
        start = self._start(x, unknown, generator)
        return sweeps.clamped(self._machine, start, unknown, y, how, self.burn_in, generator)

    def _fill_mean(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, generator: torch.Generator
    ) -> Tensor:
        return self._fill(x, unknown, y, "mean", generator)

    def classify_proba(self, X: Any, column: int = -1, y: Any = None) -> Any:
        r"""Probabilities of the values of one column given all others, ``(n_samples, K)``.

        :math:`p(x_j = k \mid x_{-j}) \propto e^{-F(x_j = k,\,x_{-j})}`, exact without Z; what X holds in
        that column does not matter. A machine that was fitted to rows with their label as one more
        column of categories so classifies.

        Parameters
        ----------
        X : rows
        column : the column asked for, of bits or categories
        """
        raw, home = self._raw(X, allow_nan=True)
        j = range(raw.shape[1])[column]
        energy: Any = self._machine
        levels = (2,) * raw.shape[1] if isinstance(energy, BilinearEnergy) else energy.levels
        if levels[j] == 0:
            raise ValueError(f"column {j} is real; its mean is what impute gives")
        raw = raw.clone()
        raw[:, j] = 0.0
        if bool(torch.isnan(raw).any()):
            raise DataError("all columns but the one asked for must be known; use impute otherwise")
        x, c = self.coding_.encode(raw), self._contexts(y, len(raw))
        given = {} if c is None else {"y": c}
        logits = []
        with torch.no_grad():
            for k in range(levels[j]):
                own = x.clone()
                own[:, j] = k
                logits.append(energy.over_z(own, **given))
        return home.give(torch.softmax(torch.stack(logits, 1), 1))

    def classify(self, X: Any, column: int = -1, y: Any = None) -> Any:
        """The most probable value of one column given all others, ``(n_samples,)``: see
        ``classify_proba``."""
        p = np.asarray(self.classify_proba(X, column, y))
        best = p.argmax(1)
        names = getattr(self, "_levels", {}).get(range(self.n_features_in_)[column])
        return best if names is None else np.asarray(names)[best]

    def plot_graph(self, ax: Any = None, names: Any = None) -> Any:
        """Draw the machine: visible columns below, hidden bits above, lines as strong as W."""
        from groundstate.models.generative.energy.graph import plot_machine

        return plot_machine(self._machine, ax, names)

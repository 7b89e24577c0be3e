r"""What predicts the risk of a setting: a Gaussian process, a forest, or an ensemble of networks."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key

Floats = NDArray[np.float64]
_SEEDS = 2**31 - 1


class Surrogate(Protocol):
    """Mean, spread and draws of the risk at embedded settings."""

    def predict(self, Z: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation.  # (m, c) -> (m,), (m,)"""
        ...

    def append(self, z: Floats) -> Surrogate:
        """The surrogate that also knows ``z`` with its predicted mean."""
        ...


class Forest:
    r"""Extra-trees on bootstrapped trials; mean and spread are those of the trees, with the

    law of total variance: :math:`s^2 = \mathrm{Var}_t\,m_t + \mathbb E_t\,v_t`.
    """

    def __init__(self, Z: Floats, y: Floats, key: Key, n_trees: int = 60) -> None:
        from sklearn.ensemble import ExtraTreesRegressor

        self.Z, self.y, self.key = Z, y, key
        seed = int(key.fold("forest").words(1)[0] % _SEEDS)
        self.model = ExtraTreesRegressor(
            n_trees, min_samples_leaf=2 if len(y) > 20 else 1, bootstrap=True, random_state=seed
        ).fit(Z, y)

    def draws(self, Z: Floats) -> Floats:
        """Predictions of the trees.  # (trees, m)"""
        return np.stack([tree.predict(Z) for tree in self.model.estimators_])

    def predict(self, Z: Floats) -> tuple[Floats, Floats]:
        drawn = self.draws(Z)
        leaves = np.stack(
            [tree.tree_.impurity[tree.apply(Z.astype(np.float32))] for tree in self.model]
        )
        return drawn.mean(0), np.sqrt(np.maximum(drawn.var(0) + leaves.mean(0), 1e-8))

    def append(self, z: Floats) -> Forest:
        mean = self.predict(z[None])[0]
        return Forest(
            np.concatenate([self.Z, z[None]]), np.append(self.y, mean), self.key.fold("more")
        )


class Ensemble:
    r"""Networks with squared energy :math:`e(u, r) = \tfrac12 (r - f(u))^2`, one bootstrap each.

    All members are one population: the leading axis of every weight is the member.
    """

    def __init__(
        self, Z: Floats, y: Floats, key: Key, members: int = 12, width: int = 24, steps: int = 200
    ) -> None:
        import torch

        self.Z, self.y, self.key = Z, y, key
        n, c = Z.shape
        rng = key.fold("ensemble").numpy()
        weight = torch.from_numpy(rng.multinomial(n, np.full(n, 1.0 / n), members).astype(float))
        x = torch.from_numpy(2.0 * Z - 1.0).expand(members, n, c)
        target = torch.from_numpy(y)
        sizes = [(c, width), (width, width), (width, 1)]
        theta = []
        for fan_in, fan_out in sizes:
            W = rng.standard_normal((members, fan_in, fan_out)) / np.sqrt(fan_in)
            theta.append(torch.from_numpy(W).requires_grad_())
            b = rng.standard_normal((members, 1, fan_out)) * (0.5 if fan_out > 1 else 0.0)
            theta.append(torch.from_numpy(b).requires_grad_())
        optimizer = torch.optim.Adam(theta, lr=0.02)
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            residual = _network(theta, x)[..., 0] - target
            energy = 0.5 * (weight * residual.square()).sum() / n
            decay = sum((W.square().sum() for W in theta[::2]), torch.zeros(()))
            torch.autograd.backward(energy + 1e-4 * decay)
            optimizer.step()
        self.theta = [value.detach() for value in theta]

    def draws(self, Z: Floats) -> Floats:
        """Predictions of the members.  # (members, m)"""
        import torch

        x = torch.from_numpy(2.0 * Z - 1.0).expand(len(self.theta[0]), *Z.shape)
        return np.asarray(_network(self.theta, x)[..., 0].numpy())

    def predict(self, Z: Floats) -> tuple[Floats, Floats]:
        drawn = self.draws(Z)
        return drawn.mean(0), np.maximum(drawn.std(0), 1e-4)

    def append(self, z: Floats) -> Ensemble:
        mean = self.predict(z[None])[0]
        return Ensemble(
            np.concatenate([self.Z, z[None]]), np.append(self.y, mean), self.key.fold("more")
        )


def _network(theta: list[Any], x: Any) -> Any:
    for W, b in zip(theta[:-2:2], theta[1:-2:2]):
        x = (x @ W + b).tanh()
    return x @ theta[-2] + theta[-1]

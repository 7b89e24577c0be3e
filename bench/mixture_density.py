"""Mixture density regression, against the loop one would write by hand in torch."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

K, HIDDEN, EPOCHS, BATCH, RATE = 5, 64, 20, 256, 5e-3


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    """An inverse problem, three outcomes for one input, among inputs that do not matter."""
    import numpy as np

    rng = np.random.default_rng(seed)
    n, d = size
    y = rng.uniform(0, 1, 2 * n)
    x = y + 0.3 * np.sin(2 * np.pi * y) + 0.05 * rng.normal(size=2 * n)
    X = np.column_stack([x, rng.normal(size=(2 * n, d - 1))]).astype(np.float32)
    y = y.astype(np.float32)
    return {"X": X[:n], "y": y[:n], "Xt": X[n:], "yt": y[n:]}


def ours(data: dict[str, Any]) -> Any:
    from groundstate import MixtureDensityRegressor

    model = MixtureDensityRegressor(
        K, (HIDDEN,), learning_rate=RATE, batch_size=BATCH, max_iter=EPOCHS,
        n_iter_no_change=EPOCHS, early_stopping=False, random_state=0,
    )  # fmt: skip
    return model.fit(data["X"], data["y"])


class ByHand:
    """The usual loop: standardise, shuffle, slice, logsumexp, Adam."""

    def fit(self, X: Any, y: Any) -> ByHand:
        import torch
        from sklearn.cluster import KMeans
        from torch import nn

        torch.manual_seed(0)
        x, t = torch.from_numpy(X), torch.from_numpy(y)[:, None]
        self.x, self.y = (x.mean(0), x.std(0)), (t.mean(0), t.std(0))
        x, t = (x - self.x[0]) / self.x[1], (t - self.y[0]) / self.y[1]
        self.net = nn.Sequential(nn.Linear(x.shape[1], HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 3 * K))
        centres = KMeans(K, n_init=1, random_state=0).fit(t.numpy()).cluster_centers_
        with torch.no_grad():
            self.net[2].weight.mul_(0.1)
            self.net[2].bias[:K] = torch.from_numpy(centres[:, 0])
            self.net[2].bias[K:] = 0
            self.net[2].bias[K : 2 * K] = -1.5
        optimizer = torch.optim.Adam(self.net.parameters(), lr=RATE, fused=True)
        for _ in range(EPOCHS):
            order = torch.randperm(len(x))
            for at in range(0, len(x), BATCH):
                rows = order[at : at + BATCH]
                loss = self.nll(x[rows], t[rows]).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return self

    def nll(self, x: Any, t: Any) -> Any:
        import torch

        mean, scale, logits = self.net(x).split(K, 1)
        sigma = scale.exp() + 1e-3
        parts = torch.distributions.Normal(mean, sigma, validate_args=False).log_prob(t)
        return -torch.logsumexp(parts + torch.log_softmax(logits, 1), 1)

    def score(self, X: Any, y: Any) -> float:
        import torch

        with torch.no_grad():
            x, t = torch.from_numpy(X), torch.from_numpy(y)[:, None]
            x, t = (x - self.x[0]) / self.x[1], (t - self.y[0]) / self.y[1]
            return float(-self.nll(x, t).mean() - self.y[1].log().sum())


MIXTURE_DENSITY = Benchmark(
    name="mixture-density",
    title="MixtureDensityRegressor.fit, 20 epochs",
    sizes={"1000x2": (1_000, 2), "10000x10": (10_000, 10), "50000x10": (50_000, 10)},
    data=data,
    ours=ours,
    peers={"torch loop": Peer(lambda data: ByHand().fit(data["X"], data["y"]), "torch")},
    score=lambda data, model: float(model.score(data["Xt"], data["yt"])),
    score_name="held-out log-likelihood",
    better="high",
    target=1.0,
)

"""One sweep of Gibbs sampling over two layers of bits against scikit-learn's."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer


def data(size: tuple[int, int, int], seed: int) -> dict[str, Any]:
    import numpy as np
    from sklearn.neural_network import BernoulliRBM as Peer

    from groundstate import BernoulliRBM

    rows, visible, hidden = size
    rng = np.random.default_rng(seed)
    v = (rng.random((rows, visible)) < 0.5).astype(np.float32)
    ours = BernoulliRBM(hidden, n_iter=1, random_state=seed).fit(v)
    peer = Peer(hidden, n_iter=1, random_state=seed).fit(v)
    for name in ("components_", "intercept_hidden_", "intercept_visible_"):
        setattr(peer, name, np.ascontiguousarray(getattr(ours, name), np.float32))
    peer.random_state_ = np.random.RandomState(seed)
    return {"v": v, "ours": ours, "peer": peer}


def share(data: dict[str, Any], bits: Any) -> float:
    """Agreement of the share of ones with the chance of a one, the same for both."""
    import numpy as np

    return float(np.round(np.asarray(bits, float).mean(), 2))


GIBBS = Benchmark(
    name="gibbs",
    title="BernoulliRBM.gibbs: one sweep, hidden then visible bits",
    sizes={
        "100x64x32": (100, 64, 32),
        "1000x784x100": (1000, 784, 100),
        "1000x784x500": (1000, 784, 500),
    },
    data=data,
    ours=lambda data: data["ours"].gibbs(data["v"]),
    peers={
        "scikit-learn": Peer(lambda data: data["peer"].gibbs(data["v"]), "scikit-learn", "sklearn")
    },
    score=share,
    score_name="share of ones",
    better="high",
    target=2.0,
)

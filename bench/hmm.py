"""Hidden Markov models with four states: 20 iterations of Baum-Welch, and Viterbi, against hmmlearn."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

STATES, FEATURES, ITERATIONS = 4, 3, 20


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(seed)
    n, length = size
    A = 0.9 * np.eye(STATES) + 0.1 / STATES
    means = rng.normal(0, 2, (STATES, FEATURES))
    z = np.zeros((n, length), int)
    z[:, 0] = rng.integers(0, STATES, n)
    for t in range(1, length):
        stay = rng.random(n) < 0.9
        z[:, t] = np.where(stay, z[:, t - 1], rng.integers(0, STATES, n))
    X = means[z] + rng.normal(size=(n, length, FEATURES))
    return {
        "X": X.reshape(-1, FEATURES), "lengths": [length] * n, "A": A,
        "means": means + 0.3 * rng.normal(size=means.shape), "start": np.full(STATES, 1 / STATES),
        "covars": np.ones((STATES, FEATURES)),
    }  # fmt: skip


def fit_ours(data: dict[str, Any]) -> Any:
    from groundstate import HiddenMarkovModel

    return HiddenMarkovModel(
        STATES, startprob_init=data["start"], transmat_init=data["A"], means_init=data["means"],
        covars_init=data["covars"], max_iter=ITERATIONS, tol=0.0, reg_covar=0.0,
    ).fit(data["X"], data["lengths"])  # fmt: skip


def fit_hmmlearn(data: dict[str, Any]) -> Any:
    from hmmlearn.hmm import GaussianHMM

    model = GaussianHMM(
        STATES,
        "diag",
        n_iter=ITERATIONS,
        tol=-1e300,
        init_params="",
        covars_prior=0.0,
        min_covar=0.0,
    )
    model.startprob_, model.transmat_ = data["start"], data["A"]
    model.means_, model.covars_ = data["means"], data["covars"]
    return model.fit(data["X"], data["lengths"])


SIZES = {"10x200": (10, 200), "100x1000": (100, 1000), "1000x100": (1000, 100)}


def log_likelihood(data: dict[str, Any], model: Any) -> float:
    total = model.score(data["X"], data["lengths"])
    return float(total if "hmmlearn" in type(model).__module__ else total * len(data["lengths"]))


FIT = Benchmark(
    name="hmm-fit",
    title=f"Gaussian HMM, {STATES} states, {ITERATIONS} iterations of Baum-Welch",
    sizes=SIZES,
    data=data,
    ours=fit_ours,
    peers={"hmmlearn": Peer(fit_hmmlearn, "hmmlearn")},
    score=log_likelihood,
    score_name="log-likelihood",
    target=1.0,
)


def fitted(data: dict[str, Any], name: str, fit: Any) -> Any:
    if name not in data:
        data[name] = fit(data)
    return data[name]


def viterbi_ours(data: dict[str, Any]) -> Any:
    return fitted(data, "ours", fit_ours).predict(data["X"], data["lengths"])


def viterbi_hmmlearn(data: dict[str, Any]) -> Any:
    return fitted(data, "hmmlearn", fit_hmmlearn).predict(data["X"], data["lengths"])


VITERBI = Benchmark(
    name="hmm-viterbi",
    title=f"best paths of a Gaussian HMM with {STATES} states",
    sizes=SIZES,
    data=data,
    ours=viterbi_ours,
    peers={"hmmlearn": Peer(viterbi_hmmlearn, "hmmlearn")},
    score=lambda data, path: float(path.sum()),
    score_name="sum of states",
    target=1.0,
)

"""The checks of a generator and its discriminator: who has won, and what was forgotten."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from groundstate.compute.random import Key
from groundstate.learn.diagnose.runs import Finding
from groundstate.models.diagnosis.checks import check

F64 = NDArray[np.float64]
CELLS = 20  # parts of the data, each of about as many rows
EMPTY = 0.1  # of the rows lie in parts that samples visit less than a tenth as often as they should
WON = 0.95  # of the rows, real and generated, are told apart


def _both(model: Any, X: F64) -> tuple[F64, F64]:
    """Coded rows of the data and as many generated ones, at most 4,000."""
    generator = Key.of(0).torch(model.energy_.placement()[0])
    with torch.no_grad():
        drawn = model.energy_.draw(min(len(X), 4000), generator=generator)[0]
    return X[:4000], drawn.double().cpu().numpy()


@check("generator_", "discriminator_", "coding_", "event_shape_")
def mode_collapse(model: Any, X: F64) -> Finding | None:
    """The share of the data in parts that hardly any sample comes to."""
    if len(X) < 2 * CELLS or model.condition_ is not None:
        return None
    real, made = _both(model, X)
    cells = KMeans(min(CELLS, len(np.unique(real, axis=0))), n_init=1, random_state=0).fit(real)
    share, visits = (
        np.bincount(cells.predict(rows), minlength=len(cells.cluster_centers_)) / len(rows)
        for rows in (real, made)
    )
    forgotten = float(share[visits < 0.1 * share].sum())
    if forgotten <= EMPTY:
        return None
    return Finding(
        "mode collapse", "parts of the data are never generated", forgotten, EMPTY,
        "take r1=0.1, WGAN, more noise (n_components), a smaller learning rate or more epochs",
    )  # fmt: skip


@check("generator_", "discriminator_", "discriminator_score", "coding_")
def discriminator_won(model: Any, X: F64) -> Finding | None:
    """How many rows, half of them generated, the discriminator tells rightly."""
    if model.condition_ is not None:
        return None
    real, made = _both(model, X)
    with torch.no_grad():
        device, dtype = model.energy_.placement()
        score = [
            -model.energy_(x=torch.from_numpy(rows).to(device, dtype)).cpu()
            for rows in (real, made)
        ]
    right = float(((score[0] > 0).double().mean() + (score[1] < 0).double().mean()) / 2)
    if right <= WON:
        return None
    return Finding(
        "discriminator has won", "it tells data and generated rows apart, so that nothing is learned",
        right, WON,
        "weaken it: r1=0.1, spectral_norm=True, dropout, n_critic=1, smaller hidden layers; or WGAN",
    )  # fmt: skip

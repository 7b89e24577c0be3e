r"""The information :math:`X^\top H X` of a fitted linear model on its rows, and its log-likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.energy.basic import LinearEnergy, SquaredEnergy
from groundstate.energy.linear.glm import GLMEnergy
from groundstate.errors import DataError
from groundstate.learn.fit import fit
from groundstate.learn.rules.softmin import NLL
from groundstate.learn.solvers.glm.irls import IRLS
from groundstate.learn.solvers.glm.irls_rows import rows_of
from groundstate.models.arrays import unwrap

Array = NDArray[np.float64]
OFF = 0.05  # size of the score, in standard errors squared, that tells of other rows


@dataclass
class Fitted:
    """A fitted model on its rows; parameters with the intercept first."""

    names: tuple[str, ...]
    estimate: Array
    inverse: Array  # (XᵀHX)⁻¹
    n_rows: float
    intercept: bool
    dispersion: float = 1.0
    sse: float = np.nan
    sst: float = np.nan
    deviance: float = np.nan
    null_deviance: float = np.nan
    null_parameters: int = 0
    log_likelihood: float = np.nan


def _names(model: Any, d: int, intercept: bool) -> tuple[str, ...]:
    names = [str(n) for n in getattr(model, "feature_names_in_", [f"x{j}" for j in range(d)])]
    return (*(["intercept"] if intercept else []), *names)


def _weights(weight: Any, n: int) -> Tensor:
    if weight is None:
        return torch.ones(n, dtype=torch.float64)
    found = torch.as_tensor(np.asarray(unwrap(weight)[0], np.float64))
    if found.shape != (n,):
        raise DataError(f"sample_weight must have shape ({n},), got {tuple(found.shape)}")
    return found


def _one_output(model: Any, y: Any) -> Tensor:
    values = np.asarray(unwrap(y)[0], np.float64)
    if values.ndim > 1 and values.shape[1] > 1:
        raise DataError(f"inference is about one output, got y of shape {values.shape}; fit each")
    return torch.as_tensor(values.reshape(-1))


def _inverse(gram: Array, names: tuple[str, ...]) -> Array:
    scale = np.sqrt(np.where(gram.diagonal() > 0, gram.diagonal(), 1.0))
    unit = gram / scale[:, None] / scale
    values, vectors = np.linalg.eigh(unit)
    null = ~(values > 1e-11 * max(1.0, values[-1]))
    if null.any():
        part = np.linalg.norm(vectors[:, null], axis=1)  # of each column in what is not determined
        guilty = names[int((part > 0.5 * part.max()).argmax())]
        raise DataError(
            f"the information matrix is singular: some columns are combinations of others, "
            f"{guilty!r} among them, or classes are separable; drop a column"
        )
    found: Array = ((vectors / values) @ vectors.T) / scale[:, None] / scale
    return found


def _information(
    x: Tensor, h: Tensor, g: Tensor, intercept: bool, names: tuple[str, ...]
) -> tuple[Array, float]:
    """(XᵀHX)⁻¹ with the intercept first, and the score Xᵀg in standard errors, squared."""
    rows = rows_of(x, intercept)
    rows.exact = True
    score, gram = rows.sums(g.numpy(), h.numpy())
    assert gram is not None
    inverse = _inverse(gram, (*names[1:], names[0]) if intercept else names)
    off = float(score @ inverse @ score)
    if rows.shift is not None:  # columns were centred: b is smaller by w·shift
        back = np.eye(rows.size)
        back[-1, :-1] = -rows.shift
        inverse = back @ inverse @ back.T
    if intercept:
        order = np.r_[rows.size - 1, : rows.size - 1]
        inverse = inverse[np.ix_(order, order)]
    return inverse, off


def _check_rows(off: float, dispersion: float) -> None:
    if dispersion > 0 and off / dispersion > OFF:
        raise DataError(
            "the likelihood of these rows is not at its maximum: pass the rows (weights, offset) of "
            "the fit, or fit with a smaller tol"
        )


def from_squares(model: Any, energy: SquaredEnergy, X: Any, y: Any, weight: Any) -> Fitted:
    """A linear least-squares fit."""
    target = _one_output(model, y)
    x, _ = model._rows(X)
    x, w = x.double().cpu(), _weights(weight, len(target))
    intercept = energy.b is not None
    W = energy.W.detach().double().cpu()[0]
    left = target - x @ W
    if energy.b is not None:
        left = left - energy.b.detach().double().cpu()[0]
    center = (w @ target) / w.sum() if intercept else torch.zeros(())
    names = _names(model, len(W), intercept)
    inverse, off = _information(x, w, w * left, intercept, names)
    sse = float(w @ left.square())
    total = float(w.sum())
    sst = float(w @ (target - center).square())
    _check_rows(off, max(sse, 1e-12 * sst) / total)
    return Fitted(
        names, _joined(W, energy.b), inverse, total, intercept,
        sse=sse, sst=sst,
    )  # fmt: skip


def _joined(W: Tensor, b: Tensor | None) -> Array:
    first = [] if b is None else [b.detach().double().cpu()[:1]]
    joined: Array = torch.cat([*first, W]).numpy()
    return joined


def from_glm(
    model: Any, energy: GLMEnergy, X: Any, y: Any, weight: Any, offset: Any = None
) -> Fitted:
    """A generalised linear fit."""
    target = _one_output(model, y)
    x, _ = model._rows(X)
    x, w = x.double().cpu(), _weights(weight, len(target))
    o = None if offset is None else torch.as_tensor(np.asarray(unwrap(offset)[0], np.float64))
    own = GLMEnergy(**energy.config()).double()
    own.load_state_dict({k: v.double().cpu() for k, v in energy.state_dict().items()})
    with torch.no_grad():
        return _from_glm(model, own, x, target, w, o)


def _from_glm(
    model: Any, energy: GLMEnergy, x: Tensor, y: Tensor, w: Tensor, offset: Tensor | None
) -> Fitted:
    family, link, intercept = energy.family, energy.link, energy.b is not None
    eta = energy.score(x, offset)[:, 0]
    mu, slope, phi = link.inverse(eta), link.derivative(eta), float(energy.phi[0])
    variance = family.variance(mu)
    names = _names(model, energy.d, intercept)
    inverse, off = _information(
        x, w * slope.square() / variance, w * (y - mu) * slope / variance, intercept, names
    )
    _check_rows(off, phi)
    null = mean_alone(family, link, y, w, offset) if intercept else link.inverse(
        torch.zeros_like(y) if offset is None else offset.reshape(-1)
    )  # fmt: skip
    return Fitted(
        names, _joined(energy.W[0], energy.b), inverse, float(w.sum()), intercept, dispersion=phi,
        deviance=float(w @ family.unit_deviance(y, mu)),
        null_deviance=float(w @ family.unit_deviance(y, null)), null_parameters=int(intercept),
        log_likelihood=float(w @ family.log_prob(y, mu, phi)),
    )  # fmt: skip


def mean_alone(family: Any, link: Any, y: Tensor, w: Tensor, offset: Tensor | None) -> Tensor:
    """The fitted means of the model with an intercept and nothing else."""
    if offset is None:
        return ((w @ y) / w.sum()).expand_as(y)
    energy = GLMEnergy(0, 1, family, link).double()
    data = {"x": y.new_empty(len(y), 0), "y": y[:, None], "offset": offset.reshape(len(y), -1)}
    fit(energy, data, NLL(), IRLS(tol=1e-10), sample_weight=w)
    return energy.mean(data["x"], data["offset"])[:, 0]


def from_classes(model: Any, energy: LinearEnergy, X: Any, y: Any, weight: Any) -> Fitted:
    """A softmax fit, in coefficients relative to the first class."""
    labels = np.asarray(unwrap(y)[0]).reshape(-1)
    index = torch.as_tensor(model._encoded("y", labels).astype(np.int64))
    x, _ = model._rows(X)
    x = (x.to_dense() if x.layout == torch.sparse_csr else x).double().cpu()
    w, intercept = _weights(weight, len(index)), energy.b is not None
    W = energy.W.detach().double().cpu()
    if energy.b is not None:
        W = torch.cat([energy.b.detach().double().cpu()[:, None], W], 1)
        x = torch.cat([torch.ones(len(x), 1, dtype=x.dtype), x], 1)
    theta = W[1:] - W[:1]  # (K − 1, D)
    p = torch.softmax(x @ W.T, 1)  # (n, K)
    k, d = theta.shape
    gram = torch.empty(k, d, k, d, dtype=torch.float64)
    for a in range(k):
        for b in range(k):
            h = w * p[:, a + 1] * (float(a == b) - p[:, b + 1])
            gram[a, :, b, :] = x.T @ (x * h[:, None])
    own = _names(model, d - intercept, intercept)
    names = own if k == 1 else tuple(f"{c}: {n}" for c in model.classes_[1:] for n in own)
    hit = torch.nn.functional.one_hot(index, k + 1).double()
    score = ((w[:, None] * (hit - p))[:, 1:].T @ x).reshape(-1).numpy()
    inverse = _inverse(gram.reshape(k * d, k * d).numpy(), names)
    _check_rows(float(score @ inverse @ score), 1.0)
    llf = float(w @ p.gather(1, index[:, None])[:, 0].log())
    share = (w @ hit) / w.sum() if intercept else torch.full((k + 1,), 1 / (k + 1)).double()
    return Fitted(
        names, theta.reshape(-1).numpy(), inverse, float(w.sum()), intercept, deviance=-2 * llf,
        null_deviance=-2 * float(torch.xlogy(w @ hit, share).sum()),
        null_parameters=k * int(intercept), log_likelihood=llf,
    )  # fmt: skip

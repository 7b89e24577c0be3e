"""Pictures of Markov chains: where they went, and how fast they forget."""

from __future__ import annotations

import torch
from matplotlib.figure import Figure
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.chains.diagnostics import autocorr, ess, rhat


def trace_figure(draws: Tensor, name: str = "x", *, most: int = 4) -> Figure:
    r"""Traces and histograms of chains, with :math:`\hat R` and the effective sample size.

    Parameters
    ----------
    draws : ``(n, C, *event)``: n steps of C chains
    name : what the variable is called
    most : coordinates shown

    Examples
    --------
    >>> g = torch.Generator().manual_seed(0)
    >>> len(trace_figure(torch.randn(200, 4, 2, generator=g)).axes)
    4
    """
    flat = _coordinates(draws)[..., :most]  # (n, C, d)
    d = flat.shape[-1]
    figure = Figure(figsize=(8, 1.8 * d + 0.4), layout="constrained")
    for j in range(d):
        values = flat[..., j].cpu()
        left = figure.add_subplot(d, 2, 2 * j + 1)
        left.plot(values.numpy(), linewidth=0.5)
        left.set_ylabel(f"{name}[{j}]" if d > 1 else name)
        right = figure.add_subplot(d, 2, 2 * j + 2)
        right.hist([chain.numpy() for chain in values.unbind(1)], bins=30, histtype="step")
        summary = f"R̂ {float(rhat(values)):.3f}, effective draws {float(ess(values)):.0f}"
        right.set_title(summary, fontsize=9)
    return figure


def autocorrelation_figure(draws: Tensor, name: str = "x", *, lags: int = 60) -> Figure:
    """Autocorrelation of each coordinate, averaged over chains, up to a lag.

    Parameters are those of ``trace_figure``.
    """
    flat = _coordinates(draws)
    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.add_subplot()
    for j in range(flat.shape[-1]):
        curve = autocorr(flat[..., j])[:lags].mean(1)
        axes.plot(curve.cpu().numpy(), label=f"{name}[{j}]")
    axes.axhline(0, color="grey", linewidth=0.6)
    axes.set(xlabel="lag", ylabel="autocorrelation")
    if flat.shape[-1] > 1:
        axes.legend(fontsize=8)
    return figure


def _coordinates(draws: Tensor) -> Tensor:
    if draws.ndim < 2 or draws.shape[0] < 4:
        raise ShapeError(
            f"draws need shape (steps, chains, *event) with at least 4 steps, got {tuple(draws.shape)}"
        )
    return draws.to(torch.float64).reshape(*draws.shape[:2], -1)

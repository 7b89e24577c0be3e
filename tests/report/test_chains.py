"""Pictures of chains carry the numbers of the diagnostics."""

from __future__ import annotations

import pytest
import torch

from groundstate.errors import ShapeError
from groundstate.math.chains.diagnostics import ess, rhat
from groundstate.report.chains import autocorrelation_figure, trace_figure


def test_trace_shows_rhat_and_effective_draws() -> None:
    draws = torch.randn(300, 4, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    figure = trace_figure(draws)
    title = figure.axes[1].get_title()
    assert f"{float(rhat(draws[..., 0])):.3f}" in title
    assert f"{float(ess(draws[..., 0])):.0f}" in title
    assert len(figure.axes[0].lines) == 4


def test_autocorrelation_starts_at_one_and_dies_out() -> None:
    draws = torch.randn(2000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    curve = autocorrelation_figure(draws).axes[0].lines[0].get_ydata()
    assert curve[0] == pytest.approx(1.0) and abs(curve[1:]).max() < 0.1


def test_wrong_shape_is_named() -> None:
    with pytest.raises(ShapeError, match=r"\(steps, chains, \*event\)"):
        trace_figure(torch.zeros(3))

"""Diffusions in continuous time with a known score: N(2, .25)."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from groundstate.infer.sampling.score_sde import flow_ode, last_level, ode_log_prob, reverse_sde
from groundstate.math.diffusion import ContinuousSchedule

KINDS = ("vp", "ve", "subvp")


def known(schedule: ContinuousSchedule):
    def score(x: Tensor, t: Tensor) -> Tensor:
        a, s = schedule.signal_noise(t, x)
        return -(x - 2 * a) / (0.25 * a * a + s * s)

    return score


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trace", ["exact", "hutchinson"])
def test_density_along_the_flow(kind: str, trace: str) -> None:
    schedule = ContinuousSchedule(kind, sigma_min=1e-3)
    x = torch.tensor([[2.0], [1.0]], dtype=torch.float64)
    found = ode_log_prob(
        known(schedule), x, schedule, trace=trace, mean=2.0, variance=0.25, eps=1e-4
    )
    torch.testing.assert_close(
        found, torch.tensor([-0.225791, -2.225791], dtype=torch.float64), atol=1e-3, rtol=0
    )


@pytest.mark.parametrize("kind", KINDS)
def test_rows_from_noise(kind: str) -> None:
    schedule = ContinuousSchedule(kind)
    generator = torch.Generator().manual_seed(0)
    a, width = last_level(schedule, 0.25)
    z = 2 * a + width * torch.randn(4000, 1, dtype=torch.float64, generator=generator)
    score = known(schedule)
    ways = {
        "steps": reverse_sde(score, z, schedule, 300, generator=generator),
        "corrected": reverse_sde(score, z, schedule, 150, n_corrector=1, generator=generator),
        "flow": flow_ode(score, z, schedule),
    }
    for x in ways.values():
        assert float(x.mean()) == pytest.approx(2.0, abs=0.04)
        assert float(x.var()) == pytest.approx(0.25, abs=0.03)
    back = flow_ode(score, ways["flow"], schedule, 1e-3, 1.0)
    torch.testing.assert_close(back, z, atol=2e-2 * width, rtol=0)


def test_known_cells_are_held() -> None:
    schedule = ContinuousSchedule("vp")
    x = torch.full((5, 1), 7.0, dtype=torch.float64)
    held = (x, torch.zeros(5, 1, dtype=torch.bool))
    assert (reverse_sde(known(schedule), x, schedule, 5, held=held) == 7.0).all()
    with pytest.raises(ValueError, match="n_steps"):
        reverse_sde(known(schedule), x, schedule, 0)
    with pytest.raises(ValueError, match="trace"):
        ode_log_prob(known(schedule), x, schedule, trace="none")

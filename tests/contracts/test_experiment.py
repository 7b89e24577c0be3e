"""One contract for every experiment, run over the registry: a new one is tested by being there."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from groundstate.experiments import Claim, Experiment, Result, get
from groundstate.registry import experiments

ALL = [
    pytest.param(row.name, marks=[pytest.mark.slow] if row.obj.slow else [], id=row.name)
    for row in experiments
]


@pytest.mark.parametrize("row", list(experiments), ids=lambda row: row.name)
def test_declaration(row) -> None:
    made = get(row.name)
    assert isinstance(made, Experiment) and made is row.obj
    assert (made.id, made.theme, made.title) == (row.name, row.theme, row.title)
    slug = re.sub(r"^[A-Z]+(-[Xx]|X)-", "", row.name).replace("-", "_")
    assert made.__module__ == f"groundstate.experiments.{row.theme}.{slug}", "one file each"
    signature = inspect.signature(made.run)
    assert list(signature.parameters) == ["seed", "quick"]
    doc = inspect.getdoc(made) or ""
    assert re.search(r":math:`|\.\. math::|\$", doc), "the docstring states the claim as a formula"
    assert len(doc.split()) > 20 and row.summary, "and says in words what is run"


@pytest.mark.parametrize("name", ALL)
def test_run(name: str, tmp_path: Path) -> None:
    """It holds, draws, and leaves the process-wide random streams alone."""
    streams = torch.get_rng_state(), np.random.get_state()[1].copy()  # type: ignore[index]
    result = get(name).run(seed=0)
    assert torch.equal(torch.get_rng_state(), streams[0])
    assert np.array_equal(np.random.get_state()[1], streams[1])  # type: ignore[index]

    assert isinstance(result, Result) and len(result.claims) >= 1
    # a busy machine may miss a claim about time; no test depends on the clock
    decided = [claim for claim in result.claims if not claim.timed]
    failed = [claim for claim in decided if not claim.holds]
    assert decided and not failed, "\n".join(
        f"{c.text}: {c.value}, expected {c.expected}" for c in failed
    )
    assert result.verdict is all(claim.holds for claim in result.claims)
    for claim in result.claims:
        assert isinstance(claim, Claim) and claim.text and claim.expected
        assert isinstance(claim.holds, bool)
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["verdict"] is result.verdict and result.numbers

    result.picture(tmp_path / "one.svg")
    assert (tmp_path / "one.svg").stat().st_size > 2000
    ElementTree.parse(tmp_path / "one.svg")


@pytest.mark.slow
@pytest.mark.parametrize("name", [row.name for row in experiments if not row.obj.slow])
def test_same_seed_same_numbers_and_pictures(name: str, tmp_path: Path) -> None:
    one, two = get(name).run(seed=0), get(name).run(seed=0)
    assert json.dumps(one.numbers) == json.dumps(two.numbers)
    assert [c.text for c in one.claims] == [c.text for c in two.claims]
    if one.seconds or any(claim.timed for claim in one.claims):
        two = one  # its picture shows times, which are not a function of the seed
    for suffix in ("svg", "png"):
        one.picture(tmp_path / f"one.{suffix}")
        two.picture(tmp_path / f"two.{suffix}")
        drawn = (tmp_path / f"one.{suffix}").read_bytes()
        assert len(drawn) > 2000 and drawn == (tmp_path / f"two.{suffix}").read_bytes()

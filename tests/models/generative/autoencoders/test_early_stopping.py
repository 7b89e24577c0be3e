"""Early stopping of a model whose encoder lives in the rule: both come from one epoch."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from groundstate import VAE
from groundstate.learn import Callback, Checkpoint
from groundstate.learn.callbacks import Run
from groundstate.learn.callbacks.best import as_answered


class _Kept(Callback):
    """Energy and rule after every epoch, as the run would leave them."""

    def __init__(self) -> None:
        self.states: list[dict[str, torch.Tensor]] = []

    def on_epoch(self, run: Run) -> None:
        with as_answered(run):
            both = {"energy": run.energy, "rule": run.problem.rule}
            self.states.append(
                {f"{k}.{n}": v.clone() for k, m in both.items() for n, v in m.state_dict().items()}
            )


@pytest.mark.parametrize("ema_decay", [None, 0.8])
def test_early_stopping_keeps_decoder_and_encoder_of_one_epoch(ema_decay: float | None) -> None:
    rows = np.random.default_rng(0).normal(size=(80, 4))
    watch = _Kept()
    model = VAE(
        2, hidden_layer_sizes=(16,), max_iter=40, early_stopping=True, n_iter_no_change=6,
        validation_fraction=0.3, learning_rate_init=0.05, batch_size=16, ema_decay=ema_decay,
        random_state=0, callbacks=[watch],
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows)
    scores = model.validation_scores_
    assert scores is not None
    best = int(np.argmax(scores))
    assert best < len(scores) - 1  # learning went on past it
    own = {f"energy.{n}": v for n, v in model.energy_.state_dict().items()}
    own |= {f"rule.{n}": v for n, v in model.rule_.state_dict().items()}
    kept = watch.states[best]
    assert own.keys() == kept.keys() and any(n.startswith("rule.encoder") for n in own)
    assert all(torch.equal(own[n], kept[n]) for n in own)
    last = watch.states[-1]
    assert not all(torch.equal(own[n], last[n]) for n in own if n.startswith("rule.encoder"))


def test_an_average_takes_the_encoder_along() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, mean = (
            VAE(1, hidden_layer_sizes=(8,), max_iter=5, ema_decay=d, random_state=0).fit(rows)
            for d in (None, 0.9)
        )
    for part in ("energy_", "rule_"):
        a, b = (dict(getattr(m, part).named_parameters()) for m in (plain, mean))
        assert all(not torch.equal(a[n], b[n]) for n in a if n.endswith("weight"))


def test_early_stopping_is_resumed_as_if_uninterrupted(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).normal(size=(60, 3)).astype(np.float32)

    class Interrupt(Callback):
        def on_epoch(self, run: Run) -> None:
            if run.epoch == 7:
                raise KeyboardInterrupt

    def made(*callbacks: Callback) -> VAE:
        return VAE(
            1, hidden_layer_sizes=(8,), max_iter=15, early_stopping=True, n_iter_no_change=20,
            validation_fraction=0.3, learning_rate_init=0.05, batch_size=16, ema_decay=0.8,
            random_state=0, callbacks=list(callbacks),
        )  # fmt: skip

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = made().fit(rows)
        with pytest.raises(KeyboardInterrupt):
            made(Checkpoint(tmp_path), Interrupt()).fit(rows)
        again = made(Checkpoint(tmp_path)).fit(rows)
    assert whole.validation_scores_ == again.validation_scores_
    for part in ("energy_", "rule_"):
        a, b = (getattr(m, part).state_dict() for m in (whole, again))
        assert all(torch.equal(a[n], b[n]) for n in a)

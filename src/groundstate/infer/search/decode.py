r"""Sequences out of an energy that is built symbol by symbol: the best, or draws.

.. math:: \hat y = \arg\min_y \sum_t e(y_t\mid y_{<t}) \qquad\text{or}\qquad
          y_t \sim \operatorname{softmax}\bigl(-e(\cdot\mid y_{<t})/T\bigr)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.sequences.step import StepState
from groundstate.errors import ShapeError, Unsupported
from groundstate.infer.search.beam import Beam, Step, beam_search, repeated, spread

METHODS = ("greedy", "beam", "exhaustive", "sample")
EXHAUSTIVE = 10**7  # strings that are listed at most


@dataclass(frozen=True, repr=False)
class Decoded:
    """Decoded sequences, for each row the best first (or its draws).

    Attributes
    ----------
    tokens : int64 ``(B, n, L)``, the prompt included; behind an end all symbols are the end
    lengths : symbols up to the end, the prompt included, ``(B, n)``
    log_prob : of the symbols behind the prompt, ``(B, n)``
    token_log_prob : of each of them, ``(B, n, L')``; 0 behind the end
    """

    tokens: Tensor
    lengths: Tensor
    log_prob: Tensor
    token_log_prob: Tensor

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        b, n, length = self.tokens.shape
        best = ", ".join(f"{v:.4g}" for v in self.log_prob[:3, 0].tolist())
        more = ", …" if b > 3 else ""
        return f"Decoded: {b} rows × {n} sequences of up to {length} symbols, log p {best}{more}"


@torch.no_grad()
def decode(
    energy: Energy,
    method: Literal["greedy", "beam", "exhaustive", "sample"] = "greedy",
    *,
    prompt: Tensor | None = None,
    given: Mapping[str, Any] | None = None,
    max_new_tokens: int | None = None,
    n: int = 1,
    beams: int = 4,
    independent: bool = False,
    length_penalty: float = 0.0,
    end: int | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    generator: torch.Generator | None = None,
) -> Decoded:
    r"""Build sequences symbol by symbol.

    Parameters
    ----------
    energy : with the ability ``step`` for one variable, such as ``SequenceEnergy``
    method : "greedy" takes the best symbol each time; "beam" keeps ``beams`` beginnings;
        "exhaustive" finds the best string of all (:math:`K^L \le 10^7`); "sample" draws
    prompt : int64 ``(B, P)``, symbols that all sequences begin with
    given : values of the energy's other variables, B rows
    max_new_tokens : symbols behind the prompt; by default as many as the energy is long
    n : sequences returned per row: the best ones of a beam, or draws
    beams : beginnings that are kept
    independent : the ``beams`` best first symbols, each continued greedily, instead of the best
        of all extensions
    length_penalty : α: beams are compared by energy / length^α
    end : the symbol after which a sequence is over; by default that of the energy, if it has one
    temperature, top_k, top_p, min_p, repetition_penalty : of "sample", applied in this order
        behind the penalty: scores over T; the k best symbols; the fewest symbols whose
        probabilities reach p; symbols with at least ``min_p`` times the largest probability.
        The penalty multiplies log-probabilities of symbols that occurred
    generator : source of the draws; None is a fixed seed

    Examples
    --------
    >>> from groundstate.energy import ChainRuleEnergy
    >>> p = torch.tensor([[0.6 * 0.55, 0.6 * 0.45], [0.4 * 0.95, 0.4 * 0.05]])
    >>> tree = ChainRuleEnergy.from_joint(p)
    >>> [round(decode(tree, m, beams=2).log_prob.exp().item(), 2) for m in ("greedy", "beam")]
    [0.33, 0.38]
    """
    if method not in METHODS:
        raise Unsupported(f"method {method!r} is not known; use one of {', '.join(METHODS)}")
    step, (increments, state) = begin(energy, prompt, dict(given or {}), max_new_tokens)
    given = dict(given or {})
    end = getattr(energy, "end", None) if end is None else end
    start, k = state.position, increments.shape[1]
    if method == "sample":
        if temperature == 0:
            method, beams = "greedy", 1
        else:
            rows = torch.arange(state.rows, device=increments.device).repeat_interleave(n)
            choose = _Chooser(temperature, top_k, top_p, min_p, repetition_penalty, generator)
            given = repeated(given, n)
            return _sampled(step, given, increments[rows], state.pick(rows), choose, end, n)
    steps = state.value.shape[1] - start
    if method == "exhaustive":
        if steps * math.log(k) > math.log(EXHAUSTIVE):
            raise Unsupported(
                f"{k}^{steps} strings are too many to list; use method='beam', or at most "
                f"{int(math.log(EXHAUSTIVE) / math.log(k))} new symbols"
            )
        beams = k ** max(steps - 1, 0)
    beam = Beam(1 if method == "greedy" else beams, not independent, length_penalty, end)
    if n > beam.width:
        raise ValueError(f"a beam of {beam.width} cannot give n={n} sequences; use more beams")
    found = beam_search(step, given, increments, state, beam)
    lengths = start + found.length[:, :n].long()
    return Decoded(found.value[:, :n], lengths, -found.energy[:, :n], -found.token_energy[:, :n])


def begin(
    energy: Energy, prompt: Tensor | None, given: dict[str, Any], new: int | None
) -> tuple[Step, tuple[Tensor, StepState]]:
    """The step ability, and what it says of the first symbol behind the prompt."""
    names = [name for name in energy.spaces if energy.ability("step", name) is not None]
    if len(names) != 1:
        raise Unsupported(
            f"decode needs an energy that declares step for one variable, "
            f"{type(energy).__name__} declares {', '.join(names) or 'none'}"
        )
    step: Any = energy.ability("step", names[0])
    length = int(energy.spaces[names[0]].shape[0])
    known = 0 if prompt is None else prompt.shape[1]
    if prompt is not None and (prompt.ndim != 2 or prompt.dtype != torch.int64):
        raise ShapeError(f"prompt must be int64 (B, P), got {prompt.dtype} {tuple(prompt.shape)}")
    new = length - known if new is None else new
    if new < 1 or known + new > length:
        raise ShapeError(
            f"{type(energy).__name__} has sequences of at most {length} symbols; a prompt of {known} "
            f"leaves room for {length - known}, got max_new_tokens={new}"
        )
    begin = getattr(energy, "begin", None)
    if begin is not None:  # the prompt in one pass
        return step, begin(prompt, known + new, **given)
    increments, state = step(None, **given)
    rows = state.rows if prompt is None else len(prompt)
    if state.rows != rows:
        increments, state = spread(increments, state, rows)
    for t in range(known):
        assert prompt is not None
        increments, state = step(state.append(prompt[:, t]), **given)
    order = tuple(at for at in state.order if at < known + new)
    value = state.value[:, : known + new]
    return step, (increments, StepState(value, state.position, order, state.memory))


@dataclass(frozen=True)
class _Chooser:
    """How a symbol is drawn from energies ``(B, K)``."""

    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    penalty: float
    generator: torch.Generator | None

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ValueError(f"temperature must be at least 0, got {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k keeps at least one symbol, got {self.top_k}")
        for name, p in (("top_p", self.top_p), ("min_p", self.min_p)):
            if p is not None and not 0 < p <= 1:
                raise ValueError(f"{name} is a proportion in (0, 1], got {p}")
        if not self.penalty > 0:
            raise ValueError(f"repetition_penalty must be positive, got {self.penalty}")

    def scores(self, increments: Tensor, seen: Tensor) -> Tensor:
        """Scores ``(B, K)`` of which the softmax is drawn from; ``seen`` ``(B, t)``."""
        scores = -increments
        if self.penalty != 1 and seen.shape[1]:
            scores = scores.scatter(1, seen, self.penalty * scores.gather(1, seen))
        scores = scores / self.temperature
        if self.top_k is not None and self.top_k < scores.shape[1]:
            least = scores.topk(self.top_k, -1).values[:, -1:]
            scores = scores.masked_fill(scores < least, -math.inf)
        if self.top_p is not None and self.top_p < 1:
            ordered, order = torch.sort(scores, dim=-1, descending=True, stable=True)
            p = ordered.softmax(-1)
            enough = p.cumsum(-1) - p >= self.top_p  # without it the better ones reach p already
            scores = scores.masked_fill(enough.scatter(1, order, enough), -math.inf)
        if self.min_p is not None:
            p = scores.softmax(-1)
            scores = scores.masked_fill(p < self.min_p * p.amax(-1, keepdim=True), -math.inf)
        return scores

    def __call__(self, increments: Tensor, seen: Tensor, generator: torch.Generator) -> Tensor:
        p = self.scores(increments, seen).softmax(-1).to(generator.device)
        return torch.multinomial(p, 1, generator=generator)[:, 0].to(increments.device)


def _sampled(
    step: Step,
    given: Mapping[str, Any],
    increments: Tensor,
    state: StepState,
    choose: _Chooser,
    end: int | None,
    n: int,
) -> Decoded:
    generator = choose.generator or torch.Generator().manual_seed(0)
    over = torch.zeros(state.rows, dtype=torch.bool, device=increments.device)
    lengths = torch.full_like(over, state.position, dtype=torch.int64)
    each = []
    while True:
        seen = state.value[:, list(state.order[: state.position])]
        symbol = choose(increments, seen, generator)
        if end is not None:
            symbol = torch.where(over, end, symbol)
        logp = (-increments).log_softmax(-1).gather(1, symbol[:, None])[:, 0]
        each.append(torch.where(over, 0.0, logp))
        lengths = lengths + (~over).long()
        if end is not None:
            over = over | (symbol == end)
        state = state.append(symbol)
        if state.done:
            break
        if end is not None and bool(over.all()):
            state = state.filled(end)
            break
        increments, state = step(state, **given)
    tokens = torch.stack(each, 1)
    return Decoded(
        state.value.unflatten(0, (-1, n)), lengths.unflatten(0, (-1, n)),
        tokens.sum(1).unflatten(0, (-1, n)), tokens.unflatten(0, (-1, n)),
    )  # fmt: skip

r"""Balanced samples of boxes, whose choice is a function of a key, the row's content and the place.

Box a of row i has the number :math:`u_{ia} = \mathrm{mix}(w_i + (a+1)\,g)` in [0, 1), where the word
:math:`w_i` mixes the key of the step with the content of the row. So a picture that stands twice in a
batch has the same boxes chosen twice, which makes a weight of 2 the row twice, and a run that was
interrupted goes on with the same choices.
"""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.compute.random import GOLDEN, Key, RandomState
from groundstate.compute.weight_line.hashing_torch import _shift, _signed, mix64_torch

_GOLDEN = _signed(GOLDEN)


def row_words(content: Tensor, key: Tensor | RandomState = None) -> Tensor:
    """One 64-bit word for each row, of its content and a key, ``(B,)``.

    Parameters
    ----------
    content : Tensor of int64, ``(B,)``, such as hashes of the rows
    key : one 64-bit word as a tensor of int64, or a random state
    """
    word = key if isinstance(key, Tensor) else torch.tensor(_signed(Key.of(key).low))
    return mix64_torch(content ^ mix64_torch(word.to(content.device)))


def uniforms(words: Tensor, n: int, stream: int = 0) -> Tensor:
    """n numbers in [0, 1) for each word, ``(B, n)`` float32; streams do not share numbers.

    >>> u = uniforms(torch.tensor([3, 3, 4]), 5)
    >>> torch.equal(u[0], u[1]), torch.equal(u[0], u[2])
    (True, False)
    """
    place = torch.arange(1, n + 1, device=words.device) * _GOLDEN
    own = mix64_torch(words + _signed(stream * GOLDEN % 2**64))[:, None]
    return _shift(mix64_torch(own + place), 40).to(torch.float32) * 2.0**-24


def balanced_sample(
    labels: Tensor, n: int = 256, fraction: float = 0.5, *, u: Tensor | None = None,
    random_state: RandomState = None,
) -> Tensor:  # fmt: skip
    """Choose n boxes of each row, at most a fraction of them positive; the rest are negatives.

    Parameters
    ----------
    labels : Tensor, ``(..., A)``
        Positive where > 0, negative where 0, left out where < 0.
    n : boxes of a row at most; fewer positives are made up for by negatives
    fraction : of positives at most
    u : numbers in [0, 1) of the same shape, of which the largest are chosen; drawn from
        ``random_state`` where None

    Returns
    -------
    Tensor of bool, ``(..., A)``

    Examples
    --------
    >>> labels = torch.tensor([[1] + [0] * 6 + [-1], [1] * 6 + [0, 0]])
    >>> chosen = balanced_sample(labels, 4, random_state=0)
    >>> chosen.sum(1).tolist(), (chosen & (labels > 0)).sum(1).tolist()
    ([4, 4], [1, 2])
    """
    if n < 1 or not 0 < fraction <= 1:
        raise ValueError(f"n is at least 1 and fraction in (0, 1], got n={n}, fraction={fraction}")
    if u is None:
        generator = Key.of(random_state).torch(labels.device)
        u = torch.rand(labels.shape, generator=generator, device=labels.device)
    positive = _largest(u, labels > 0, int(n * fraction))
    return positive | _largest(u, labels == 0, n, n - positive.sum(-1, keepdim=True))


def _largest(u: Tensor, allowed: Tensor, most: int, wanted: Tensor | None = None) -> Tensor:
    """The allowed places with the largest numbers: ``most`` of each row, or ``wanted`` of its own."""
    most = min(int(u.shape[-1]), most)
    chosen = torch.zeros_like(allowed)
    if most < 1:
        return chosen
    value, place = torch.where(allowed, u, -1.0).topk(most, -1)
    good = value >= 0
    if wanted is not None:
        good = good & (torch.arange(most, device=u.device) < wanted)
    return chosen.scatter(-1, place, good)

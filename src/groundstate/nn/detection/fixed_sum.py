r"""Sums into places by whole numbers: additions that may race, and give the same bits in any order."""

from __future__ import annotations

import torch
from torch import Tensor


def fixed_sum(values: Tensor, place: Tensor, size: int) -> Tensor:
    r""":math:`s_j = \sum_{i: p_i = j} v_i`, each value rounded to :math:`2^{-b}` of the largest.

    A value times a power of two is rounded to a whole number of 64 bits, and whole numbers add up to the
    same sum in every order; b is as large as n of them can be added, 62 less the digits of n. If one
    value is not finite, no sum is.

    Parameters
    ----------
    values : ``(n,)``
    place : ``(n,)`` from 0 to size − 1, or negative for none
    size : number of sums

    Returns
    -------
    ``(size,)``

    Examples
    --------
    >>> fixed_sum(torch.tensor([1.0, 0.5, 3.0]), torch.tensor([2, 2, -1]), 3)
    tensor([0.0000, 0.0000, 1.5000])
    """
    if not len(values):
        return values.new_zeros(size)
    largest = values.abs().amax().double()
    exponent = torch.frexp(largest).exponent  # the largest is below 2 to it
    digits = 62 - len(values).bit_length() - exponent
    half = digits // 2  # in two factors, as one alone overflows where all values are tiny
    up, more = torch.exp2(torch.stack((half, digits - half)).double())
    whole = (values.double() * up).mul_(more).round_().long()
    sums = whole.new_zeros(size + 1)
    sums.scatter_add_(0, place.where(place >= 0, size), whole)  # the last one collects the rest
    found = sums[:size].double().div_(up).div_(more)
    return found.add_(largest - largest).to(values.dtype)

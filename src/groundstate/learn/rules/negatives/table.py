r"""Negative sources and reductions: the two choices behind every contrast R.

A source says *which* values are compared with the data, a reduction how their energies become one
number per row:

=====================  =============================================  =======================
source                 negatives                                      named rule
=====================  =============================================  =======================
``All``                every value                                    Perceptron (min), SoftMin
``Wrong``              every value but the row's own                  Margin (min, hinge)
``InBatch``            the distinct values of the batch               InBatch (softmin)
``Proposal(q, n)``     draws from q, importance-weighted              Sampled (softmin)
``Chain(k)``           k sampler steps from the row's own value       ContrastiveDivergence (mean)
``Persistent``         chains that go on from step to step            PersistentCD (mean)
``Generator(g)``       g(ε)                                           Adversarial (mean)
=====================  =============================================  =======================
"""

from __future__ import annotations

from groundstate.learn.rules.negatives.chains import Chain, Persistent
from groundstate.learn.rules.negatives.generators import Generator
from groundstate.learn.rules.negatives.sources import (
    All,
    InBatch,
    Negatives,
    Proposal,
    Reduce,
    Source,
    Wrong,
    evaluate,
    reduce,
)

__all__ = [
    "All",
    "Chain",
    "Generator",
    "InBatch",
    "Negatives",
    "Persistent",
    "Proposal",
    "Reduce",
    "Source",
    "Wrong",
    "evaluate",
    "reduce",
]

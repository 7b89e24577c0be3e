"""INFER: hold what is given, then minimise, marginalise or sample the rest."""

from groundstate.infer.base import (
    Draws,
    FreeEnergy,
    Method,
    Minimum,
    Query,
    ask,
)
from groundstate.infer.chain import Chain
from groundstate.infer.closed import ClosedForm
from groundstate.infer.dispatch import (
    explain,
    infer,
    log_partition,
    marginalise,
    minimise,
    posterior,
    sample,
)
from groundstate.infer.enumerate import Enumerate
from groundstate.infer.laws import ListedLaw

__all__ = [
    "Chain",
    "ClosedForm",
    "Draws",
    "Enumerate",
    "FreeEnergy",
    "ListedLaw",
    "Method",
    "Minimum",
    "Query",
    "ask",
    "explain",
    "infer",
    "log_partition",
    "marginalise",
    "minimise",
    "posterior",
    "sample",
]

"""INFER: hold what is given, then minimise, marginalise or sample the rest."""

from groundstate.infer.ancestral import Ancestral
from groundstate.infer.base import (
    Draws,
    FreeEnergy,
    Method,
    Minimum,
    Query,
    ask,
)
from groundstate.infer.chain import Chain
from groundstate.infer.chains import Chains, run_chains
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
from groundstate.infer.gibbs import Gibbs
from groundstate.infer.hmc import HMC
from groundstate.infer.kernels import Kernel, State, Target, kernel_matrix
from groundstate.infer.langevin import Langevin
from groundstate.infer.laws import ListedLaw
from groundstate.infer.metropolis import Metropolis

__all__ = [
    "Ancestral",
    "Chain",
    "Chains",
    "ClosedForm",
    "Draws",
    "Enumerate",
    "FreeEnergy",
    "Gibbs",
    "HMC",
    "Kernel",
    "Langevin",
    "ListedLaw",
    "Method",
    "Metropolis",
    "Minimum",
    "Query",
    "State",
    "Target",
    "ask",
    "explain",
    "infer",
    "kernel_matrix",
    "log_partition",
    "marginalise",
    "minimise",
    "posterior",
    "run_chains",
    "sample",
]

r"""Contrastive divergence: let the model dream for a few steps, and raise the dreams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from groundstate.infer.base import Method
from groundstate.learn.base import Latent
from groundstate.learn.rules.contrast import Contrast
from groundstate.learn.rules.inner import suggested
from groundstate.learn.rules.negatives.chains import Chain, Persistent
from groundstate.learn.rules.negatives.replay import Replay
from groundstate.learn.rules.negatives.tempered import Tempered
from groundstate.registry import rules


@rules.register(
    formula=r"\nabla L = \nabla F(x) - \nabla F(x^-),\ x^- = K^k(x)",
    make=lambda energy: ContrastiveDivergence(approximate=suggested(energy)),
)
class ContrastiveDivergence(Contrast):
    r""":math:`L = F(x) - \operatorname{mean} F(x^-)`. Lowers e on the data, raises e where k steps
    of a sampler lead from the data.

    :math:`x^-` is held fixed, so only the gradient means something (``is_objective`` is False): it
    approaches that of maximum likelihood as k grows. :math:`F` is the free energy over latents.

    Parameters
    ----------
    k : int, default=1
        Kernel steps, started at the data row.
    kernel : Gibbs, Langevin, HMC or Metropolis, optional
        None takes Gibbs where every block is exact, MALA on reals, else Metropolis.
    n_chains : int, default=1
        Chains per row.
    over, latent, approximate
        See ``ContrastRule``.

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import BilinearEnergy
    >>> energy = BilinearEnergy(2, 2, scale=0.0)
    >>> terms = ContrastiveDivergence(k=1)(energy, {"x": torch.ones(4, 2)})
    >>> terms.is_objective, terms.loss.tolist()  # nothing is preferred yet
    (False, [0.0, 0.0, 0.0, 0.0])
    """

    def __init__(
        self,
        k: int = 1,
        kernel: Any = None,
        n_chains: int = 1,
        *,
        over: str | tuple[str, ...] | None = None,
        latent: Latent = "marginalise",
        approximate: Method | Iterable[Method] = (),
    ) -> None:
        super().__init__(
            Chain(k, kernel, n_chains), "mean", over=over, latent=latent, approximate=approximate
        )


@rules.register(
    formula=r"\nabla L = \nabla F(x) - \operatorname{mean}_c \nabla F(x_c)",
    make=lambda energy: PersistentCD(n_chains=16, approximate=suggested(energy)),
)
class PersistentCD(Contrast):
    r""":math:`L = F(x) - \operatorname{mean}_c F(x_c)`. Lowers e on the data, raises e where chains
    that never stop have got to.

    The chains are kept in buffers across steps and moved with the current θ, so that they sample
    the model better than chains restarted at the data; to converge, the step size must shrink.

    Parameters
    ----------
    n_chains : int, default=100
    k : int, default=1
        Kernel steps per learning step.
    reset_prob : float in [0, 1], default=0.0
        Chance of a chain to start afresh before a step (a replay buffer).
    kernel : sampler, optional
        As in ``ContrastiveDivergence``.
    temperatures : sequence of float, optional
        Rising from 1: chains run at each of them and change places (parallel tempering), so that those
        at 1, which are raised, get over hills; see ``Tempered``.
    over, latent, approximate
        See ``ContrastRule``.

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import BilinearEnergy
    >>> rule = PersistentCD(n_chains=5)
    >>> terms = rule(BilinearEnergy(3, 2), {"x": torch.ones(4, 3)})
    >>> rule.source.chains["x"].shape
    torch.Size([5, 3])
    """

    source: Persistent

    def __init__(
        self,
        n_chains: int = 100,
        k: int = 1,
        reset_prob: float = 0.0,
        *,
        kernel: Any = None,
        temperatures: Sequence[float] | None = None,
        over: str | tuple[str, ...] | None = None,
        latent: Latent = "marginalise",
        approximate: Method | Iterable[Method] = (),
    ) -> None:
        chains = (
            Persistent(n_chains, k, reset_prob, kernel)
            if temperatures is None
            else Tempered(temperatures, n_chains, k, reset_prob, kernel)
        )
        super().__init__(chains, "mean", over=over, latent=latent, approximate=approximate)

    stateful = True

    def config(self) -> dict[str, Any]:
        source = self.source
        made = {
            "n_chains": source.n_chains, "k": source.k, "reset_prob": source.reset_prob,
            "kernel": source.kernel, "over": self.over, "latent": self.latent,
            "approximate": self.approximate,
        }  # fmt: skip
        if isinstance(source, Tempered):
            made["temperatures"] = list(source.temperatures)
        return made

    def make_room(self, state: Mapping[str, Any]) -> None:
        self.source.make_room({name.removeprefix("source."): v for name, v in state.items()})


@rules.register(
    formula=r"\nabla L = \nabla F(x) - \operatorname{mean}_{c \in \text{buffer}} \nabla F(x_c)",
    make=lambda energy: ReplayCD(n_chains=32, k=2, approximate=suggested(energy)),
)
class ReplayCD(PersistentCD):
    r""":math:`L = F(x) - \operatorname{mean}_c F(x_c)`. Lowers e on the data, raises e where chains of
    a replay buffer have got to.

    In each step as many chains as there are rows are picked from the buffer, some start afresh, all
    move k steps and go back: a long memory at the price of a batch.

    Parameters
    ----------
    n_chains : int, default=10000
        Size of the buffer.
    k : int, default=20
        Kernel steps of the picked chains.
    reset_prob : float in [0, 1], default=0.05
    kernel : sampler, optional
        As in ``ContrastiveDivergence``.
    over, latent, approximate
        See ``ContrastRule``.

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import NetEnergy
    >>> rule = ReplayCD(n_chains=50, k=2)
    >>> terms = rule(NetEnergy(2), {"x": torch.ones(4, 2)})
    >>> rule.source.chains["x"].shape
    torch.Size([50, 2])
    """

    def __init__(
        self,
        n_chains: int = 10_000,
        k: int = 20,
        reset_prob: float = 0.05,
        *,
        kernel: Any = None,
        over: str | tuple[str, ...] | None = None,
        latent: Latent = "marginalise",
        approximate: Method | Iterable[Method] = (),
    ) -> None:
        super().__init__(
            n_chains,
            k,
            reset_prob,
            kernel=kernel,
            over=over,
            latent=latent,
            approximate=approximate,
        )
        self.source = Replay(n_chains, k, reset_prob, kernel)

r"""The autoencoder with sparse codes, :math:`\min \|x - Da\|^2 + \lambda\|a\|_1`, :math:`a = f(x)`."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.learn.base import Rule
from groundstate.learn.rules.codes.penalties import L1Code, RareCode
from groundstate.learn.rules.codes.reconstruction import Reconstruction
from groundstate.models.generative.autoencoders.base import AutoencoderBase
from groundstate.models.generative.autoencoders.coders import coder_pair
from groundstate.nn.blocks.activations import activation as make_activation
from groundstate.nn.blocks.mlp import ACTIVATIONS, MLP
from groundstate.nn.blocks.sparse import Dictionary, TopK
from groundstate.nn.heads.likelihoods import Likelihood
from groundstate.registry import models


@models.register(family="autoencoders", task="representation", role="generator")
class SparseAutoencoder(AutoencoderBase):
    r"""An autoencoder whose codes have few large entries; the code may be longer than a row.

    .. math:: \min \frac1n\sum_i -\log p(x_i \mid g(a_i)) + \Omega(a), \qquad a_i = f(x_i),

    with :math:`\Omega = \lambda\sum_j|a_{ij}|` ("l1"), :math:`\beta\sum_j\mathrm{KL}(B(\rho)\,\|\,
    B(\rho_j))` with the mean :math:`\rho_j` of entry j over the rows ("kl", codes in (0, 1)), or no penalty
    and the k largest entries alone ("topk"). The first layer of the decoder is a dictionary of atoms of
    length one, so that small codes with long atoms do not help.

    Parameters
    ----------
    n_components : int, default=64
        Entries of the code, atoms of the dictionary.
    penalty : "l1", "kl" or "topk"
    strength : float or None
        λ or β; None is 0.1 for "l1" and 1 for "kl".
    target : float, default=0.05
        ρ, for "kl".
    k : int, default=8
        Entries that stay, for "topk".
    code_activation : str or None
        Of the code; None is "sigmoid" for "kl" and "relu" for the others.
    hidden_layer_sizes : sequence of int, default=()

    Attributes
    ----------
    components_ : (n_components, n_outputs) array, the atoms, of models without hidden layers

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import SparseAutoencoder
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> model = SparseAutoencoder(10, penalty="topk", k=2, max_iter=20, random_state=0).fit(X)
    >>> int((model.transform(X) != 0).sum(1).max())
    2
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "penalty": [StrOptions({"l1", "kl", "topk"})],
        "strength": [Interval(Real, 0, None, closed="left"), None],
        "target": [Interval(Real, 0, 1, closed="neither")],
        "k": [Interval(Integral, 1, None, closed="left")],
        "code_activation": [StrOptions(set(ACTIVATIONS)), None],
    }
    wide_codes = True
    penalty: str
    strength: float | None
    target: float
    k: int
    code_activation: str | None

    def __init__(
        self,
        n_components: int = 64,
        hidden_layer_sizes: Any = (),
        activation: str = "relu",
        penalty: str = "l1",
        strength: float | None = None,
        target: float = 0.05,
        k: int = 8,
        code_activation: str | None = None,
        likelihood: Any = "squared",
        likelihood_scale: Any = 1.0,
        network: Any = None,
        solver: Any = "adam",
        learning_rate_init: float = 1e-3,
        batch_size: int = 128,
        max_iter: int = 200,
        alpha: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: float = 10,
        tol: float = 1e-4,
        warm_start: bool = False,
        scale: str | None = "auto",
        ema_decay: float | None = None,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    @property
    def _kind(self) -> str:
        if self.penalty == "kl" and self.code_activation not in (None, "sigmoid"):
            raise ValueError(
                "penalty='kl' compares means of entries in (0, 1), so code_activation must be 'sigmoid', "
                f"got {self.code_activation!r}"
            )
        return self.code_activation or ("sigmoid" if self.penalty == "kl" else "relu")

    def _coders(self, made: Likelihood, condition: int, key: Key) -> tuple[Any, Any]:
        if self.network is not None:
            return coder_pair(
                self.network, made, self._code, hidden=self._hidden, activation=self.activation,
                code_activation=self._kind, condition=condition, event=self.event_shape_, key=key,
            )  # fmt: skip
        hidden, k = self._hidden, self._code
        ends = made.n_inputs + condition, made.n_outputs
        first, second, third = (key.fold(name).torch() for name in ("encoder", "atoms", "decoder"))
        encoder: nn.Module = MLP(ends[0], hidden, k, self.activation, self._kind, generator=first)
        if self.penalty == "topk":
            encoder = nn.Sequential(encoder, TopK(self.k))
        back = hidden[::-1]
        decoder: nn.Module = Dictionary(
            k + condition, back[0] if back else ends[1], generator=second
        )
        if back:
            rest = MLP(back[0], back[1:], ends[1], self.activation, generator=third)
            decoder = nn.Sequential(decoder, make_activation(self.activation), rest)
        return encoder, decoder

    def _loss(self, energy: Energy) -> Rule:
        if self.penalty == "topk":
            return Reconstruction()
        if self.penalty == "l1":
            return Reconstruction(penalty=L1Code(0.1 if self.strength is None else self.strength))
        strength = 1.0 if self.strength is None else self.strength
        return Reconstruction(penalty=RareCode(self._code, strength, self.target))

    @property
    def components_(self) -> NDArray[Any]:
        decoder = self.energy_.decoder
        if not isinstance(decoder, Dictionary):
            raise AttributeError("there is no dictionary of rows behind hidden layers")
        atoms: Tensor = decoder.atoms[: self._code]
        return np.asarray(atoms.detach().cpu())

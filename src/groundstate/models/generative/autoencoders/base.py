"""What autoencoders share: a code, a likelihood of the reconstruction, draws of fitted codes."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.latent.deep.autoencoder import AutoencoderEnergy
from groundstate.energy.latent.deep.priors import NormalPrior
from groundstate.learn.base import History, Rule
from groundstate.learn.rules.codes.reconstruction import Reconstruction
from groundstate.models.base import Plan
from groundstate.models.generative.autoencoders.coders import LISTING_CODE, coder_pair
from groundstate.models.generative.filling import nearest_draws
from groundstate.models.generative.latent import LatentCode
from groundstate.models.generative.network import NetworkGenerator
from groundstate.models.generative.without_density import Absent
from groundstate.nn.heads.likelihoods import LIKELIHOODS, Likelihood, likelihood
from groundstate.nn.inspect.draw import Drawing
from groundstate.nn.inspect.draw_layers import draw_layers
from groundstate.nn.inspect.summary import summary

STEPS = 30  # of rows through the code and back, until missing cells rest
STARTS = 5  # of the most probable missing cells
LEVELS = ("categorical", "mixed")  # likelihoods that number the levels of categories themselves


class AutoencoderBase(LatentCode, NetworkGenerator):
    r"""Base of the autoencoders, :math:`z = f(x)`, :math:`\hat x = g(z)`.

    Parameters
    ----------
    n_components : int
        Length of the code.
    hidden_layer_sizes : sequence of int
        Units of the encoder's hidden layers, or maps of its convolutions; the decoder mirrors them.
    likelihood : str or Likelihood
        What a reconstruction says about a row: "squared", "gaussian", "student_t", "bernoulli",
        "discretized_logistic", "categorical" or "mixed" (``groundstate.nn.heads.likelihoods``).
    likelihood_scale : float, "learned" or "per_dim"
        Scale of a likelihood that has one.
    network : None, "conv", "mnist-listing" or a pair of modules
        Dense layers; convolutions for pictures; 784-128-64-12-3 with tanh and a sigmoid at the end;
        or an encoder and a decoder of your own.
    scale : "auto", "standard", "minmax", "unit" or None
        "auto" takes rows as they are for "bernoulli" and "mnist-listing", [-1, 1] for
        "discretized_logistic", and mean 0 and spread 1 for all else.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "likelihood": [StrOptions(set(LIKELIHOODS)), Likelihood],
        "likelihood_scale": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"learned", "per_dim"}),
        ],
        "network": [StrOptions({"conv", "mnist-listing"}), tuple, list, None],
        "scale": [StrOptions({"auto", "standard", "minmax", "unit"}), None],
    }

    log_prob_kind: Any = "none"
    score_samples: Any = Absent()
    log_prob: Any = Absent()
    n_components: int
    likelihood: Any
    likelihood_scale: Any
    energy_: AutoencoderEnergy
    wide_codes: ClassVar[bool] = False  # whether a code may be as long as a row

    # --- coding --------------------------------------------------------------------------

    @property
    def category_code(self) -> str:  # type: ignore[override]
        name = getattr(self.likelihood, "name", self.likelihood)
        return "levels" if name in LEVELS else "onehot"

    @property
    def _scaling(self) -> str | None:
        if self.scale != "auto":
            return self.scale
        name = getattr(self.likelihood, "name", self.likelihood)
        if name == "bernoulli" or self.network == "mnist-listing":
            return None
        return "minmax" if name == "discretized_logistic" else "standard"

    # --- learning ------------------------------------------------------------------------

    @property
    def _code(self) -> int:
        return LISTING_CODE if self.network == "mnist-listing" else self.n_components

    def _made_likelihood(self, x: Tensor) -> Likelihood:
        options = {}
        if self.likelihood in ("gaussian", "student_t", "mixed"):
            options = {"scale": self.likelihood_scale}
        elif self.likelihood == "discretized_logistic":
            learned = self.likelihood_scale if self.likelihood_scale != 1.0 else "per_dim"
            options = {"scale": learned}
        made = likelihood(self.likelihood, x.shape[1], self.levels_, **options)
        made.check(x)
        return made

    def _coders(self, made: Likelihood, condition: int, key: Key) -> tuple[Any, Any]:
        return coder_pair(
            self.network, made, self._code, hidden=self._hidden, activation=self.activation,
            condition=condition, event=self.event_shape_, key=key,
        )  # fmt: skip

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> Energy:  # type: ignore[override]
        made = self._made_likelihood(x)
        k, d = self._code, made.n_inputs
        if k >= d > 1 and not self.wide_codes:
            warnings.warn(
                f"a code of {k} numbers holds rows of {d} as they are, so nothing has to be learned; use "
                f"n_components below {d}, noise (DenoisingAutoencoder) or a penalty "
                "(SparseAutoencoder, ContractiveAutoencoder)",
                stacklevel=2,
            )
        q = 0 if y is None else y.shape[1]
        return AutoencoderEnergy(*self._coders(made, q, key), made, NormalPrior(k), q)

    def _loss(self, energy: Energy) -> Rule:
        return Reconstruction()

    def _run(self, plan: Plan, data: Any, weight: Any, callbacks: Any, checked: bool) -> History:
        history = super()._run(plan, data, weight, callbacks, checked)
        energy: Any = plan.energy
        energy.eval()
        with torch.no_grad():
            parts = self._blocks(data["x"], data.get("y"))
            energy.settle(torch.cat([energy.encode(x, y) for x, y in parts]), weight)
        return history

    # --- answers -------------------------------------------------------------------------

    def _encode(self, x: Tensor, y: Tensor | None) -> Tensor:
        return self.energy_.encode(x, y)

    def _decode(self, z: Tensor, y: Tensor | None) -> Tensor:
        return self.energy_.likelihood.mean(self.energy_.decode(z, y))

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        z = self.energy_.prior.draw(n, y, T=T, generator=generator)
        return self._around(self.energy_.decode(z, y), generator), z

    def _around(self, out: Tensor, generator: torch.Generator) -> Tensor:
        """A row of the decoder's numbers: drawn, or their mean where they are no distribution."""
        made = self.energy_.likelihood
        return made.sample(out, generator) if made.is_normalised else made.mean(out)

    def _rows_around(self, z: Tensor, y: Tensor | None, generator: torch.Generator) -> Tensor:
        return self._around(self.energy_.decode(z, y), generator)

    @property
    def _cell_variance(self) -> float | None:
        return self.energy_.likelihood.cell_variance()

    def _energies(self, x: Tensor, y: Tensor | None, z: Tensor | None) -> Tensor:
        y = self._contexts_of(None, x) if y is None else y
        z = self.energy_.encode(x, y) if z is None else z
        return self.energy_(x=x, z=z) if y is None else self.energy_(x=x, z=z, y=y)

    def _fill(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, how: str, generator: torch.Generator
    ) -> Tensor:
        """Rows go through the code and back until their missing cells rest; for the most probable
        ones from several starts, of which the least lost row stays."""
        if how == "sample":
            start = nearest_draws(self, x, unknown, y, generator)
            found = self._rest(start, x, unknown, y, generator)
            return torch.where(unknown.all(1, keepdim=True), start, found)
        with torch.no_grad():
            mean = self._decode(self.energy_.prior.means.expand(len(x), -1), y)  # type: ignore[operator]
            rows, lost = x, x.new_full((len(x),), torch.inf)
            for i in range(STARTS):
                start = mean if i == 0 else nearest_draws(self, x, unknown, y, generator)
                found = self._rest(torch.where(unknown, start, x), x, unknown, y, None)
                own = self.energy_.reconstruction(found, self._encode(found, y), y)
                better = own < lost
                rows = torch.where(better[:, None], found, rows)
                lost = torch.where(better, own, lost)
        return rows

    @torch.no_grad()
    def _rest(
        self,
        start: Tensor,
        x: Tensor,
        unknown: Tensor,
        y: Tensor | None,
        generator: torch.Generator | None,
    ) -> Tensor:
        """Unknown cells after many rounds; drawn with a generator, else at their mean."""
        for _ in range(STEPS):
            out = self.energy_.decode(self._encode(start, y), y)
            new = self._mean(out) if generator is None else self._around(out, generator)
            if self.coding_.levels.any():  # a category is one level, not a share of several
                new = self.coding_.encode(self.coding_.decode(new))
            start = torch.where(unknown, new, x)
        return start

    def _mean(self, out: Tensor) -> Tensor:
        return self.energy_.likelihood.mean(out)

    def _fill_mean(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, generator: torch.Generator
    ) -> Tensor | None:
        return self._fill(x, unknown, y, "minimise", generator)

    def reconstruction_error(self, X: Any, y: Any = None) -> Any:
        r"""What each row loses on its way, :math:`-\log p(x \mid g(f(x)))` or
        :math:`\|x - g(f(x))\|^2` of coded rows, ``(n_samples,)``: large for rows unlike those of fit.
        """
        x, home = self._rows(X)
        c = self._contexts_of(y, x)
        with answering(self.energy_, x):
            parts = [
                self.energy_.reconstruction(rows, self._encode(rows, own), own)
                for rows, own in self._blocks(x, c)
            ]
            return home.give(torch.cat(parts))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean reconstruction error, so that more is better."""
        return -float(torch.as_tensor(self.reconstruction_error(X, y)).double().mean())

    def plot_network(self) -> Drawing:
        """The layers from rows to the code and back, as an SVG drawing."""
        energy = self.energy_
        pair = {
            "encoder": summary(energy.encoder, (energy.likelihood.n_inputs + energy.condition,)),
            "decoder": summary(energy.decoder, (self._code_size + energy.condition,)),
        }
        return draw_layers(pair)

"""The negative ELBO: worked numbers, its gradients, importance weighting, and its schedule."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from groundstate.compute.row_noise import _written_out, row_noise
from groundstate.energy import DeepLatentEnergy
from groundstate.energy.latent.deep.priors import MixturePrior, NormalPrior, Prior
from groundstate.errors import Unsupported
from groundstate.infer.variational.codes import CodeFamily, DiagonalNormal, FixedNormal, FullNormal
from groundstate.learn import NegativeELBO, Stochastic, fit
from groundstate.learn.rules.bounds.semi_supervised import SemiSupervisedELBO
from groundstate.nn.blocks.mlp import MLP
from groundstate.nn.heads.likelihoods import GaussianLikelihood

F64 = torch.float64


class Says(nn.Module):
    """An encoder that says the same of every row."""

    def __init__(self, *values: float) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.tensor(values, dtype=F64))

    def forward(self, x: Tensor) -> Tensor:
        return self.values.expand(len(x), -1)


class Square(nn.Module):
    def forward(self, z: Tensor) -> Tensor:
        return z.square()


def toy(prior: Prior | None = None, decoder: nn.Module | None = None) -> DeepLatentEnergy:
    """p(z) = N(0, 1), p(x | z) = N(z, 1)."""
    decoder = decoder or nn.Identity()
    return DeepLatentEnergy(decoder, GaussianLikelihood(1), prior or NormalPrior(1)).double()


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows(x: float, n: int = 1) -> dict[str, Tensor]:
    # rows that differ by a hair: equal rows would have equal noise
    return {"x": x + 1e-12 * torch.arange(n, dtype=F64)[:, None]}


@pytest.mark.parametrize("grad", ["pathwise", "stl", "score"])
@pytest.mark.parametrize(
    ("mean", "variance", "value"), [(0.5, 0.5, -1.515512), (0.0, 1.0, -1.918939)]
)
def test_worked_example(grad: str, mean: float, variance: float, value: float) -> None:
    encoder = Says(mean, math.log(variance))
    rule = NegativeELBO(encoder, n=200_000, grad=grad).double()  # type: ignore[arg-type]
    loss = rule(toy(), rows(1.0), generator=seeded()).loss
    assert -loss.item() == pytest.approx(value, abs=6e-3)


def test_the_posterior_gives_the_evidence_without_variance() -> None:
    """With all of log p(x, z) - log q(z) drawn, every draw gives log p(x)."""
    rule = NegativeELBO(Says(0.5, math.log(0.5)), n=7, grad="stl").double()
    loss = rule(toy(), rows(1.0), generator=seeded()).loss
    assert -loss.item() == pytest.approx(-1.515512, abs=1e-6)
    loss.backward()
    assert rule.encoder is not None
    (p,) = rule.encoder.parameters()
    assert p.grad is not None and float(p.grad.abs().max()) < 1e-12  # the landing sticks


def test_no_q_is_above_the_evidence() -> None:
    noise = seeded(1)
    for _ in range(10):
        mean, logvar = torch.randn(2, generator=noise, dtype=F64).tolist()
        rule = NegativeELBO(Says(mean, logvar), n=50_000).double()
        loss = rule(toy(), rows(1.0), generator=noise).loss
        assert -loss.item() <= -1.515512 + 0.02


def gradients(rule: NegativeELBO, energy: DeepLatentEnergy, x: float, n: int = 400) -> Tensor:
    """Gradients of the encoder's numbers, one per draw, ``(n, P)``."""
    found = []
    for seed in range(n):
        loss = rule(energy, rows(x, 8), generator=seeded(seed)).loss.mean()
        found.append(torch.autograd.grad(loss, list(rule.parameters()))[0])
    return torch.stack(found)


@pytest.mark.parametrize("grad", ["score", "stl"])
def test_gradients_have_the_same_mean(grad: str) -> None:
    energy = toy()
    exact = torch.tensor([0.2 + 0.2 - 1.0, -0.5 + 2 * 0.5 * math.exp(0.3)], dtype=F64)
    rule = NegativeELBO(Says(0.2, 0.3), n=4, grad=grad).double()  # type: ignore[arg-type]
    found = gradients(rule, energy, 1.0)
    error = found.std(0) / len(found) ** 0.5
    assert bool(((found.mean(0) - exact).abs() < 4 * error + 1e-9).all())


@pytest.mark.parametrize(("s", "mean"), [(1.0, -3.486), (0.5, -0.336), (2.0, -16.086)])
def test_pathwise_and_score_of_a_squared_decoder(s: float, mean: float) -> None:
    """E_q[-(1 - z^2)^2 / 2] in the mean .7 of q = N(.7, s^2), draw by draw."""
    energy = toy(decoder=Square())
    eps = torch.randn(400_000, generator=seeded(), dtype=F64)
    z = 0.7 + s * eps
    pathwise = 2 * z * (1 - z**2)
    log_p = -0.5 * (1 - z**2).square()
    score = log_p * eps / s
    assert float(pathwise.mean()) == pytest.approx(mean, rel=0.03, abs=0.02)
    assert float(score.mean()) == pytest.approx(mean, rel=0.06, abs=0.03)
    if s == 1.0:
        nodes, weights = _hermite(60)
        at = 0.7 + nodes
        for each, variance in (
            (2 * at * (1 - at**2), 107.4436),
            (-0.5 * (1 - at**2).square() * nodes, 456.4371),
        ):
            first = float((weights * each).sum())
            assert first == pytest.approx(-3.486, abs=1e-9)
            assert float((weights * each.square()).sum()) - first**2 == pytest.approx(
                variance, abs=1e-3
            )
    rule = NegativeELBO(Says(0.7), FixedNormal(scale=s), n=2000, beta=0.0).double()
    found = gradients(rule, energy, 1.0, 40)
    assert -float(found.mean()) == pytest.approx(mean, rel=0.02, abs=0.01)


def _hermite(n: int) -> tuple[Tensor, Tensor]:
    import numpy as np

    x, w = np.polynomial.hermite_e.hermegauss(n)
    return torch.from_numpy(x), torch.from_numpy(w / w.sum())


@pytest.mark.parametrize(
    ("family", "params"),
    [
        (DiagonalNormal(), (0.3, -0.2, 0.1, -0.4)),
        (FullNormal(), (0.3, -0.2, 0.1, 0.5, -0.4)),
        (FixedNormal(scale=0.7), (0.3, -0.2)),
    ],
)
def test_closed_divergence_is_the_mean_of_draws(
    family: CodeFamily, params: tuple[float, ...]
) -> None:
    prior = NormalPrior(2, 1.5).double()
    q = family.parts(torch.tensor([params], dtype=F64))
    z, log_q = family.draws(q, 200_000, seeded())
    closed = family.kl(q, prior)
    assert closed is not None
    drawn = (log_q() - prior.log_prob(z)).mean()
    assert float(closed.sum()) == pytest.approx(float(drawn), abs=0.01)
    assert torch.allclose(family.log_prob(q, z), log_q())


def test_one_component_is_the_normal_prior() -> None:
    z = torch.randn(5, 2, generator=seeded(), dtype=F64)
    one, normal = MixturePrior(2, 1).double(), NormalPrior(2).double()
    assert torch.allclose(one.log_prob(z), normal.log_prob(z))
    assert not any(p.requires_grad for p in one.parameters())


# --- importance weights ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "value", "error"), [(1, -2.4189, 0.03), (5, -2.284, 0.01), (50, -2.2666, 0.002)]
)
def test_importance_weighted_bound(n: int, value: float, error: float) -> None:
    """x = 2, q = N(1, 1): the bound rises to log p(x) = -2.265512 with the number of draws."""
    rule = NegativeELBO(Says(1.0, 0.0), n=n, objective="iwae").double()
    loss = rule(toy(), rows(2.0, 20_000), generator=seeded()).loss
    assert -loss.mean().item() == pytest.approx(value, abs=error)


@pytest.mark.parametrize(
    ("mean", "variance", "expected"),
    [(0.0, 1.0, 0.0134518), (1.0, 1.0, 0.00166607), (1.0, 0.5, 0.0)],
)
def test_variance_of_one_weight(mean: float, variance: float, expected: float) -> None:
    nodes, weights = _hermite(120)
    z = (mean + variance**0.5 * nodes)[:, None, None]
    family, energy = DiagonalNormal(), toy()
    q = family.parts(torch.tensor([[mean, math.log(variance)]], dtype=F64))
    e = energy(x=torch.full((120, 1), 2.0, dtype=F64), z=z[:, 0])
    w = (-e - family.log_prob(q, z)[:, 0]).exp()
    first = (weights * w).sum()
    assert math.log(float(first)) == pytest.approx(-2.265512, abs=1e-6)
    assert float((weights * w**2).sum() - first**2) == pytest.approx(expected, abs=2e-7)


def test_doubly_reparametrised_gradient_is_unbiased() -> None:
    """The mean is that of the plain gradient of the bound, and the variance is smaller."""
    energy, n = toy(), 6
    rule = NegativeELBO(Says(0.3, 0.2), n=n, objective="iwae").double()
    found = gradients(rule, energy, 1.0, 600)
    encoder = Says(0.3, 0.2)
    plain = []
    for seed in range(600):
        q = DiagonalNormal().parts(encoder(torch.zeros(8, 1)))
        z, log_q = DiagonalNormal().draws(q, n, seeded(seed))
        e = energy(x=torch.ones(8 * n, 1, dtype=F64), z=z.reshape(-1, 1)).view(n, 8)
        loss = -((-e - log_q()).logsumexp(0) - math.log(n)).mean()
        plain.append(torch.autograd.grad(loss, encoder.values)[0])
    other = torch.stack(plain)
    error = (found.var(0) / 600 + other.var(0) / 600).sqrt()
    assert bool(((found.mean(0) - other.mean(0)).abs() < 4 * error).all())
    assert bool((found.var(0) < other.var(0)).all())


def test_decoder_gets_the_plain_gradient() -> None:
    """Only the encoder's gradient is weighted twice."""
    energy = DeepLatentEnergy(nn.Linear(1, 1), GaussianLikelihood(1), NormalPrior(1)).double()
    rule = NegativeELBO(Says(0.3, 0.2), n=3, objective="iwae").double()
    batch, family = rows(1.0, 4), DiagonalNormal()
    loss = rule(energy, batch, generator=seeded()).loss.sum()
    grads = torch.autograd.grad(loss, list(energy.parameters()))
    q = family.parts(torch.tensor([[0.3, 0.2]] * 4, dtype=F64))
    z = family.place_noise(q, row_noise(batch["x"], 3, 1, seeded())).z
    e = energy(x=batch["x"].repeat(3, 1), z=z.reshape(12, 1)).view(3, 4)
    plain = (math.log(3) - (-e - family.log_prob(q, z)).logsumexp(0)).sum()
    for a, b in zip(grads, torch.autograd.grad(plain, list(energy.parameters())), strict=True):
        assert torch.allclose(a, b)


def test_equal_rows_have_equal_noise_on_any_device() -> None:
    x = torch.randn(6, 3, generator=seeded())
    noise = row_noise(x, 2, 4, seeded())
    words, seed = x.view(torch.int32), torch.randint(1 << 62, (1, 1), generator=seeded())
    assert torch.allclose(noise, _written_out(words, 2, 4, seed, x), atol=1e-6)
    assert torch.equal(row_noise(x[[3, 3, 1]], 2, 4, seeded()), noise[:, [3, 3, 1]])
    many = row_noise(torch.arange(20_000.0)[:, None], 1, 2, seeded())
    assert abs(many.mean().item()) < 0.02 and many.std().item() == pytest.approx(1.0, abs=0.02)


# --- weights of the divergence -----------------------------------------------------------


def test_free_bits_cost_nothing_below_the_floor() -> None:
    encoder = Says(0.5, 0.0)
    free = NegativeELBO(encoder, free_bits=1.0).double()
    plain = NegativeELBO(encoder, beta=0.0).double()
    once = free(toy(), rows(1.0), generator=seeded()).loss
    base = plain(toy(), rows(1.0), generator=seeded()).loss
    assert (once - base).item() == pytest.approx(1.0)  # the floor, which has no gradient


def test_weight_rises_over_the_epochs_and_is_saved() -> None:
    torch.manual_seed(0)
    energy = DeepLatentEnergy(MLP(1, (4,), 2), GaussianLikelihood(2), NormalPrior(1))
    rule = NegativeELBO(MLP(2, (4,), 2), beta=2.0, warm_up=4)
    assert float(rule.kl_weight) == 0.0
    x = torch.randn(20, 2)
    history = fit(energy, {"x": x}, rule, Stochastic(max_epochs=3, tol=None), random_state=0)
    assert history.extra["kl_weight"] == [0.5, 1.0, 1.5]
    again = NegativeELBO(MLP(2, (4,), 2), beta=2.0, warm_up=4)
    again.load_state_dict(rule.state_dict())
    assert float(again.kl_weight) == 1.5 and int(again.epochs) == 3


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"n": 0}, "at least one draw"),
        ({"grad": "exact"}, "grad must be one of"),
        ({"beta": -1.0}, "cannot be negative"),
        ({"objective": "iwae", "beta": 2.0}, "one weight for everything"),
    ],
)
def test_refusals(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        NegativeELBO(None, **settings)  # type: ignore[arg-type]


def test_no_encoder_anywhere() -> None:
    with pytest.raises(Unsupported, match="there is no encoder"):
        NegativeELBO(None).require(toy(), rows(1.0))


# --- labels that are partly known --------------------------------------------------------


def conditional() -> tuple[DeepLatentEnergy, SemiSupervisedELBO]:
    energy = DeepLatentEnergy(nn.Linear(3, 1), GaussianLikelihood(1), NormalPrior(1), condition=2)
    encoder, classifier = nn.Linear(3, 2), nn.Linear(1, 2)
    prior = torch.tensor([0.3, 0.7]).log()
    rule = SemiSupervisedELBO(encoder, classifier, prior, n=20_000, alpha=0.5)
    return energy.double(), rule.double()


def test_unknown_labels_are_summed_over() -> None:
    torch.manual_seed(0)
    energy, rule = conditional()
    x = torch.tensor([[0.4]], dtype=F64)
    labels = torch.eye(2, dtype=F64)
    unknown = rule(energy, {"x": x, "y": torch.zeros(1, 2, dtype=F64)}, generator=seeded()).loss
    log_q = rule.classifier(x).log_softmax(1)[0].detach()
    each = [
        NegativeELBO.loss(rule, energy, x, labels[[c]], seeded()).item() - float(rule.log_prior[c])
        for c in range(2)
    ]
    expected = sum(float(log_q[c].exp()) * (each[c] + float(log_q[c])) for c in range(2))
    assert unknown.item() == pytest.approx(expected, abs=0.02)
    known = rule(energy, {"x": x, "y": labels[[1]]}, generator=seeded()).loss
    assert known.item() == pytest.approx(each[1] - 0.5 * float(log_q[1]), abs=0.02)

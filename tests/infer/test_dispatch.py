from __future__ import annotations

import math

import pytest
import torch
from scipy import stats
from tests.infer.helpers_infer import (
    F64,
    Chain3,
    Quadratic,
    Spins,
    bilinear,
    close,
    linear_gaussian,
    seed,
)
from torch import Tensor

from groundstate.energy import (
    Binary,
    CentroidEnergy,
    Energy,
    Finite,
    LinearEnergy,
    NetEnergy,
    Real,
    Sequence,
    TableEnergy,
    offers,
)
from groundstate.errors import ShapeError, Unsupported
from groundstate.infer import (
    ClosedForm,
    Enumerate,
    Gradient,
    Importance,
    ListedDistribution,
    Quadrature,
    Variational,
    explain,
    infer,
    log_partition,
    marginalise,
    minimise,
    posterior,
    sample,
)
from groundstate.infer.dispatch import choose
from groundstate.math.distributions.operations import draw


def chosen(energy: Energy, op: str, free, given=None) -> str:
    return type(choose(energy, op, free, given)).__name__


def test_the_fixed_order_of_methods():
    g, b, c = linear_gaussian(), bilinear(), Chain3()
    table = [
        (g, "minimise", "z", "ClosedForm"),
        (c, "minimise", "y", "Chain"),
        (Spins(4), "minimise", "x", "Enumerate"),
        (Spins(30), "minimise", "x", "Coordinate"),
        (Quadratic(), "minimise", "x", "Gradient"),
        (b, "marginalise", "z", "ClosedForm"),
        (c, "marginalise", "y", "Chain"),
        (Spins(4), "marginalise", "x", "Enumerate"),
        (g, "sample", "z", "ClosedForm"),
        (c, "sample", "y", "Chain"),
        (Spins(4), "sample", "x", "Enumerate"),
        (Spins(30), "sample", "x", "Gibbs"),
        (Quadratic(), "sample", "x", "HMC"),
    ]
    for energy, op, free, name in table:
        assert chosen(energy, op, free) == name, (type(energy).__name__, op)


def test_nothing_approximate_is_chosen_silently_for_sums():
    with pytest.raises(Unsupported) as caught:
        marginalise(Quadratic(), "x")
    message = str(caught.value)
    for word in ("marginalise x of Quadratic exactly", "ClosedForm: no log_partition", "Quadrat"):
        assert word in message
    found = marginalise(Quadratic(), "x", method=Quadrature())
    assert found.kind == "estimate" and found.stderr is not None


def test_explain_lists_every_method_with_a_verdict():
    verdicts = dict(explain(Quadratic(), "marginalise", "x"))
    assert verdicts["Quadrature"] == "runs, approximate"
    assert verdicts["Enumerate"].startswith("cannot: 'x' in Real(2) has infinitely many values")
    verdicts = dict(explain(bilinear(), "marginalise", "z"))
    assert verdicts["ClosedForm"] == "runs, exact"
    with pytest.raises(ValueError, match="operation must be one of minimise, marginalise, sample"):
        explain(bilinear(), "guess", "z")


def test_a_named_method_that_cannot_run_says_who_can():
    with pytest.raises(
        Unsupported, match=r"Gradient cannot minimise x of Spins: .*would run: Enum"
    ):
        minimise(Spins(3), "x", method=Gradient())
    with pytest.raises(Unsupported, match="Gradient cannot marginalise"):
        marginalise(Spins(3), "x", method=Gradient())


def test_questions_are_checked():
    e = LinearEnergy(2, 3)
    x = torch.zeros(4, 2)
    with pytest.raises(ValueError, match="has no variable 'w'; its variables are x, y"):
        minimise(e, "w", {"x": x})
    with pytest.raises(ValueError, match="'x' of LinearEnergy is neither free nor given"):
        minimise(e, "y")
    with pytest.raises(ValueError, match="'x' is both free and given"):
        minimise(e, ("x", "y"), {"x": x})
    with pytest.raises(ShapeError, match=r"'x' must have shape \(B, 2\)"):
        minimise(e, "y", {"x": torch.zeros(4, 3)})
    with pytest.raises(TypeError, match=r"'x' is torch.float64 but LinearEnergy is torch.float32"):
        minimise(e, "y", {"x": x.double()})
    with pytest.raises(ValueError, match="temperature must be in"):
        marginalise(e, "y", {"x": x}, T=-1.0)
    with pytest.raises(ValueError, match="n must be at least 1"):
        sample(e, "y", {"x": x}, 0)


def test_forbidden_values_and_numbers_that_are_none():
    inf = math.inf
    e = TableEnergy(torch.tensor([inf, 2.0, 1.0]))
    assert minimise(e, "x")["x"].item() == 2
    assert posterior(e, "x").probs[0, 0].item() == 0.0
    close(posterior(e, "x", T=inf).probs, [[0.0, 0.5, 0.5]])
    drawn = sample(e, "x", n=500, method=Enumerate(), generator=seed())
    assert int((drawn["x"] == 0).sum()) == 0
    with pytest.raises(ValueError, match="every value of TableEnergy is forbidden"):
        minimise(TableEnergy(torch.tensor([inf, inf])), "x", method=Enumerate())

    class Broken(Energy):
        def __init__(self, value: float) -> None:
            super().__init__(y=Finite(2))
            self.value = value

        def forward(self, y: Tensor) -> Tensor:
            return torch.where(y == 1, self.value, 0.0)

    for value in (math.nan, -inf):
        with pytest.raises(FloatingPointError, match="of Broken is .* in row 0"):
            minimise(Broken(value), "y")


def test_adding_a_constant_changes_no_answer():
    class Shifted(Energy):
        def __init__(self, c: float) -> None:
            super().__init__(x=Binary(5))
            self.inner, self.c = Spins(5), c

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x=x) + self.c

    a, b = Shifted(0.0), Shifted(7.0)
    assert torch.equal(minimise(a, "x")["x"], minimise(b, "x")["x"])
    torch.testing.assert_close(posterior(a, "x").probs, posterior(b, "x").probs)
    close(marginalise(b, "x").value - marginalise(a, "x").value, [7.0], 1e-9)


def test_answers_are_detached_or_differentiable_as_promised():
    e = linear_gaussian()
    x = torch.randn(3, 2, generator=seed(), dtype=F64, requires_grad=True)
    assert not minimise(e, "z", {"x": x})["z"].requires_grad
    assert not minimise(e, "z", {"x": x}, method=Gradient()).energy.requires_grad
    assert not sample(e, "z", {"x": x}, generator=seed())["z"].requires_grad
    F = marginalise(e, "z", {"x": x}).value
    (g,) = torch.autograd.grad(F.sum(), x)
    assert float(g.abs().min()) > 0


def test_rows_do_not_depend_on_each_other():
    e = CentroidEnergy(4, 3).double()
    x = torch.randn(9, 3, generator=seed(), dtype=F64)
    order = torch.randperm(9, generator=seed(1))
    for op in (minimise, marginalise):
        whole, mixed = op(e, "z", {"x": x}), op(e, "z", {"x": x[order]})
        a = whole.value if op is marginalise else whole.energy
        b = mixed.value if op is marginalise else mixed.energy
        torch.testing.assert_close(a[order], b)


def test_energies_with_fixed_values_are_asked_like_given_ones():
    e = CentroidEnergy(3, 2).double()
    x = torch.randn(5, 2, generator=seed(), dtype=F64)
    torch.testing.assert_close(minimise(e.given(x=x), "z")["z"], minimise(e, "z", {"x": x})["z"])
    torch.testing.assert_close(
        marginalise(e.given(x=x), "z").value, marginalise(e, "z", {"x": x}).value
    )
    assert sample(e.given(x=x[:1]), "z", n=4, generator=seed())["z"].shape == (4, 1)


# --- posterior -------------------------------------------------------------------------------


def test_bayes_rule():
    prior = torch.tensor([0.5, 0.3, 0.2], dtype=F64)
    likelihood = torch.tensor([0.10, 0.40, 0.05], dtype=F64)
    e = TableEnergy(-(prior * likelihood).log())
    close(posterior(e, "x").probs, [[0.277778, 0.666667, 0.055556]])
    close((-marginalise(e, "x").value).exp(), [0.18])
    close(marginalise(e, "x").value, [1.714798])
    test = torch.tensor([[0.01 * 0.9, 0.99 * 0.1]], dtype=F64)
    close(posterior(TableEnergy(-test[0].log()), "x").probs[:, 0], [0.083333])


def test_posterior_kinds():
    e = bilinear()
    x = torch.ones(2, 2, dtype=F64)
    joint = posterior(e, ("x", "z"))
    assert isinstance(joint, ListedDistribution) and joint.probs.shape == (1, 16)
    drawn = draw(joint, 7, seed())
    assert drawn["x"].shape == (7, 1, 2)
    values = {n: v[:, 0] for n, v in drawn.items()}
    log_z = log_partition(e, ("x", "z"))
    torch.testing.assert_close(joint.log_prob(drawn)[:, 0], -e(**values) - log_z)
    distribution = posterior(e, "z", {"x": x})
    assert isinstance(distribution, torch.distributions.Distribution)
    assert isinstance(posterior(Spins(3), "x"), ListedDistribution)
    with pytest.raises(Unsupported, match="the distribution of x of Quadratic is not known"):
        posterior(Quadratic(), "x")
    approximate = posterior(Quadratic(), "x", method=Variational())
    assert approximate.batch_shape == (1,)


def test_log_partition_needs_a_temperature():
    with pytest.raises(ValueError, match=r"needs a temperature in \(0, inf\), got T=0"):
        log_partition(Spins(3), "x", T=0)


# --- sample ----------------------------------------------------------------------------------


@pytest.mark.parametrize("energy", [Spins(3, 2), Chain3()], ids=["enumerate", "chain"])
def test_exact_draws_follow_the_distribution(energy):
    (name,) = energy.spaces
    drawn = sample(energy, name, n=4000, generator=seed(1))
    assert drawn.kind == "exact" and drawn.energy.shape == (4000, 1)
    flat = drawn[name][:, 0].double()
    codes = (flat @ torch.tensor([4.0, 2.0, 1.0], dtype=F64)).long()
    p = (-energy(**{name: energy.spaces[name].enumerate(dtype=F64)})).softmax(0)
    counts = torch.bincount(codes, minlength=8)
    assert stats.chisquare(counts.numpy(), (4000 * p).numpy()).pvalue > 0.01
    torch.testing.assert_close(drawn.energy[:, 0], energy(**{name: drawn[name][:, 0]}))


def test_closed_form_draws_follow_the_distribution_at_any_temperature():
    e = linear_gaussian()
    x = torch.tensor([[2.0, 1.0]], dtype=F64)
    for T in (1.0, 3.0):
        distribution = posterior(e, "z", {"x": x}, T=T)
        z = sample(e, "z", {"x": x}, 2000, T=T, generator=seed(2))["z"].flatten()
        cdf = stats.norm(distribution.mean.item(), distribution.variance.sqrt().item()).cdf
        assert stats.kstest(z.numpy(), cdf).pvalue > 0.01


def test_draws_depend_on_the_generator_alone_and_not_on_chunks():
    e = Spins(4)
    state = torch.get_rng_state()
    a = sample(e, "x", n=50, generator=seed(3))["x"]
    b = sample(e, "x", n=50, method=Enumerate(chunk=16), generator=seed(3))["x"]
    assert torch.equal(a, b)
    assert torch.equal(state, torch.get_rng_state())


def test_frozen_and_uniform_draws():
    e = Spins(4)
    frozen = sample(e, "x", n=3, T=0)
    assert torch.equal(frozen["x"], minimise(e, "x")["x"].expand(3, 1, 4))
    hot = sample(e, "x", n=4000, T=math.inf, generator=seed())
    assert abs(hot["x"].mean().item() - 0.5) < 0.02
    boxed = NetEnergy(1, low=-1.0, high=1.0)
    u = sample(boxed, "x", n=2000, T=math.inf, generator=seed())["x"].flatten()
    assert stats.kstest(u.numpy(), stats.uniform(-1, 2).cdf).pvalue > 0.01
    forbidding = TableEnergy(torch.tensor([math.inf, 0.0]))
    with pytest.raises(Unsupported, match="forbids some values"):
        sample(forbidding, "x", n=100, T=math.inf, generator=seed())


def test_weighted_draws_carry_their_weights():
    q = torch.distributions.MultivariateNormal(torch.zeros(2, dtype=F64), 4 * torch.eye(2).double())
    drawn = sample(Quadratic(), "x", n=5000, method=Importance(q), generator=seed())
    assert drawn.kind == "weighted"
    w = drawn.log_weight.softmax(0)[..., None]
    cov = torch.einsum("nbd,nbe->de", w * drawn["x"], drawn["x"])
    torch.testing.assert_close(
        cov, torch.tensor([[2.0, 1.0], [1.0, 2.0]]).double(), atol=0.2, rtol=0
    )
    normalised = Importance(q, self_normalised=True)
    own = sample(Quadratic(), "x", n=500, method=normalised, generator=seed()).log_weight
    close(own.logsumexp(0), [0.0])


def test_infer_is_one_door():
    e = CentroidEnergy(3, 2).double()
    x = {"x": torch.zeros(2, 2, dtype=F64)}
    assert torch.equal(infer(e, x, "z")["z"], minimise(e, "z", x)["z"])
    assert torch.equal(
        infer(e, x, "z", "marginal", T=2.0).value, marginalise(e, "z", x, T=2.0).value
    )
    assert infer(e, x, "z", "sample", n=3, generator=seed())["z"].shape == (3, 2)
    with pytest.raises(ValueError, match="mode must be one of min, marginal, sample"):
        infer(e, x, "z", "argmax")


def test_listed_enumeration_respects_lengths():
    class Padded(Energy):
        context = ("lengths",)

        def __init__(self) -> None:
            super().__init__(y=Sequence(Finite(3), 4))
            self.register_buffer("u", torch.randn(4, 3, generator=seed(), dtype=F64))

        def forward(self, y: Tensor, lengths: Tensor) -> Tensor:
            inside = torch.arange(4) < lengths[:, None]
            e = self.u[torch.arange(4), y]
            return (e * inside).sum(1)

    lengths = torch.tensor([1, 3, 4])
    F = marginalise(Padded(), "y", {"lengths": lengths}).value
    per_step = -torch.logsumexp(-Padded().u, 1)
    expected = torch.stack([per_step[:n].sum() for n in lengths.tolist()])
    torch.testing.assert_close(F, expected)


def test_energies_that_hold_values_for_their_rows_are_asked_about_all_of_them():
    from groundstate.energy import SquaredEnergy
    from groundstate.infer import Proximity

    squared = SquaredEnergy(2, 2).double()
    y = torch.randn(6, 2, generator=seed(1), dtype=F64)
    start = torch.randn(6, 2, generator=seed(2), dtype=F64)
    spring = Proximity(squared.spaces["x"], 0.5).given(x0=start)
    held = minimise(squared.given(y=y) + spring, "x", method=Gradient(restarts=2))
    plain = minimise(
        squared + Proximity(squared.spaces["x"], 0.5),
        "x",
        {"y": y, "x0": start},
        method=Gradient(restarts=2),
    )
    torch.testing.assert_close(held["x"], plain["x"], atol=1e-6, rtol=0)


def test_closed_form_does_not_take_the_mode_of_a_mixture():
    e = CentroidEnergy(2, 1).double().marginal("z")
    assert ClosedForm().reason_against(e, "sample", "x") is None
    assert "mixture" in str(ClosedForm().reason_against(e, "minimise", "x"))
    assert chosen(e, "minimise", "x") == "Gradient"


def test_offers_with_conditions_are_followed():
    class Sometimes(Energy):
        def __init__(self, ready: bool) -> None:
            super().__init__(x=Real(1))
            self.ready = ready

        def forward(self, x: Tensor) -> Tensor:
            return (x - 1).square().sum(1)

        @offers.argmin("x", when=lambda e: e.ready)
        def best(self) -> Tensor:
            return torch.ones(1, 1)

    assert chosen(Sometimes(True), "minimise", "x") == "ClosedForm"
    assert chosen(Sometimes(False), "minimise", "x") == "Gradient"

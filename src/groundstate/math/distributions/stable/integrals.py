r"""Density and distribution function of standard stable distributions by Zolotarev's integrals.

For :math:`x > 0` (elsewhere mirrored, :math:`f(x; \alpha, \beta) = f(-x; \alpha, -\beta)`)

.. math:: f(x) = \frac{\alpha}{\pi|\alpha - 1|x}\int_{-\theta_0}^{\pi/2} g\,e^{-g}\,d\theta, \qquad
          g(\theta) = x^{\alpha/(\alpha-1)}V(\theta)

with a monotone V (Nolan 1997). The integrand is positive, so that nothing cancels and the logarithm
is right in the tails too. With :math:`\theta = -\theta_0 + L\sigma(t)` both ends lie at infinity,
where log g is linear in t.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from groundstate.math.distributions.calculus.quadrature import log_integral

REACH = 600.0  # of t; the logistic function is above the smallest number there
SMALLEST = 1e-100  # of |x|; the density is level long before
LARGEST = (
    1e9  # of |x| where alpha = 1; beyond, the leading term of the tail is right to nine digits
)
TINY = 1e-300
STEEP = 100.0  # exp(u) goes on as a line from here, so that searches have a slope to follow


def log_density(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """log f of the standard distribution (scale 1, loc 0, parametrisation S1), all of one shape."""
    x, alpha, beta = torch.broadcast_tensors(x, alpha, beta)
    one = alpha == 1
    if not bool(one.any()):
        return _general(x, alpha, beta)
    if bool(one.all()):
        return _unit(x, beta)
    safe = torch.where(one, 1.5, alpha)
    return torch.where(one, _unit(x, beta), _general(x, safe, beta))


def distribution_function(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """P(X ≤ x) of the standard distribution, all of one shape."""
    x, alpha, beta = torch.broadcast_tensors(x, alpha, beta)
    one = alpha == 1
    safe = torch.where(one, 1.5, alpha)
    if not bool(one.any()):
        return _general_cdf(x, alpha, beta)
    if bool(one.all()):
        return _unit_cdf(x, beta)
    return torch.where(one, _unit_cdf(x, beta), _general_cdf(x, safe, beta))


def _general(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    size, beta = _mirrored(x, beta)
    log_x = size.log()
    integral, length, _ = _angles(log_x, alpha, beta, density=True)
    inside = length > 1e-14
    const = alpha.log() - (alpha - 1).abs().log() - math.log(math.pi)
    return torch.where(inside, const - log_x + integral, -math.inf)


def _general_cdf(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    size, mirrored = _mirrored(x, beta)
    integral, length, theta0 = _angles(size.log(), alpha, mirrored, density=False)
    share = torch.where(length > 1e-14, integral.exp() / math.pi, 0.0)
    above = torch.where(alpha > 1, 1 - share, 0.5 - theta0 / math.pi + share).clamp(0, 1)
    return torch.where(x < 0, 1 - above, above)


def _mirrored(x: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    return x.abs().clamp(min=SMALLEST), torch.where(x < 0, -beta, beta)


def _angles(
    log_x: Tensor, alpha: Tensor, beta: Tensor, density: bool
) -> tuple[Tensor, Tensor, Tensor]:
    r""":math:`\log\int g e^{-g}d\theta`, or without the factor g; the length L; :math:`\theta_0`."""
    # near 2 the angle is taken from there, where the tangent is small and exact
    near_two = alpha > 1
    tangent = torch.tan(0.5 * math.pi * torch.where(near_two, alpha - 2, alpha))
    turn = torch.atan(beta * tangent)  # alpha * theta0
    theta0 = turn / alpha
    half = 0.5 * math.pi * torch.where(near_two, 2 - alpha, alpha)
    length = (0.5 * math.pi + theta0).clamp(min=0)
    rest_length = (0.5 * math.pi - theta0).clamp(min=0)  # pi - L
    full = torch.where(near_two, math.pi - half + turn, half + turn)  # A = alpha L
    rest_full = torch.where(near_two, half - turn, math.pi - half - turn).clamp(min=0)
    safe = torch.where(length > 1e-14, length, 1.0)
    full = torch.where(length > 1e-14, full, safe * alpha.clamp(max=1.0))
    log_cos = -0.5 * torch.log1p((beta * tangent).square()) / (alpha - 1)
    c = alpha / (alpha - 1)
    s = c * log_x
    args = [v.unsqueeze(-1) for v in (s, c, alpha, log_cos, safe, rest_length, full, rest_full)]

    def log_f(t: Tensor) -> Tensor:
        s, c, alpha, log_cos, L, rest_L, A, rest_A = args
        up, down = torch.sigmoid(t), torch.sigmoid(-t)
        log_sin = _log_sin(A * up, rest_A + A * down)
        log_cosine = _log_sin(L * down, rest_L + L * up)
        between = A * up + L * down
        rest = torch.where(
            alpha > 1, rest_A + (alpha - 1) * L * down, rest_L + (1 - alpha) * L * up
        )
        log_V = log_cos + c * (log_cosine - log_sin) + _log_sin(between, rest) - log_cosine
        bump = _bump(s + log_V)
        if density:
            return bump + logsigmoid(t) + logsigmoid(-t) + L.log()
        # by parts, the integral of e^-g is that of the same bump times the slope of log g
        cot_L = 1 / torch.tan(L * down)
        slope = c * (-L * cot_L - A / torch.tan(A * up)) + (A - L) / torch.tan(between) + L * cot_L
        side = torch.where(alpha > 1, logsigmoid(-t), logsigmoid(t))
        log_slope = (slope * up * down).abs().clamp(min=TINY).log()
        return bump + side + L.log() + log_slope

    wide = torch.full_like(log_x.detach(), REACH)
    return log_integral(log_f, -wide, wide), length, theta0


def _unit(x: Tensor, beta: Tensor) -> Tensor:
    """alpha = 1: Cauchy's where beta = 0."""
    centred, far = beta == 0, x.abs() > LARGEST
    size = torch.where(centred, 1.0, beta.abs())
    near = torch.where(far, torch.zeros_like(x), torch.where(beta < 0, -x, x))
    skewed = _unit_angles(near, size, density=True) - (2 * size).log()
    log_x = torch.where(far, x.abs(), 1.0).log()
    tail = ((1 + beta * x.sign()).clamp(min=TINY) / math.pi).log() - 2 * log_x
    cauchy = -math.log(math.pi) - torch.log1p(x.square())
    return torch.where(far, tail, torch.where(centred, cauchy, skewed))


def _unit_cdf(x: Tensor, beta: Tensor) -> Tensor:
    centred, far = beta == 0, x.abs() > LARGEST
    size = torch.where(centred, 1.0, beta.abs())
    near = torch.where(far, torch.zeros_like(x), torch.where(beta < 0, -x, x))
    share = _unit_angles(near, size, density=False).exp() / math.pi
    skewed = torch.where(beta < 0, 1 - share, share)
    cauchy = 0.5 + torch.atan(x) / math.pi
    tail = (1 + beta * x.sign()) / (math.pi * torch.where(far, x.abs(), 1.0))
    tail = torch.where(x > 0, 1 - tail, tail)
    return torch.where(far, tail, torch.where(centred, cauchy, skewed))


def _unit_angles(x: Tensor, beta: Tensor, density: bool) -> Tensor:
    s, b = (-0.5 * math.pi * x / beta).unsqueeze(-1), beta.unsqueeze(-1)

    def log_f(t: Tensor) -> Tensor:
        up, down = math.pi * torch.sigmoid(t), math.pi * torch.sigmoid(-t)
        level = 0.5 * math.pi * (1 - b) + b * up  # pi/2 + beta theta
        log_cosine = _log_sin(down, up)
        tangent = torch.where(t > 0, 1 / torch.tan(down), -1 / torch.tan(up))
        log_V = math.log(2 / math.pi) + level.log() - log_cosine + level * tangent / b
        bump = _bump(s + log_V) + math.log(math.pi)
        if density:
            return bump + logsigmoid(t) + logsigmoid(-t)
        steep = b / level + 2 * tangent + level / b * (1 + tangent.square())
        log_slope = (math.pi * steep).abs().clamp(min=TINY).log()
        return bump + 2 * logsigmoid(t) + logsigmoid(-t) + log_slope

    wide = torch.full_like(x.detach(), 0.5 * REACH)  # log g grows like e^t here
    return log_integral(log_f, -wide, wide, steps=75)


def _bump(u: Tensor) -> Tensor:
    """u − e^u, the exponential continued as a line."""
    return u - u.clamp(max=STEEP).exp() * (1 + (u - STEEP).clamp(min=0))


def _log_sin(y: Tensor, rest: Tensor) -> Tensor:
    """log sin y where ``rest`` is π − y, known to more digits than the difference."""
    return torch.minimum(y, rest).sin().log()

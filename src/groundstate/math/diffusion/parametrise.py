r"""What a denoiser predicts: noise, clean row, score or velocity, each an affine map of the others."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor

from groundstate.math.arrays import takes_arrays
from groundstate.math.diffusion.forward import Time, posterior
from groundstate.math.diffusion.schedule import NoiseSchedule

PredictionType = Literal["epsilon", "sample", "score", "v_prediction"]
PREDICTION_TYPES: tuple[PredictionType, ...] = ("epsilon", "sample", "score", "v_prediction")


def check_prediction_type(kind: str) -> None:
    if kind not in PREDICTION_TYPES:
        raise ValueError(
            f"prediction_type must be one of {', '.join(PREDICTION_TYPES)}, got {kind!r}"
        )


def clean_coefficients(a: Any, s: Any, kind: PredictionType) -> tuple[Any, Any]:
    r"""p and r of :math:`\hat x_0 = p\,x_t + r\,\text{prediction}` at signal a and noise s."""
    check_prediction_type(kind)
    if kind == "epsilon":
        return 1 / a, -s / a
    if kind == "sample":
        return 0.0 * a, 1.0 + 0.0 * a
    if kind == "score":
        return 1 / a, s * s / a
    return a / (a * a + s * s), -s / (a * a + s * s)


@takes_arrays("prediction", "xt", finite=False)
def convert(
    prediction: Any,
    xt: Any,
    t: Time,
    schedule: Any,
    source: PredictionType = "epsilon",
    target: PredictionType = "sample",
) -> Tensor:
    r"""One parametrisation as another, where :math:`x_t = a\,x_0 + s\,\epsilon`.

    :math:`\hat x_0 = (x_t - s\,\hat\epsilon)/a`, score :math:`= -\hat\epsilon/s`,
    :math:`v = a\,\epsilon - s\,x_0`.

    Parameters
    ----------
    prediction : in the parametrisation ``source``, ``(B, ...)``
    xt : noisy rows
    t : level, or one per row ``(B,)``
    schedule : a ``NoiseSchedule``, or a ``ContinuousSchedule`` with real t
    source, target : "epsilon", "sample" (x₀), "score" or "v_prediction"

    Examples
    --------
    >>> from groundstate.math.diffusion import NoiseSchedule, add_noise
    >>> x = add_noise([[1.0]], [[0.5]], 500, schedule := NoiseSchedule())
    >>> convert([[0.5]], x, 500, schedule)
    array([[1.]])
    """
    check_prediction_type(target)
    if source == target:
        out: Tensor = prediction
        return out
    a, s = schedule.signal_noise(t, xt)
    if {source, target} == {"epsilon", "score"}:  # also where nothing of the signal is left
        return -prediction / s if target == "score" else -prediction * s
    p, r = clean_coefficients(a, s, source)
    clean: Tensor = p * xt + r * prediction
    if target == "sample":
        return clean
    noise: Tensor = (xt - a * clean) / s
    if target == "epsilon":
        return noise
    return -noise / s if target == "score" else a * noise - s * clean


@takes_arrays("prediction", "xt", finite=False)
def reverse_mean(
    prediction: Any,
    xt: Any,
    t: Time,
    schedule: NoiseSchedule,
    prediction_type: PredictionType = "epsilon",
) -> Tensor:
    r"""Mean of :math:`p_\theta(x_{t-1}\mid x_t)`: that of the posterior at the predicted x₀.

    Parameters
    ----------
    prediction, xt, t, schedule, prediction_type : see ``convert``

    Examples
    --------
    >>> reverse_mean([[0.5]], [[1.0]], 1, NoiseSchedule())
    array([[0.99504975]])
    """
    clean = convert(prediction, xt, t, schedule, prediction_type, "sample")
    return posterior(clean, xt, t, schedule).mean

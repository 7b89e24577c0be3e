"""Which solver a linear machine takes, and which combinations have none."""

from __future__ import annotations

from typing import Any

from groundstate.learn import CrammerSinger, HingeDual, SquaredHingeL1, SquaredHingeNewton


def linear_solver(
    penalty: str, loss: str, dual: bool | str, joint: bool, max_iter: int, tol: float
) -> Any:
    """The solver of ``LinearSVC``'s penalty, loss and dual; ValueError where there is none."""
    if joint:
        return CrammerSinger(max_iter, tol)
    if penalty == "l1":
        if loss == "hinge" or dual is True:
            raise ValueError(
                f"penalty='l1' is solved in the primal for the squared hinge; got loss={loss!r}, "
                f"dual={dual!r}: use loss='squared_hinge' and dual='auto'"
            )
        return SquaredHingeL1(max_iter, 0.01 * tol)
    if loss == "hinge":
        if dual is False:
            raise ValueError(
                "loss='hinge' has kinks and is solved in the dual, got dual=False: use dual='auto'"
            )
        return HingeDual(max_iter, tol)
    return HingeDual(max_iter, tol) if dual is True else SquaredHingeNewton(max_iter)

"""What a family shares is said once: descriptions and constraints come from the nearest base."""

from __future__ import annotations

import inspect
import re
from typing import Any, ClassVar

import pytest

from groundstate import RandomForestRegressor, Ridge
from groundstate.models.base import EnergyEstimator
from groundstate.registry import models


def described(cls: Any, section: str) -> dict[str, str]:
    """Names in a section of a docstring, with what is said of each."""
    doc = inspect.cleandoc(cls.__doc__)
    found = re.search(rf"^{section}\n-+\n(.*?)(?=^\w+\n-{{3,}}|\Z)", doc, re.S | re.M)
    assert found is not None, f"{cls.__name__} has no section {section}"
    return {
        name.strip(): text
        for text in re.split(r"\n(?=\S)", found[1].strip())
        for name in text.partition("\n")[0].partition(" : ")[0].split(",")
    }


@pytest.mark.parametrize("name", models.names())
def test_every_parameter_is_described(name: str) -> None:
    cls = models[name].obj
    assert set(described(cls, "Parameters")) == set(inspect.signature(cls).parameters)


@pytest.mark.parametrize("name", models.names())
def test_what_every_fit_leaves_is_described(name: str) -> None:
    assert {"energy_", "history_", "n_features_in_"} <= set(
        described(models[name].obj, "Attributes")
    )


class Family(EnergyEstimator):
    """A family.

    Parameters
    ----------
    depth : int
        How deep.
    width : int

    Attributes
    ----------
    size_ : int
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"depth": [int], "width": [int]}


class Deep(Family):
    """A deep one.

    Parameters
    ----------
    width : float, in metres

    Examples
    --------
    None yet.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"width": [float]}

    def __init__(self, width: float = 2.0, *, depth: int = 3, kind: str = "a") -> None:
        self._keep(locals())


class Deeper(Deep):
    """Without a signature of its own."""


def test_own_words_stand_and_the_rest_is_inherited_with_its_own_default() -> None:
    found = described(Deep, "Parameters")
    assert list(found) == ["width", "depth"]  # nobody describes `kind`
    assert found["width"] == "width : float, in metres"
    assert found["depth"] == "depth : int, default=3\n    How deep."
    assert described(Deep, "Attributes")["size_"] == "size_ : int"
    assert Deep.__doc__ is not None and Deep.__doc__.endswith("None yet.\n")
    assert described(Deeper, "Parameters") == {
        **found,
        "width": "width : float, in metres, default=2.0",
    }
    assert 'default="a"' not in Deep.__doc__


def test_constraints_of_parameters_that_a_class_has() -> None:
    assert Deep._parameter_constraints == {"width": [float], "depth": [int]}
    assert Deeper._parameter_constraints == Deep._parameter_constraints
    assert "fit_intercept" in Ridge._parameter_constraints  # said for all models
    assert "fit_intercept" not in RandomForestRegressor._parameter_constraints


class Own(Deep):
    """With parameters of its own beside those of its base."""

    def __init__(self, height: float = 1.0) -> None:
        super().__init__(depth=7)
        self.height = height


def test_parameters_are_kept_as_they_are_given() -> None:
    assert vars(Deep(5.0)) == {"width": 5.0, "depth": 3, "kind": "a"}
    assert vars(Own()) == {"width": 2.0, "depth": 7, "kind": "a", "height": 1.0}
    assert Own(3.0).get_params() == {"height": 3.0}

"""Which generator makes rows like these, how faithful and how private."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.study.generators.job import GeneratorStudy as GeneratorStudy
    from groundstate.study.generators.job import study_generators as study_generators

lazy(__name__)

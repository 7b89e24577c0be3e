"""Which generator makes rows like these, how faithful and how private."""

from groundstate.study.generators.job import GeneratorStudy as GeneratorStudy
from groundstate.study.generators.job import study_generators as study_generators

"""EVALUATE: splits, metrics, scores with intervals, comparisons, the leaderboard."""

from __future__ import annotations

from groundstate.evaluate.audit.contamination import Contamination, contamination, perceptual_hash
from groundstate.evaluate.audit.leaks import Audit, audit
from groundstate.evaluate.audit.ledger import Adjusted, Ledger, Look, rows_id
from groundstate.evaluate.board.contest import Contest, judge_folder
from groundstate.evaluate.board.leaderboard import Leaderboard, Place
from groundstate.evaluate.board.ranked_table import Entry, Standings
from groundstate.evaluate.board.ranking import Ranked, rank
from groundstate.evaluate.calibration.recalibrate import Temperature, fit_temperature, recalibrate
from groundstate.evaluate.calibration.threshold import (
    ThresholdTable,
    TunedThreshold,
    bayes_threshold,
    threshold_table,
    tune_threshold,
)
from groundstate.evaluate.compare.baseline import Baseline, Baselines, baseline
from groundstate.evaluate.compare.friedman import Friedman, friedman
from groundstate.evaluate.compare.hypothesis_tests import (
    Comparison,
    corrected_t,
    holm,
    indistinguishable,
    mcnemar,
    paired_bootstrap,
    tied_with_best,
)
from groundstate.evaluate.compare.incumbent import Versus, versus
from groundstate.evaluate.compare.many_models import Ranking, rank_models
from groundstate.evaluate.compare.paired import PairedComparison, compare
from groundstate.evaluate.compare.recipes import LearnerComparison, compare_learners, five_by_two
from groundstate.evaluate.conformal.cv_plus import ConformalCV, conformal_cv
from groundstate.evaluate.conformal.split_conformal import Conformal, Intervals, Sets, conformal
from groundstate.evaluate.curves.capacity_curve import (
    CapacityCurve,
    capacity_curve,
    parameter_count,
)
from groundstate.evaluate.curves.capacity_sweep import CapacitySweep, capacity_sweep
from groundstate.evaluate.curves.diagnose import Diagnosis, diagnose
from groundstate.evaluate.curves.learning_curve import LearningCurve, learning_curve
from groundstate.evaluate.curves.power_law import PowerLaw, power_law
from groundstate.evaluate.curves.remedies import Remedy
from groundstate.evaluate.curves.validation_curve import ValidationCurve, validation_curve
from groundstate.evaluate.generators.densities import DensityAssessment, assess_density
from groundstate.evaluate.intervals.coefficients import InferenceTable, inference
from groundstate.evaluate.intervals.retrain import Retrained, retrain
from groundstate.evaluate.intervals.uncertainty import Uncertainty, uncertainty
from groundstate.evaluate.intervals.variation import VariationReport, variation_report
from groundstate.evaluate.metrics import METRICS, Metric, metric
from groundstate.evaluate.metrics.goodness import d2, mcfadden_r2, r2
from groundstate.evaluate.metrics.intervals import (
    Interval,
    bootstrap,
    bootstrap_metric,
    interval,
    student,
    wilson,
)
from groundstate.evaluate.metrics.scoring import all_scores, score
from groundstate.evaluate.pipeline import default_pipeline
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.scores import Scores
from groundstate.evaluate.splits.cross_validate import (
    CrossValidation,
    cross_validate,
    one_standard_error,
)
from groundstate.evaluate.splits.folds import Split, folds, train_test
from groundstate.evaluate.splits.leave_one_out import LeaveOneOut, loo
from groundstate.evaluate.splits.nested import NestedCV, nested_cv
from groundstate.evaluate.splits.pipeline_bootstrap import PipelineBootstrap, pipeline_bootstrap
from groundstate.evaluate.splits.three_way import SplitRows, split
from groundstate.evaluate.theory.bias_variance import BiasVariance, bias_variance
from groundstate.evaluate.theory.loss_decompositions import (
    bregman_parts,
    domingos_parts,
    log_parts,
    squared_parts,
    zero_one_parts,
)
from groundstate.evaluate.theory.noise_floor import Floor, noise_floor
from groundstate.evaluate.theory.pac_bayes import Guarantee, pac_bayes
from groundstate.evaluate.theory.selection_optimism import (
    SelectionOptimism,
    expected_winner,
    optimism_guide,
    selection_optimism,
)
from groundstate.evaluate.theory.structural_risk import StructuralRisk, srm
from groundstate.evaluate.theory.vc_dimension import shatters, vc_dimension

__all__ = [
    "Contest",
    "judge_folder",
    "Leaderboard",
    "Place",
    "Contamination",
    "contamination",
    "perceptual_hash",
    "CapacityCurve",
    "capacity_curve",
    "parameter_count",
    "Uncertainty",
    "uncertainty",
    "bregman_parts",
    "domingos_parts",
    "log_parts",
    "squared_parts",
    "zero_one_parts",
    "BiasVariance",
    "bias_variance",
    "Friedman",
    "Ranking",
    "friedman",
    "rank_models",
    "LearnerComparison",
    "compare_learners",
    "five_by_two",
    "Versus",
    "versus",
    "PairedComparison",
    "compare",
    "Remedy",
    "Floor",
    "noise_floor",
    "Diagnosis",
    "diagnose",
    "PowerLaw",
    "power_law",
    "ValidationCurve",
    "validation_curve",
    "LearningCurve",
    "learning_curve",
    "SelectionOptimism",
    "selection_optimism",
    "expected_winner",
    "optimism_guide",
    "Baseline",
    "Baselines",
    "baseline",
    "Adjusted",
    "Ledger",
    "Look",
    "rows_id",
    "Guarantee",
    "StructuralRisk",
    "pac_bayes",
    "shatters",
    "srm",
    "vc_dimension",
    "METRICS",
    "Audit",
    "CapacitySweep",
    "Comparison",
    "Conformal",
    "ConformalCV",
    "CrossValidation",
    "DensityAssessment",
    "Entry",
    "InferenceTable",
    "Interval",
    "Intervals",
    "Standings",
    "LeaveOneOut",
    "Metric",
    "NestedCV",
    "PipelineBootstrap",
    "Prediction",
    "Ranked",
    "Retrained",
    "Scores",
    "Sets",
    "Split",
    "SplitRows",
    "Temperature",
    "ThresholdTable",
    "TunedThreshold",
    "VariationReport",
    "all_scores",
    "assess_density",
    "audit",
    "bayes_threshold",
    "bootstrap",
    "capacity_sweep",
    "bootstrap_metric",
    "conformal",
    "conformal_cv",
    "corrected_t",
    "cross_validate",
    "d2",
    "default_pipeline",
    "fit_temperature",
    "folds",
    "holm",
    "indistinguishable",
    "inference",
    "interval",
    "loo",
    "mcfadden_r2",
    "mcnemar",
    "metric",
    "nested_cv",
    "one_standard_error",
    "paired_bootstrap",
    "pipeline_bootstrap",
    "r2",
    "rank",
    "recalibrate",
    "retrain",
    "score",
    "split",
    "student",
    "threshold_table",
    "tied_with_best",
    "train_test",
    "tune_threshold",
    "variation_report",
    "wilson",
]

"""EVALUATE: splits, metrics, scores with intervals, comparisons, the leaderboard."""

from __future__ import annotations

from groundstate.evaluate.assess import Assessment, assess
from groundstate.evaluate.audit import Audit, audit
from groundstate.evaluate.baseline import Baseline, Baselines, baseline
from groundstate.evaluate.bias_variance import BiasVariance, bias_variance
from groundstate.evaluate.bias_variance_losses import (
    bregman_parts,
    domingos_parts,
    log_parts,
    squared_parts,
    zero_one_parts,
)
from groundstate.evaluate.board import Leaderboard, Place
from groundstate.evaluate.calibration import Temperature, fit_temperature, recalibrate
from groundstate.evaluate.capacity import CapacitySweep, capacity_sweep
from groundstate.evaluate.capacity_curve import CapacityCurve, capacity_curve, parameter_count
from groundstate.evaluate.compare import (
    Comparison,
    corrected_t,
    holm,
    indistinguishable,
    mcnemar,
    paired_bootstrap,
    tied_with_best,
)
from groundstate.evaluate.compare_paired import PairedComparison, compare
from groundstate.evaluate.conformal import Conformal, Intervals, Sets, conformal
from groundstate.evaluate.conformal_cv import ConformalCV, conformal_cv
from groundstate.evaluate.contamination import Contamination, contamination, perceptual_hash
from groundstate.evaluate.cross_validate import (
    CrossValidation,
    cross_validate,
    one_standard_error,
)
from groundstate.evaluate.curves import LearningCurve, learning_curve
from groundstate.evaluate.curves_setting import ValidationCurve, validation_curve
from groundstate.evaluate.diagnose import Diagnosis, diagnose
from groundstate.evaluate.floor import Floor, noise_floor
from groundstate.evaluate.forecast import PowerLaw, power_law
from groundstate.evaluate.generative import DensityAssessment, assess_density
from groundstate.evaluate.goodness import d2, mcfadden_r2, r2
from groundstate.evaluate.inference import InferenceTable, inference
from groundstate.evaluate.intervals import (
    Interval,
    bootstrap,
    bootstrap_metric,
    interval,
    student,
    wilson,
)
from groundstate.evaluate.learners import LearnerComparison, compare_learners, five_by_two
from groundstate.evaluate.ledger import Adjusted, Ledger, Look, rows_id
from groundstate.evaluate.loo import LeaveOneOut, loo
from groundstate.evaluate.many import Ranking, rank_models
from groundstate.evaluate.many_tables import Friedman, friedman
from groundstate.evaluate.metrics import METRICS, Metric, metric
from groundstate.evaluate.nested import NestedCV, nested_cv
from groundstate.evaluate.oob import PipelineBootstrap, pipeline_bootstrap
from groundstate.evaluate.optimism import (
    SelectionOptimism,
    expected_winner,
    optimism_guide,
    selection_optimism,
)
from groundstate.evaluate.pac_bayes import Guarantee, pac_bayes
from groundstate.evaluate.pipeline import default_pipeline
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.ranking import Ranked, rank
from groundstate.evaluate.remedies import Remedy
from groundstate.evaluate.scores import Scores
from groundstate.evaluate.scoring import all_scores, score
from groundstate.evaluate.seeds import Retrained, retrain
from groundstate.evaluate.split import SplitRows, split
from groundstate.evaluate.splits import Split, folds, train_test
from groundstate.evaluate.srm import StructuralRisk, srm
from groundstate.evaluate.standings import Entry, Standings
from groundstate.evaluate.submissions import Contest, judge_folder
from groundstate.evaluate.threshold import (
    ThresholdTable,
    TunedThreshold,
    bayes_threshold,
    threshold_table,
    tune_threshold,
)
from groundstate.evaluate.uncertainty import Uncertainty, uncertainty
from groundstate.evaluate.variation import VariationReport, variation_report
from groundstate.evaluate.vc import shatters, vc_dimension
from groundstate.evaluate.versus import Versus, versus

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
    "Assessment",
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
    "assess",
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

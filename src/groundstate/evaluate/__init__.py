"""EVALUATE: splits, metrics, scores with intervals, comparisons, the leaderboard."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.evaluate.audit.contamination import Contamination as Contamination
    from groundstate.evaluate.audit.contamination import contamination as contamination
    from groundstate.evaluate.audit.contamination import perceptual_hash as perceptual_hash
    from groundstate.evaluate.audit.leaks import Audit as Audit
    from groundstate.evaluate.audit.leaks import audit as audit
    from groundstate.evaluate.audit.ledger import Adjusted as Adjusted
    from groundstate.evaluate.audit.ledger import Ledger as Ledger
    from groundstate.evaluate.audit.ledger import Look as Look
    from groundstate.evaluate.audit.ledger import rows_id as rows_id
    from groundstate.evaluate.board.contest import Contest as Contest
    from groundstate.evaluate.board.contest import judge_folder as judge_folder
    from groundstate.evaluate.board.leaderboard import Leaderboard as Leaderboard
    from groundstate.evaluate.board.leaderboard import Place as Place
    from groundstate.evaluate.board.ranked_table import Entry as Entry
    from groundstate.evaluate.board.ranked_table import Standings as Standings
    from groundstate.evaluate.board.ranking import Ranked as Ranked
    from groundstate.evaluate.board.ranking import rank as rank
    from groundstate.evaluate.calibration.recalibrate import Temperature as Temperature
    from groundstate.evaluate.calibration.recalibrate import fit_temperature as fit_temperature
    from groundstate.evaluate.calibration.recalibrate import recalibrate as recalibrate
    from groundstate.evaluate.calibration.threshold import ThresholdTable as ThresholdTable
    from groundstate.evaluate.calibration.threshold import TunedThreshold as TunedThreshold
    from groundstate.evaluate.calibration.threshold import bayes_threshold as bayes_threshold
    from groundstate.evaluate.calibration.threshold import threshold_table as threshold_table
    from groundstate.evaluate.calibration.threshold import tune_threshold as tune_threshold
    from groundstate.evaluate.compare.baseline import Baseline as Baseline
    from groundstate.evaluate.compare.baseline import Baselines as Baselines
    from groundstate.evaluate.compare.baseline import baseline as baseline
    from groundstate.evaluate.compare.friedman import Friedman as Friedman
    from groundstate.evaluate.compare.friedman import friedman as friedman
    from groundstate.evaluate.compare.hypothesis_tests import Comparison as Comparison
    from groundstate.evaluate.compare.hypothesis_tests import corrected_t as corrected_t
    from groundstate.evaluate.compare.hypothesis_tests import holm as holm
    from groundstate.evaluate.compare.hypothesis_tests import indistinguishable as indistinguishable
    from groundstate.evaluate.compare.hypothesis_tests import mcnemar as mcnemar
    from groundstate.evaluate.compare.hypothesis_tests import paired_bootstrap as paired_bootstrap
    from groundstate.evaluate.compare.hypothesis_tests import tied_with_best as tied_with_best
    from groundstate.evaluate.compare.incumbent import Versus as Versus
    from groundstate.evaluate.compare.incumbent import versus as versus
    from groundstate.evaluate.compare.many_models import Ranking as Ranking
    from groundstate.evaluate.compare.many_models import rank_models as rank_models
    from groundstate.evaluate.compare.paired import PairedComparison as PairedComparison
    from groundstate.evaluate.compare.paired import compare as compare
    from groundstate.evaluate.compare.recipes import LearnerComparison as LearnerComparison
    from groundstate.evaluate.compare.recipes import compare_learners as compare_learners
    from groundstate.evaluate.compare.recipes import five_by_two as five_by_two
    from groundstate.evaluate.conformal.cv_plus import ConformalCV as ConformalCV
    from groundstate.evaluate.conformal.cv_plus import conformal_cv as conformal_cv
    from groundstate.evaluate.conformal.split_conformal import Conformal as Conformal
    from groundstate.evaluate.conformal.split_conformal import Intervals as Intervals
    from groundstate.evaluate.conformal.split_conformal import Sets as Sets
    from groundstate.evaluate.conformal.split_conformal import conformal as conformal
    from groundstate.evaluate.curves.capacity_curve import CapacityCurve as CapacityCurve
    from groundstate.evaluate.curves.capacity_curve import capacity_curve as capacity_curve
    from groundstate.evaluate.curves.capacity_curve import parameter_count as parameter_count
    from groundstate.evaluate.curves.capacity_sweep import CapacitySweep as CapacitySweep
    from groundstate.evaluate.curves.capacity_sweep import capacity_sweep as capacity_sweep
    from groundstate.evaluate.curves.diagnose import Diagnosis as Diagnosis
    from groundstate.evaluate.curves.diagnose import diagnose as diagnose
    from groundstate.evaluate.curves.learning_curve import LearningCurve as LearningCurve
    from groundstate.evaluate.curves.learning_curve import learning_curve as learning_curve
    from groundstate.evaluate.curves.power_law import PowerLaw as PowerLaw
    from groundstate.evaluate.curves.power_law import power_law as power_law
    from groundstate.evaluate.curves.remedies import Remedy as Remedy
    from groundstate.evaluate.curves.validation_curve import ValidationCurve as ValidationCurve
    from groundstate.evaluate.curves.validation_curve import validation_curve as validation_curve
    from groundstate.evaluate.explain.association import association as association
    from groundstate.evaluate.explain.association import column_groups as column_groups
    from groundstate.evaluate.explain.dependence import Dependence as Dependence
    from groundstate.evaluate.explain.dependence import partial_dependence as partial_dependence
    from groundstate.evaluate.explain.drift import Drift as Drift
    from groundstate.evaluate.explain.drift import drift as drift
    from groundstate.evaluate.explain.importance import Importance as Importance
    from groundstate.evaluate.explain.importance import (
        permutation_importance as permutation_importance,
    )
    from groundstate.evaluate.explain.profiles import ColumnProfile as ColumnProfile
    from groundstate.evaluate.explain.profiles import column_profiles as column_profiles
    from groundstate.evaluate.generators.coverage import ModeCoverage as ModeCoverage
    from groundstate.evaluate.generators.coverage import PrecisionRecall as PrecisionRecall
    from groundstate.evaluate.generators.coverage import inception_score as inception_score
    from groundstate.evaluate.generators.coverage import mode_coverage as mode_coverage
    from groundstate.evaluate.generators.coverage import precision_recall as precision_recall
    from groundstate.evaluate.generators.densities import DensityAssessment as DensityAssessment
    from groundstate.evaluate.generators.densities import assess_density as assess_density
    from groundstate.evaluate.generators.discrepancy import kernel_distance as kernel_distance
    from groundstate.evaluate.generators.discrepancy import mmd_test as mmd_test
    from groundstate.evaluate.generators.frechet import FrechetStats as FrechetStats
    from groundstate.evaluate.generators.frechet import frechet_distance as frechet_distance
    from groundstate.evaluate.generators.likelihood import HeldOutLikelihood as HeldOutLikelihood
    from groundstate.evaluate.generators.likelihood import bits_per_dim as bits_per_dim
    from groundstate.evaluate.generators.likelihood import code_length as code_length
    from groundstate.evaluate.generators.likelihood import (
        held_out_likelihood as held_out_likelihood,
    )
    from groundstate.evaluate.generators.memory import Memorisation as Memorisation
    from groundstate.evaluate.generators.memory import memorisation_check as memorisation_check
    from groundstate.evaluate.generators.report import GeneratorAssessment as GeneratorAssessment
    from groundstate.evaluate.generators.report import assess_generator as assess_generator
    from groundstate.evaluate.intervals.coefficients import InferenceTable as InferenceTable
    from groundstate.evaluate.intervals.coefficients import inference as inference
    from groundstate.evaluate.intervals.retrain import Retrained as Retrained
    from groundstate.evaluate.intervals.retrain import retrain as retrain
    from groundstate.evaluate.intervals.uncertainty import Uncertainty as Uncertainty
    from groundstate.evaluate.intervals.uncertainty import uncertainty as uncertainty
    from groundstate.evaluate.intervals.variation import VariationReport as VariationReport
    from groundstate.evaluate.intervals.variation import variation_report as variation_report
    from groundstate.evaluate.metrics import METRICS as METRICS
    from groundstate.evaluate.metrics import Metric as Metric
    from groundstate.evaluate.metrics import metric as metric
    from groundstate.evaluate.metrics.goodness import d2 as d2
    from groundstate.evaluate.metrics.goodness import mcfadden_r2 as mcfadden_r2
    from groundstate.evaluate.metrics.goodness import r2 as r2
    from groundstate.evaluate.metrics.intervals import Interval as Interval
    from groundstate.evaluate.metrics.intervals import bootstrap as bootstrap
    from groundstate.evaluate.metrics.intervals import bootstrap_metric as bootstrap_metric
    from groundstate.evaluate.metrics.intervals import interval as interval
    from groundstate.evaluate.metrics.intervals import student as student
    from groundstate.evaluate.metrics.intervals import wilson as wilson
    from groundstate.evaluate.metrics.scoring import all_scores as all_scores
    from groundstate.evaluate.metrics.scoring import score as score
    from groundstate.evaluate.pipeline import default_pipeline as default_pipeline
    from groundstate.evaluate.predictions import Prediction as Prediction
    from groundstate.evaluate.scores import Scores as Scores
    from groundstate.evaluate.splits.cross_validate import CrossValidation as CrossValidation
    from groundstate.evaluate.splits.cross_validate import cross_validate as cross_validate
    from groundstate.evaluate.splits.cross_validate import one_standard_error as one_standard_error
    from groundstate.evaluate.splits.folds import Split as Split
    from groundstate.evaluate.splits.folds import folds as folds
    from groundstate.evaluate.splits.folds import train_test as train_test
    from groundstate.evaluate.splits.leave_one_out import LeaveOneOut as LeaveOneOut
    from groundstate.evaluate.splits.leave_one_out import loo as loo
    from groundstate.evaluate.splits.nested import NestedCV as NestedCV
    from groundstate.evaluate.splits.nested import nested_cv as nested_cv
    from groundstate.evaluate.splits.pipeline_bootstrap import (
        PipelineBootstrap as PipelineBootstrap,
    )
    from groundstate.evaluate.splits.pipeline_bootstrap import (
        pipeline_bootstrap as pipeline_bootstrap,
    )
    from groundstate.evaluate.splits.three_way import SplitRows as SplitRows
    from groundstate.evaluate.splits.three_way import split as split
    from groundstate.evaluate.theory.bias_variance import BiasVariance as BiasVariance
    from groundstate.evaluate.theory.bias_variance import bias_variance as bias_variance
    from groundstate.evaluate.theory.loss_decompositions import bregman_parts as bregman_parts
    from groundstate.evaluate.theory.loss_decompositions import domingos_parts as domingos_parts
    from groundstate.evaluate.theory.loss_decompositions import log_parts as log_parts
    from groundstate.evaluate.theory.loss_decompositions import squared_parts as squared_parts
    from groundstate.evaluate.theory.loss_decompositions import zero_one_parts as zero_one_parts
    from groundstate.evaluate.theory.noise_floor import Floor as Floor
    from groundstate.evaluate.theory.noise_floor import noise_floor as noise_floor
    from groundstate.evaluate.theory.pac_bayes import Guarantee as Guarantee
    from groundstate.evaluate.theory.pac_bayes import pac_bayes as pac_bayes
    from groundstate.evaluate.theory.selection_optimism import (
        SelectionOptimism as SelectionOptimism,
    )
    from groundstate.evaluate.theory.selection_optimism import expected_winner as expected_winner
    from groundstate.evaluate.theory.selection_optimism import optimism_guide as optimism_guide
    from groundstate.evaluate.theory.selection_optimism import (
        selection_optimism as selection_optimism,
    )
    from groundstate.evaluate.theory.structural_risk import StructuralRisk as StructuralRisk
    from groundstate.evaluate.theory.structural_risk import srm as srm
    from groundstate.evaluate.theory.vc_dimension import shatters as shatters
    from groundstate.evaluate.theory.vc_dimension import vc_dimension as vc_dimension
    from groundstate.models.shapley import ShapleyValues as ShapleyValues
    from groundstate.models.shapley import shapley_values as shapley_values

lazy(__name__)

"""Stagescope: a laboratory for how attention learns.

The public names. Importing this package imports nothing heavy and sets nothing global: each name is loaded when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "errors": ("StagescopeError", "InputError", "StoreError", "NotARun", "DamagedRun"),
    "processes.sequence_classes": ("SequenceClass", "SequenceClasses"),
    "processes.markov_chain": ("Chain", "LazyChain", "MarkovChain"),
    "processes.class_table": ("read_classes",),
    "processes.lag_features": ("RandomFeatures", "GivenFeatures", "read_features"),
    "processes.lagged_chain": ("LaggedChain",),
    "processes.class_levels": ("ClassLevels", "class_levels"),
    "processes.text_corpus": ("TextCorpus", "read_corpus"),
    "processes.topic_windows": ("TopicWindows", "topic_windows"),
    "models.pairwise_attention": ("PairwiseAttention",),
    "models.content_heads": ("ContentHeads",),
    "models.positional_heads": ("PositionalHeads",),
    "models.regression_heads": ("RegressionHeads",),
    "models.regression_transformer": ("RegressionTransformer",),
    "models.transformer": ("Transformer",),
    "models.text_transformer": ("TextTransformer",),
    "models.token_attention": ("TokenAttention",),
    "objectives.field": ("Field",),
    "objectives.objective": ("Objective", "JaxObjective"),
    "objectives.token": ("TokenPopulation",),
    "objectives.token_finite": ("TokenFinite",),
    "objectives.token_sampled": ("TokenSampled",),
    "objectives.pairwise": ("PairwisePopulation", "PairwisePinv"),
    "objectives.pairwise_sampled": ("PairwiseSampled",),
    "objectives.pairwise_windows": ("PairwiseWindows",),
    "objectives.heads": ("HeadsLoss",),
    "objectives.content": ("ContentLoss",),
    "objectives.transformer": ("TransformerLoss",),
    "objectives.text_transformer": ("TextTransformerLoss",),
    "objectives.students": ("student_loss", "held_out"),
    "objectives.regression": ("RegressionLoss", "MirrorFlow"),
    "objectives.regression_sampled": ("RegressionSampled",),
    "objectives.forms": ("population_loss", "finite_loss", "sampled_loss"),
    "dynamics.record": ("Uniform", "LogSpaced", "AtTimes", "Every", "LossBelow", "SpeedBelow"),
    "dynamics.flow": ("GradientFlow",),
    "dynamics.descent": ("Descent", "GD", "HeavyBall", "Adam", "AdamW"),
    "dynamics.evolve": ("evolve", "Interrupted"),
    "runs.run": ("Run",),
    "runs.store": ("load", "verify"),
    "observables.pairwise": ("ClassAttention", "class_attention"),
    "observables.text_snap": ("TextAttention", "text_attention"),
    "observables.stopping": ("Stopping", "stopping"),
    "observables.lags": ("LagCurves", "lag_curves"),
    "observables.regression": ("HeadCurves", "head_curves"),
    "landscape.spectrum": ("Spectrum", "spectrum"),
    "landscape.critical": ("CriticalPoint", "critical_point", "critical_points"),
    "landscape.linearise": ("Linearisation", "linearise"),
    "landscape.ladder": ("Ladder", "Rung"),
    "detect.stage": ("Stage", "Stages"),
    "theory.claim": ("Claim", "Verdict"),
    "theory.ledger": ("Ledger",),
    "studies.table": ("study", "run_study"),
    "studies.early_stopping": ("EarlyStopping", "early_stopping"),
    "reopen": ("resume", "replay"),
    "reading.table": ("stages", "check", "saddle_ladder"),
    "sweeping.engine": ("sweep",),
    "sweeping.table": ("Sweep", "load_sweep"),
    "reporting.diagram": ("Diagram", "diagram"),
    "reporting.report": ("report",),
    "reporting.summary": ("Summary", "summary"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}
__all__ = sorted(_MODULE)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'stagescope' has no attribute {name!r}")
    value = getattr(import_module(f"stagescope.{_MODULE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]


if TYPE_CHECKING:
    from stagescope.detect.stage import Stage, Stages
    from stagescope.dynamics.descent import GD, Adam, AdamW, Descent, HeavyBall
    from stagescope.dynamics.evolve import Interrupted, evolve
    from stagescope.dynamics.flow import GradientFlow
    from stagescope.dynamics.record import AtTimes, Every, LogSpaced, LossBelow, SpeedBelow, Uniform
    from stagescope.errors import DamagedRun, InputError, NotARun, StagescopeError, StoreError
    from stagescope.landscape.critical import CriticalPoint, critical_point, critical_points
    from stagescope.landscape.ladder import Ladder, Rung
    from stagescope.landscape.linearise import Linearisation, linearise
    from stagescope.landscape.spectrum import Spectrum, spectrum
    from stagescope.models.content_heads import ContentHeads
    from stagescope.models.pairwise_attention import PairwiseAttention
    from stagescope.models.positional_heads import PositionalHeads
    from stagescope.models.regression_heads import RegressionHeads
    from stagescope.models.regression_transformer import RegressionTransformer
    from stagescope.models.text_transformer import TextTransformer
    from stagescope.models.token_attention import TokenAttention
    from stagescope.models.transformer import Transformer
    from stagescope.objectives.content import ContentLoss
    from stagescope.objectives.field import Field
    from stagescope.objectives.forms import finite_loss, population_loss, sampled_loss
    from stagescope.objectives.heads import HeadsLoss
    from stagescope.objectives.objective import JaxObjective, Objective
    from stagescope.objectives.pairwise import PairwisePinv, PairwisePopulation
    from stagescope.objectives.pairwise_sampled import PairwiseSampled
    from stagescope.objectives.pairwise_windows import PairwiseWindows
    from stagescope.objectives.regression import MirrorFlow, RegressionLoss
    from stagescope.objectives.regression_sampled import RegressionSampled
    from stagescope.objectives.students import held_out, student_loss
    from stagescope.objectives.text_transformer import TextTransformerLoss
    from stagescope.objectives.token import TokenPopulation
    from stagescope.objectives.token_finite import TokenFinite
    from stagescope.objectives.token_sampled import TokenSampled
    from stagescope.objectives.transformer import TransformerLoss
    from stagescope.observables.lags import LagCurves, lag_curves
    from stagescope.observables.pairwise import ClassAttention, class_attention
    from stagescope.observables.regression import HeadCurves, head_curves
    from stagescope.observables.stopping import Stopping, stopping
    from stagescope.observables.text_snap import TextAttention, text_attention
    from stagescope.processes.class_levels import ClassLevels, class_levels
    from stagescope.processes.class_table import read_classes
    from stagescope.processes.lag_features import GivenFeatures, RandomFeatures, read_features
    from stagescope.processes.lagged_chain import LaggedChain
    from stagescope.processes.markov_chain import Chain, LazyChain, MarkovChain
    from stagescope.processes.sequence_classes import SequenceClass, SequenceClasses
    from stagescope.processes.text_corpus import TextCorpus, read_corpus
    from stagescope.processes.topic_windows import TopicWindows, topic_windows
    from stagescope.reading.table import check, saddle_ladder, stages
    from stagescope.reopen import replay, resume
    from stagescope.reporting.diagram import Diagram, diagram
    from stagescope.reporting.report import report
    from stagescope.reporting.summary import Summary, summary
    from stagescope.runs.run import Run
    from stagescope.runs.store import load, verify
    from stagescope.studies.early_stopping import EarlyStopping, early_stopping
    from stagescope.studies.table import run_study, study
    from stagescope.sweeping.engine import sweep
    from stagescope.sweeping.table import Sweep, load_sweep
    from stagescope.theory.claim import Claim, Verdict
    from stagescope.theory.ledger import Ledger

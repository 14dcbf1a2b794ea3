"""The public names are frozen: a change here is a decision."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import stagescope as ss

NAMES = """
Stopping stopping
Adam AdamW HeadsLoss PositionalHeads held_out
AtTimes Chain Claim ClassAttention CriticalPoint DamagedRun Descent Every Field GD GradientFlow HeavyBall
InputError Interrupted JaxObjective Ladder LazyChain Ledger Linearisation LogSpaced LossBelow MarkovChain NotARun
Objective PairwiseAttention PairwisePinv PairwisePopulation PairwiseSampled Run Rung SequenceClass SequenceClasses
Spectrum SpeedBelow Stage Stages StagescopeError StoreError TokenAttention TokenFinite TokenPopulation TokenSampled
Uniform Verdict check class_attention critical_point critical_points evolve finite_loss linearise load population_loss
read_classes replay resume run_study saddle_ladder sampled_loss spectrum stages study verify verify_replay
ClassLevels GivenFeatures LaggedChain RandomFeatures class_levels read_features
ContentHeads ContentLoss LagCurves Transformer TransformerLoss lag_curves student_loss
TextCorpus read_corpus
PairwiseWindows TextAttention TextTransformer TextTransformerLoss TopicWindows text_attention topic_windows
HeadCurves MirrorFlow RegressionHeads RegressionLoss RegressionSampled RegressionTransformer head_curves
cite reproduce studies
Diagram Page Summary diagram export figures report summary
Sweep load_sweep sweep
Calibration Event Inputs Transition agreement beyond_chance calibrate from_arrays transitions
CriticalScale Leg Predicted SaddlePath critical_scale predict saddle_path
ForkDifference fork fork_difference
Branch BranchPoint Crossing continue_point
from_tensorboard to_json_lines to_tensorboard
Comparison Kind OverRuns Paper Reading Reference Regime Study Tag reading
Around Graded Heads LightningWatch Recorder TrainerWatch Watcher heads read_checkpoints watch
Audit Finding audit audit_hashes
Playable Slider play
"""


def test_public_names_are_these():
    assert sorted(ss.__all__) == sorted(NAMES.split())


def test_functions_are_not_shadowed_by_modules():
    """A subpackage named like a public function would replace it as soon as it is imported."""

    for name in ss.__all__:
        assert not hasattr(getattr(ss, name), "__path__"), name
        assert not (Path(ss.__file__).parent / name).is_dir(), name


def test_the_stub_has_one_name_a_line():
    """`from .x import y as y`: a type checker then takes y for public, and the lazy loader finds it."""
    stub = (Path(ss.__file__).parent / "__init__.pyi").read_text()
    lines = [line for line in stub.splitlines() if "import" in line]
    found = [re.fullmatch(r"from \.[a-z_.]+ import (\w+) as (\w+)", line) for line in lines]
    assert all(match is not None and match[1] == match[2] for match in found)
    assert sorted(match[1] for match in found) == sorted(ss.__all__)


def test_types_are_shipped():
    """The marker of typed packages lies in the package, and the wheel is the whole package."""
    assert (Path(ss.__file__).parent / "py.typed").read_text() == ""
    settings = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    scripts = {"reproductions": "stagescope/reproductions"}
    assert settings["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/stagescope"], "force-include": scripts}


def test_importing_the_package_is_light():
    code = "import sys, stagescope; print([m for m in ('numpy', 'jax', 'numba', 'scipy', 'pydantic') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"

"""Focus and dilution: what holds at its critical points by algebra, on the points that runs come to."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.focus_dilution.claims import Asymmetry
from stagescope.papers.focus_dilution.family import plateau_amplitude, slopes
from stagescope.readings.published import published
from stagescope.readings.reading import reading

REFERENCE = published("stagescope.papers.focus_dilution")
ZERO = 1e-10
"""Zero is up to the residual of a search."""


@pytest.fixture(scope="module", params=["ref", "flow-skewed"])
def evidence(request):
    return reading(ss.run_study("focus-dilution", request.param)).evidence


@pytest.mark.parametrize(("label", "which"), [((1, 0), 0), ((1, 1), 1)], ids=["condensed", "focused"])
def test_only_one_kind_of_direction_can_open(evidence, label, which):
    """At (1,0) dL/dM = 0, so only attention can open [FD:condensed]; at (1,1) dL/dPhi = 0, so only embeddings can."""
    visit = evidence.visit(*label)
    assert visit.small.of_its_label
    assert np.abs(slopes(evidence.law, visit.small.point.params)[which]).max() <= ZERO


def test_the_norms_of_the_condensed_plateau():
    """The run `ref` rests at a pi_i / n between its events E1 at 20 and Q1 at 76 [FD:condensed]."""
    curves, rare = reading(ss.run_study("focus-dilution", "ref")).curves, REFERENCE["plateau_norms"]
    predicted = plateau_amplitude(curves.pi) * curves.pi / np.linalg.norm(curves.pi)
    assert predicted[1:] == pytest.approx(rare.value, abs=rare.tolerance)
    assert curves.norms[int(np.argmin(np.abs(curves.time - 60)))] == pytest.approx(predicted, rel=0.02)


def asymmetry(**options):
    evidence = reading(ss.run_study("focus-dilution", **options)).evidence
    return Asymmetry(evidence.law, evidence.curves.frequent)


@pytest.mark.parametrize(("pi", "persistence"), [((0.4, 0.2, 0.2, 0.2), 0.3), ((0.55, 0.17, 0.15, 0.13), 0.6)])
def test_with_equal_rare_tokens_the_symmetric_point_is_degenerate(pi, persistence):
    """At delta = 0 the symmetric (1,1) has no slope and no transverse rate."""
    family = asymmetry(pi=pi, persistence=persistence, until=5.0)
    assert family.symmetric.of_its_label
    assert max(np.abs(slope).max() for slope in slopes(family.at(0.0), family.symmetric.point.params)) <= ZERO
    assert max(opening.rate for kind in family.symmetric.openings.values() for opening in kind) <= ZERO


def test_the_rate_is_kappa_delta():
    """Asymmetry lifts the degenerate point: the top embedding rate is proportional to delta [FD:kappa]."""
    expected = REFERENCE["kappa_at_1e-4"]
    law = asymmetry(pi=(0.55, 0.17, 0.15, 0.13), persistence=0.6, until=5.0).kappa
    assert law is not None
    exponent, kappa = law
    assert exponent == pytest.approx(1, abs=1e-3)
    assert kappa == pytest.approx(expected.value["(1, 0, -1)"], abs=expected.tolerance)

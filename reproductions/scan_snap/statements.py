"""The numbered statements of the paper as numbers: what no claim of a ledger measures, by exact forms, flows and exact laws.

Each function is named by `measure` in statements.json, which says what the paper states, which number is expected and
which arguments are given.
"""

import math
from functools import cache
from typing import Any

import numpy as np
from scipy.special import lambertw
from scipy.stats import binom

from stagescope.core.params import key
from stagescope.papers.scan_snap import forms
from stagescope.papers.scan_snap.loss import PairwisePopulation
from stagescope.papers.scan_snap.model import PairwiseAttention, attention, features
from stagescope.papers.scan_snap.observables import law_of
from stagescope.papers.scan_snap.process import SequenceClasses
from stagescope.runs.run import Run

from .figures import DISCRETE, RUN, printed_drive

DELTA = 0.05
"""Probability that the concentration bounds of lemmas 10, 12 and 18 leave out."""


@cache
def run_of(preset: str, **changes: Any) -> Run:
    return RUN(preset, **changes)


def modified() -> Run:
    """The setting of the theorems: five queries with a class each, one common token, modified decoder."""
    return run_of("single-common-pinv")


def features_at(run: Run, frame: int) -> np.ndarray:
    """f_n at a frame (K, keys)."""
    law = law_of(run)
    return features(run.at(frame)["Z"][law.rows["query"]], law.process.table(law.model.keys))


def near(run: Run, when: float) -> int:
    return int(np.argmin(np.abs(run.t - when)))


# Section 3 and 4: the gradient, long contexts, the decoder.


def lemma_1() -> float:
    """Largest difference of the gradient of the loss from the closed form, at random parameters."""
    process = SequenceClasses.synthetic(3, 2, 4, 5, vocab=60)
    model = PairwiseAttention.every_output(process)
    params, law = model.init(0, 0.5), PairwisePopulation(model=model, process=process)
    c = attention(params["Z"][law.rows["query"]], process.table(model.keys))
    f = c / np.linalg.norm(c, axis=1, keepdims=True)
    alpha = np.exp(f @ params["Y"])
    wrong = np.eye(len(model.outputs))[law.rows["target"]] - alpha / alpha.sum(axis=1, keepdims=True)
    g = wrong @ params["Y"].T
    z = np.zeros_like(params["Z"])
    np.add.at(z, law.rows["query"], f * (g - f * np.sum(f * g, axis=1, keepdims=True)) / len(f))
    gradient = law.grad(params)
    return float(max(np.abs(gradient["Y"] + f.T @ wrong / len(f)).max(), np.abs(gradient["Z"] + z).max()))


def lemma_2() -> float:
    """The slope of ln mean |v - c|_1 over ln T, at the scores of the end of the flow of Syn-Small."""
    run, lengths, gaps = run_of("syn-small-flow"), (2048, 8192, 32768), []
    law = law_of(run)
    table, scores = law.process.table(law.model.keys), run.params["Z"][-1][law.rows["query"]]
    for length in lengths:
        gap = 0.0
        for n, (z, p) in enumerate(zip(scores, table, strict=True)):
            drawn = key(0, "lemma 2", length, n).multinomial(length, p, size=200)
            gap += float(np.abs(attention(z, drawn) - attention(z, p)).sum(axis=1).mean())
        gaps.append(gap)
    return float(np.polyfit(np.log(lengths), np.log(gaps), 1)[0])


def lemma_3() -> float:
    """Largest entry of F^T (f_n - F E' e_n) - e_n, over the frames of a flow."""
    worst = 0.0
    for frame in range(0, modified().frames, 40):
        f = features_at(modified(), frame)
        overlap = f @ f.T
        shift = np.eye(len(f)) - np.linalg.inv(overlap)  # E'
        worst = max(worst, float(np.abs(f @ (f.T - f.T @ shift) - np.eye(len(f))).max()))
    return worst


def lemma_3_change() -> float:
    """How far the common token falls by t0' under the gradient, over the same under the modified decoder."""
    falls = []
    for run in (modified(), run_of("single-common-pinv", decoder="gradient")):
        common = (law_of(run).process.table(law_of(run).model.keys) > 0).sum(axis=0) > 1
        scores = run.params["Z"][near(run, forms.t0_prime(1000, 5, 100.0))]
        falls.append(float(scores[:, common].mean()))
    return falls[1] / falls[0]


# Theorem 1b: the second stage of gamma.


def gamma_late(times: float = 1.0, outputs: int = 1000, printed: bool = True) -> float:
    """gamma at so many times t0, K = 1, over its second law K ln(eta_Y t/K)/(eta_Y t), or over that with M in the logarithm."""
    when = times * forms.t0(outputs, 1, 1.0)
    law = math.log(when if printed else outputs * when) / when
    return float(forms.gamma(when, outputs, 1, 1.0)) / law


def gamma_late_over_outputs(printed: bool) -> float:
    """The same at t0, M = 10^12 over M = 10^3."""
    return gamma_late(1.0, 10**12, printed) / gamma_late(1.0, 1000, printed)


# Theorem 4 and its lemmas: closed forms.


def early_law(share: float = 1.0) -> float:
    """The larger ratio of B by the t^2 law to B, at `share` of t0', of the two settings of figure 9."""
    return max(_law(nu, outputs, share, True) for nu, outputs in ((10.0, 100), (1.0, 10_000)))


def late_law(times: float = 1.0) -> float:
    """The same for the ln^2 law at so many times t0."""
    return max(_law(nu, outputs, times, False) for nu, outputs in ((10.0, 100), (1.0, 10_000)))


def _law(nu: float, outputs: int, times: float, early: bool) -> float:
    when = times * (forms.t0_prime if early else forms.t0)(outputs, 1, nu)
    small = ((outputs - 1) / outputs) ** 2
    law = 2 * small * nu * when**2 if early else 2 * small / nu * math.log(outputs * nu * when) ** 2
    exact = forms.growth(printed_drive(when, outputs, 1, nu, 1.0), 1.0)
    return float(forms.growth(np.array(law / 4), 1.0) / exact)


def scaling() -> float:
    """Largest difference of Z at the end of two flows, the second with three times the rates for a third of the time."""
    ends = [run_of("syn-small-flow", rate_y=s, rate_z=s, until=100.0 / s).params["Z"][-1] for s in (1.0, 3.0)]
    return float(np.abs(ends[0] - ends[1]).max())


def asymptote() -> float:
    """B over 1/2 lnln(M eta_Y t/K) + 1/4 ln(2K (M-1)^2/(M^2 nu)), at 10^4 t0 with M = 10^4, nu = 1."""
    when = 1e4 * forms.t0(10_000, 1, 1.0)
    law = math.log(math.log(1e4 * when)) / 2 + math.log(2 * (1 - 1e-4) ** 2) / 4
    return float(forms.growth(printed_drive(when, 10_000, 1, 1.0, 1.0), 1.0)) / law


def omega_0() -> float:
    """omega_0 at M = 100: the smaller root of e^x = (M-1) x is x = M^(omega_0 - 1) = -W(-1/(M-1))."""
    return 1 + math.log(float(-lambertw(-1 / 99, 0).real)) / math.log(100)


def omega_1() -> float:
    """omega_1 ln M / lnln M at M = 100, the largest of 10^2 to 10^12."""
    return max(forms.omega_1(10**k) * math.log(10**k) / math.log(math.log(10**k)) for k in range(2, 13))


def logit_laws(early: bool) -> float:
    """h by its law of lemma 9 over h, K = 1, M = 1000: eta_Y t/(MK) at t0'/2, or ln(M eta_Y t/K)/M at t0."""
    when = forms.t0_prime(1000, 1, 1.0) / 2 if early else forms.t0(1000, 1, 1.0)
    return (when if early else math.log(1000 * when)) / float(forms.logit_gap(when, 1000, 1, 1.0))


def lemma_5() -> float:
    """Largest difference of a decoder of one class, trained step by step, from (M-1) h* zeta."""
    w, worst, steps = np.zeros(50), 0.0, forms.discrete_gap(80, 50, 1.0)
    for h in steps:
        worst = max(worst, float(np.abs(w - h * (50 * (np.arange(50) == 0) - 1)).max()))
        alpha = np.exp(w - w.max())
        w = w + (np.arange(50) == 0) - alpha / alpha.sum()
    return worst


def remark_1(outputs: int = 1000) -> float:
    """Own-minus-other logit under the true decoder with all overlaps .5, over that with half of the rate, at t0', K = 10."""
    classes, overlap = min(10, outputs), 0.5
    when, steps = forms.t0_prime(outputs, classes, 1.0), 4000
    w, wrong = np.zeros((classes, outputs)), np.eye(classes, outputs)
    for _ in range(steps):
        alpha = np.exp(w - w.max(axis=1, keepdims=True))
        error = wrong - alpha / alpha.sum(axis=1, keepdims=True)
        w += when / steps / classes * ((1 - overlap) * error + overlap * error.sum(axis=0))
    gap = w[0, 0] - (w[0].sum() - w[0, 0]) / (outputs - 1)
    return float(gap / forms.logit_gap(when * (1 - overlap), outputs, classes, 1.0))


def remark_1_full() -> float:
    """The same with K = M = 10."""
    return remark_1(10)


def _steps_and_flow(rate_y: float, outputs: int, times: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    count = math.ceil(times * forms.t0(outputs, 1, rate_y))
    t = np.arange(count + 1.0)
    return t, forms.discrete_gap(count, outputs, rate_y), forms.logit_gap(t, outputs, 1, rate_y) / outputs


SETTINGS = [(rate, outputs) for outputs, _, rates in DISCRETE for rate in rates]


def lemma_7(largest: bool) -> float:
    """The largest or smallest h* - h, in units of 2 eta_Y/M, over the settings of figure 8 up to 4 t0."""
    gaps = []
    for rate, outputs in SETTINGS:
        _, steps, flow = _steps_and_flow(rate, outputs, 4)
        gaps.append((steps - flow) / (2 * rate / outputs))
    return float(max(gap.max() for gap in gaps) if largest else min(gap.min() for gap in gaps))


def lemma_7_end() -> float:
    """h* - h at 100 t0 over its largest, M = 50, eta_Y = 1."""
    _, steps, flow = _steps_and_flow(1.0, 50, 100)
    return float((steps - flow)[-1] / np.max(steps - flow))


def _delay(rate: float, outputs: int, times: float, until: float = math.inf) -> float:
    """The largest c with h(s + c) = h*(s): the flow is at h at time (e^{Mh} + (M-1) M h - 1)/(M eta_Y)."""
    t, steps, _ = _steps_and_flow(rate, outputs, times)
    x = outputs * steps
    return float(np.max(((np.exp(x) + (outputs - 1) * x - 1) / (outputs * rate) - t)[t <= until]))


def lemma_7_delay() -> float:
    """The largest delay for s <= ln M/eta_Y."""
    return max(_delay(rate, outputs, 1, math.log(outputs) / rate) for rate, outputs in SETTINGS)


def remark_2_delay() -> float:
    """The largest delay at any time up to 20 t0, over ln M."""
    return max(_delay(rate, outputs, 20) / math.log(outputs) for rate, outputs in SETTINGS)


def remark_2_slope() -> float:
    """The slope of the delay over ln t from 10^2 to 10^4 t0, M = 50, eta_Y = 1: 0 where h* - h falls as 1/t."""
    early, late = (_delay(1.0, 50, times) for times in (1e2, 1e4))
    return (late - early) / math.log(1e2)


# Sampling: exact laws of counts, or 4000 draws.


def lemma_10() -> float:
    """The probability that a count of 1000 draws of ten classes is outside of its bound."""
    mean, bound = 100, math.sqrt(500 * math.log(2 / DELTA)) + 1
    return float(binom.cdf(math.ceil(mean - bound) - 1, 1000, 0.1) + binom.sf(math.floor(mean + bound), 1000, 0.1))


def _around(times: float) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Counts within Delta of N/K, M h at them, Delta and N/K = t0 times this number; M = 1000, K = 10, eta_Y = 1."""
    mean = times * forms.t0(1000, 1, 1.0)
    delta = math.sqrt(10 * mean * math.log(1 / DELTA))
    counts = np.linspace(max(mean - delta, 0.0), mean + delta, 401)
    return counts, np.asarray(forms.logit_gap(counts, 1000, 1, 1.0)), delta, mean


def lemma_11() -> float:
    """The largest |h(N_n) - h(N/K)| over its bound, from t0/10 to 100 t0."""
    ratios = []
    for times in (0.1, 1.0, 10.0, 100.0):
        _, x, delta, mean = _around(times)
        centre = float(forms.logit_gap(mean, 1000, 1, 1.0))
        ratios.append(np.abs(x - centre).max() / (centre * delta / mean))
    return float(max(ratios))


def lemma_11_error(times: float) -> float:
    """The same for the relative error of 1/(M - 1 + e^{Mh}) and its bound Delta K/N, at so many times t0."""
    _, x, delta, mean = _around(times)
    centre = 999 + math.exp(float(forms.logit_gap(mean, 1000, 1, 1.0)))
    return float(np.abs(centre / (999 + np.exp(x)) - 1).max() / (delta / mean))


def theorem_5() -> float:
    """The share of draws of N = 100 K^2 single samples with some |theta_n| above (K/sqrt N) sqrt(ln(K/delta))."""
    classes, count = 10, 10_000
    drawn = key(0, "theorem 5").multinomial(count, np.full(classes, 1 / classes), size=4000)
    steps = forms.discrete_gap(int(drawn.max()), 1000, 1.0)
    theta = np.abs(steps[drawn] / steps[count // classes] - 1).max(axis=1)
    return float(np.mean(theta > classes / math.sqrt(count) * math.sqrt(math.log(classes / DELTA))))


def lemmas_13_to_17() -> float:
    """The worst excess of the five bounds on E = F^T F - I and E' = I - (I+E)^-1, on the frames of three runs."""
    worst = 0.0
    for run in (modified(), run_of("syn-small-flow"), run_of("single-common-pinv", decoder="gradient")):
        for frame in (0, run.frames // 2, run.frames - 1):
            f = features_at(run, frame)
            overlap = f @ f.T
            e, inverse = overlap - np.eye(len(f)), np.eye(len(f)) - np.linalg.inv(overlap)
            values, others = np.linalg.eigvalsh(e), np.linalg.eigvalsh(inverse)
            top = np.abs(values).max()
            off = ~np.eye(len(f), dtype=bool)
            worst = max(
                worst,
                np.abs(e).max() - top,
                np.abs(np.sort(values / (1 + values)) - others).max(),
                np.abs(others).max() - top / (1 - top),
                np.diag(inverse).max(),
                np.abs(inverse - e)[off].max() - top**2 / (1 - top),
            )
    return float(worst)


def lemma_18() -> float:
    """The largest probability, over tokens of Syn-Small and T = 128, that a token's share is outside of its bound."""
    process, count = SequenceClasses.synthetic(2, 1, 10, 10), 127
    bound = math.sqrt(math.log(2 / DELTA) / (2 * count))
    p = np.array(process.classes[0].probabilities)
    outside = binom.cdf(np.ceil(count * (p - bound)) - 1, count, p) + binom.sf(np.floor(count * (p + bound)), count, p)
    return float(outside.max())


def assumption_2(largest: bool) -> float:
    """The largest or smallest |eigenvalue| of E = F^T F - I at the start of Syn-Small."""
    f = features_at(run_of("syn-small-flow"), 0)
    values = np.abs(np.linalg.eigvalsh(f @ f.T - np.eye(len(f))))
    return float(values.max() if largest else values.min())


def tokens_of_syn_small() -> float:
    """How many tokens its contexts have."""
    return float(len(law_of(run_of("syn-small-flow")).process.keys))


def outputs_over_classes() -> float:
    """M/K^2 of Syn-Small."""
    process = law_of(run_of("syn-small-flow")).process
    return process.vocab / len(process.classes) ** 2

"""The numbered statements of the paper as numbers: what no claim of a ledger measures, by exact forms, flows and exact laws.

Each function is named by `measure` in statements.json, which says what the paper states, which number is expected and
which arguments are given.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import binom

from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.papers.scan_snap import forms
from stagescope.papers.scan_snap.loss import PairwisePopulation
from stagescope.papers.scan_snap.model import PairwiseAttention, attention
from stagescope.papers.scan_snap.observables import ClassAttention, class_attention, law_of
from stagescope.papers.scan_snap.process import SequenceClasses
from stagescope.params import key
from stagescope.runs.run import Run

from .figures import DISCRETE, RUN, printed_drive, turning_points, two_times

DELTA = 0.05
"""Probability that the concentration bounds of lemmas 10, 12 and 18 leave out."""


@cache
def run_of(preset: str, **changes: Any) -> Run:
    return RUN(preset, **changes)


def modified() -> Run:
    """The setting of the theorems: five queries with a class each, one common token, modified decoder."""
    return run_of("single-common-pinv")


@dataclass(frozen=True)
class Pull:
    """At a frame: features f (K, keys), g_n = Y (e_n - alpha_n) as rows, and its coefficients b (K, K): g_n = sum_m b_mn f_m.

    In the paper's words b_nn = gamma iota_n and b_mn = -gamma beta_nm. `xi` is xi_n = -sum_{m != n} b_mn f_n.f_m.
    """

    f: np.ndarray
    g: np.ndarray
    b: np.ndarray
    xi: np.ndarray
    query: np.ndarray
    common: np.ndarray


def pull(run: Run, frame: int) -> Pull:
    law, params = law_of(run), run.at(frame)
    table, query = law.process.table(law.model.keys), law.rows["query"]
    c = attention(params["Z"][query], table)
    f = c / np.linalg.norm(c, axis=1, keepdims=True)
    logits = f @ params["Y"] + np.log(law.model.multiplicity)
    alpha = np.exp(logits - logits.max(axis=1, keepdims=True))
    alpha /= alpha.sum(axis=1, keepdims=True)
    g = params["Y"][:, law.rows["target"]].T - alpha @ params["Y"].T
    overlap = f @ f.T
    b = np.linalg.solve(overlap, f @ g.T)
    xi = -(np.sum(b * overlap, axis=0) - np.diag(b))
    return Pull(f, g, b, xi, query, (table > 0).sum(axis=0) > 1)


def velocity(at: Pull, g: np.ndarray) -> np.ndarray:
    """What lemma 1 gives for each class, with eta_Z = 1 and prior 1/K: f o (g - f (f.g)) / K."""
    return at.f * (g - at.f * np.sum(at.f * g, axis=1, keepdims=True)) / len(at.f)


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
        f = pull(modified(), frame).f
        overlap = f @ f.T
        shift = np.eye(len(f)) - np.linalg.inv(overlap)  # E'
        worst = max(worst, float(np.abs(f @ (f.T - f.T @ shift) - np.eye(len(f))).max()))
    return worst


def lemma_3_change() -> float:
    """How far the common token falls by t0' under the gradient, over the same under the modified decoder."""
    falls = []
    for run in (modified(), run_of("single-common-pinv", decoder="gradient")):
        at = pull(run, 0)
        scores = run.params["Z"][near(run, two_times(1000, 5, 100.0)[0])]
        falls.append(float(scores[:, at.common].mean()))
    return falls[1] / falls[0]


# Theorem 1 and theorem 2: the pull on the scores.


def theorem_1() -> float:
    """At t0', how much of g is outside of the span of f, in which iota_n and beta_nm are its coefficients."""
    at = pull(modified(), near(modified(), two_times(1000, 5, 100.0)[0]))
    return float(np.linalg.norm(at.g - at.b.T @ at.f) / np.linalg.norm(at.g))


def theorem_1_a() -> float:
    """The share of frames and classes where xi > 0, under both decoders and on Syn-Small."""
    runs = (modified(), run_of("single-common-pinv", decoder="gradient"), run_of("syn-small-flow"))
    signs = [pull(run, frame).xi > 0 for run in runs for frame in range(1, run.frames, 7)]
    return float(np.mean(np.concatenate(signs)))


def gamma_late(times: float = 1.0, outputs: int = 1000, printed: bool = True) -> float:
    """gamma at so many times t0, K = 1, over its second law K ln(eta_Y t/K)/(eta_Y t), or over that with M in the logarithm."""
    when = times * two_times(outputs, 1, 1.0)[1]
    law = math.log(when if printed else outputs * when) / when
    return float(forms.gamma(when, outputs, 1, 1.0)) / law


def gamma_late_over_outputs(printed: bool) -> float:
    """The same at t0, M = 10^12 over M = 10^3."""
    return gamma_late(1.0, 10**12, printed) / gamma_late(1.0, 1000, printed)


def gamma_early() -> float:
    """The largest gamma over its first law eta_Y t/K, for t <= t0', K = 1, M = 1000."""
    t = np.linspace(0.01, 1, 200) * two_times(1000, 1, 1.0)[0]
    return float(np.max(forms.gamma(t, 1000, 1, 1.0) / t))


def rates(rare: bool) -> float:
    """At t0', the worst difference of dz/dt from the law of theorem 2, over the largest |dz/dt| of such tokens."""
    at = pull(modified(), near(modified(), two_times(1000, 5, 100.0)[0]))
    moves, used = velocity(at, at.g), at.f > 0
    law = np.where(at.common, -(1 - at.f**2), at.f**2) * at.xi[:, None] / len(at.f)
    which = used & (~at.common if rare else at.common)
    return float(np.abs(moves - law)[which].max() / np.abs(moves[which]).max())


def corollary_2() -> float:
    """One query for ten symmetric classes, three common tokens: the largest change of a common score over the largest change."""
    run = run_of("single-common-pinv", num_last=1, num_next_per_last=10, num_common=3, umin=1.0, umax=1.0)
    z = run.params["Z"][1:, 0] - run.params["Z"][0, 0]
    return float(z[:, pull(run, 0).common].max() / np.abs(z).max())


def corollary_2_rate() -> float:
    """At t0', the worst difference of the same scores' dz/dt from -gamma beta (K-1) f_l^2 (1 - f.f'), over the largest."""
    run = run_of("single-common-pinv", num_last=1, num_next_per_last=10, num_common=3, umin=1.0, umax=1.0)
    at = pull(run, near(run, two_times(1000, 10, 100.0)[0]))
    overlap = float((at.f @ at.f.T)[0, 1])
    pulls = np.sum(at.b, axis=0) - np.diag(at.b)  # -gamma sum beta
    law = (at.f**2 * (1 - overlap) * pulls[:, None] / len(at.f)).sum(axis=0)[at.common]
    moves = velocity(at, at.g).sum(axis=0)[at.common]
    return float(np.abs(moves - law).max() / np.abs(moves).max())


# Theorem 3: winners.


def monotone() -> float:
    """The share of steps between frames in which z and f of the dominant token do not fall by more than rounding."""
    run = modified()
    curves = class_attention(run)
    f = curves.c / np.sqrt(curves.supports.sums(curves.c**2))[:, curves.supports.of]
    rises = [np.diff(values[:, curves.winners], axis=0) for values in (curves.z, f)]
    return float(np.mean([rise > -1e-12 for rise in rises]))


def _flow(process: SequenceClasses, scores: np.ndarray, until: float, rate_y: float = 1.0) -> ClassAttention:
    """The flow from Y = 0 and these scores in every row of Z."""
    model = PairwiseAttention.merged(process)
    params = model.init()
    params["Z"] += scores
    law = PairwisePopulation(model=model, process=process)
    return class_attention(evolve(law, params, GradientFlow(rates={"Y": rate_y}), until=until, progress=False))


def prior() -> float:
    """Ten equally frequent distinct tokens: the share of classes in which the one with the largest score at the start wins."""
    process, shares = SequenceClasses.synthetic(5, 1, 1, 10, umin=1.0, umax=1.0), []
    for seed in range(5):
        curves = _flow(process, 0.1 * key(seed, "prior").normal(size=len(process.keys)), 300.0, 10.0)
        ahead = curves.supports.argtops(np.where(curves.supports.common, -np.inf, curves.z[0]))
        shares.append(curves.winners == ahead)
    return float(np.mean(shares))


def bias() -> float:
    """Largest difference in c at the end of two flows: scores that start at b on P, and from zero on P e^b."""
    process = SequenceClasses.synthetic(3, 1, 3, 4, vocab=60)
    b, items = key(0, "bias").normal(size=len(process.keys)), []
    for item in process.classes:
        weights = np.array(item.probabilities) * np.exp(b[np.searchsorted(process.keys, item.tokens)])
        items.append(item.model_copy(update={"probabilities": tuple((weights / weights.sum()).tolist())}))
    other = process.model_copy(update={"classes": tuple(items)})
    return float(np.abs(_flow(process, b, 50.0).c[-1] - _flow(other, 0 * b, 50.0).c[-1]).max())


# Theorem 4 and its lemmas: closed forms.


def early_law(share: float = 1.0) -> float:
    """The larger ratio of B by the t^2 law to B, at `share` of t0', of the two settings of figure 9."""
    return max(_law(nu, outputs, share, True) for nu, outputs in ((10.0, 100), (1.0, 10_000)))


def late_law(times: float = 1.0) -> float:
    """The same for the ln^2 law at so many times t0."""
    return max(_law(nu, outputs, times, False) for nu, outputs in ((10.0, 100), (1.0, 10_000)))


def _law(nu: float, outputs: int, times: float, early: bool) -> float:
    first, second = two_times(outputs, 1, nu)
    when = times * (first if early else second)
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
    when = 1e4 * two_times(10_000, 1, 1.0)[1]
    law = math.log(math.log(1e4 * when)) / 2 + math.log(2 * (1 - 1e-4) ** 2) / 4
    return float(forms.growth(printed_drive(when, 10_000, 1, 1.0, 1.0), 1.0)) / law


def omega_0() -> float:
    return turning_points(100)[0]


def omega_1() -> float:
    """omega_1 ln M / lnln M at M = 100, the largest of 10^2 to 10^12."""
    return max(turning_points(10**k)[1] * math.log(10**k) / math.log(math.log(10**k)) for k in range(2, 13))


def logit_laws(early: bool) -> float:
    """h by its law of lemma 9 over h, K = 1, M = 1000: eta_Y t/(MK) at t0'/2, or ln(M eta_Y t/K)/M at t0."""
    first, second = two_times(1000, 1, 1.0)
    when = first / 2 if early else second
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
    when, steps = two_times(outputs, classes, 1.0)[0], 4000
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
    count = math.ceil(times * two_times(outputs, 1, rate_y)[1])
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


def corollary_1() -> float:
    """The slope of the logarithm of the loss over that of time, from 10 to 100 t0, M = 1000."""
    second = two_times(1000, 1, 1.0)[1]
    loss = [math.log1p(999 * math.exp(-float(forms.logit_gap(times * second, 1000, 1, 1.0)))) for times in (10, 100)]
    return math.log10(loss[1] / loss[0])


# Sampling: exact laws of counts, or 4000 draws.


def lemma_10() -> float:
    """The probability that a count of 1000 draws of ten classes is outside of its bound."""
    mean, bound = 100, math.sqrt(500 * math.log(2 / DELTA)) + 1
    return float(binom.cdf(math.ceil(mean - bound) - 1, 1000, 0.1) + binom.sf(math.floor(mean + bound), 1000, 0.1))


def _around(times: float) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Counts within Delta of N/K, M h at them, Delta and N/K = t0 times this number; M = 1000, K = 10, eta_Y = 1."""
    mean = times * two_times(1000, 1, 1.0)[1]
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
            f = pull(run, frame).f
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
    f = pull(run_of("syn-small-flow"), 0).f
    values = np.abs(np.linalg.eigvalsh(f @ f.T - np.eye(len(f))))
    return float(values.max() if largest else values.min())


def tokens_of_syn_small() -> float:
    """How many tokens its contexts have."""
    return float(len(law_of(run_of("syn-small-flow")).process.keys))


def outputs_over_classes() -> float:
    """M/K^2 of Syn-Small."""
    process = law_of(run_of("syn-small-flow")).process
    return process.vocab / len(process.classes) ** 2

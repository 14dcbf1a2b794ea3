"""Focus and dilution: rates and directions at the first three saddles on random chains, none dropped."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import stagescope as ss
from stagescope.claims.claim import Verdict
from stagescope.papers.focus_dilution.claims import CLAIMS
from stagescope.papers.focus_dilution.evidence import Evidence
from stagescope.papers.focus_dilution.family import attention_rate, condensation_rate
from stagescope.papers.focus_dilution.ladder import condensed_start, small_point
from stagescope.readings.reading import reading

CHAINS, FIRST_SEED = 10, 71_000
MORE, MORE_SEED = 50, 81_000
MOST_INCONCLUSIVE = 3
SADDLES = {
    "(0,0)": ("FD:origin", "FD:directions"),
    "(1,0)": ("FD:attention-rate", "FD:focus"),
    "(1,1)": ("FD:embedding-rate", "FD:embedding-direction"),
}
"""Rate and direction claims of each saddle."""
OUTCOMES = ("confirmed", "inconclusive", "violated")


def lazy(rng: np.random.Generator) -> ss.MarkovChain | ss.LazyChain:
    pi = rng.dirichlet(np.full(int(rng.integers(3, 8)), 2.0))
    return ss.LazyChain(pi=tuple(pi.tolist()), persistence=float(rng.uniform(0.2, 0.8)))


def any_chain(rng: np.random.Generator) -> ss.MarkovChain | ss.LazyChain:
    d = int(rng.integers(3, 8))
    return ss.MarkovChain(rows=tuple(tuple(row) for row in rng.dirichlet(np.full(d, 1.0), size=d).tolist()))


@dataclass(frozen=True)
class Setting:
    """A family of chains and how the flow on them starts; saddles that are not `judged` are shown only."""

    title: str
    chain: Callable[[np.random.Generator], ss.MarkovChain | ss.LazyChain]
    eps: float
    scale: float
    width: int = 8
    key_width: int = 8
    judged: tuple[str, ...] = ()


SETTINGS = (
    Setting(
        "lazy chains, d 3 to 7, Dirichlet pi, persistence .2 to .8; scale 8^-.5, start 1e-5",
        lazy,
        1e-5,
        8**-0.5,
        judged=tuple(SADDLES),
    ),
    Setting("the same chains, scale 4, start 1e-3: (1,1) is shown, not judged", lazy, 1e-3, 4.0, judged=("(0,0)", "(1,0)")),
    Setting(
        "any chain, Dirichlet rows, c of either sign; scale 2, start 1e-5, width 6, key width 3: (1,1) is shown, not judged",
        any_chain,
        1e-5,
        2.0,
        6,
        3,
        ("(0,0)", "(1,0)"),
    ),
)


def main() -> bool:
    """The theory is that of small starts; the second and third table show how far it carries."""
    held = [_table(setting) for setting in SETTINGS]
    _shares(SETTINGS[0])
    return all(held)


def _table(setting: Setting) -> bool:
    print(f"\n{setting.title}")
    columns = ("chain", "d", "c", "saddle", "rate", "meas./pred.", "cosine", "rate", "direction")
    print("{:>5} {:>2} {:>9}  {:<6} {:>9} {:>12} {:>8}  {:<13} {:<13}".format(*columns))
    counts = {saddle: {"inconclusive": 0, "violated": 0} for saddle in SADDLES}
    for number in range(CHAINS):
        vocab, c, found = chain_verdicts(FIRST_SEED + number, setting)
        for saddle, tags in SADDLES.items():
            rate, direction = (found[tag] for tag in tags)
            ratio, cosine = _number(rate.measured) / _number(rate.predicted), _number(direction.measured)
            head = f"{number:>5} {vocab:>2} {c:>+9.2g}  {saddle:<6} {_number(rate.predicted):>9.4g}"
            print(f"{head} {ratio:>12.3f} {cosine:>8.4f}  {rate.verdict:<13} {direction.verdict:<13}", flush=True)
            for word in counts[saddle]:
                counts[saddle][word] += word in {rate.verdict, direction.verdict}
            for row in (rate, direction):
                if row.verdict != "confirmed":
                    print(f"{'':>25} {row.tag}: {row.reason}")
    shown = "; ".join(f"{saddle} {n['inconclusive']} inconclusive, {n['violated']} violated" for saddle, n in counts.items())
    print(f"of {CHAINS}: {shown}")
    judged = [counts[saddle] for saddle in setting.judged]
    return all(n["violated"] == 0 and n["inconclusive"] <= MOST_INCONCLUSIVE for n in judged)


def _shares(setting: Setting) -> None:
    """Ten chains are few: the verdicts on many more, counted."""
    found = [chain_verdicts(MORE_SEED + number, setting)[2] for number in range(MORE)]
    print(f"\n{MORE} other chains of the first kind: {', '.join(OUTCOMES)}")
    for saddle, tags in SADDLES.items():
        counts = [[sum(verdicts[tag].verdict == word for verdicts in found) for word in OUTCOMES] for tag in tags]
        shown = [" / ".join(map(str, count)) for count in counts]
        print(f"{saddle}  rate {shown[0]}   direction {shown[1]}", flush=True)


def chain_verdicts(seed: int, setting: Setting) -> tuple[int, float, dict[str, Verdict]]:
    """A random chain, a flow long enough for its first three saddles, and its verdicts."""
    chain = setting.chain(np.random.default_rng(seed))
    model = ss.TokenAttention(vocab=chain.vocab, width=setting.width, key_width=setting.key_width, scale=setting.scale)
    loss = ss.TokenPopulation(model=model, process=chain)
    c = attention_rate(chain.stationary, chain.transition, model.scale)
    rates = [condensation_rate(chain.stationary), abs(c)]
    opening = small_point(loss, condensed_start(loss, float(np.sign(c))), 1, 1).opening
    rates += [opening.rate] if opening is not None else []
    until = sum(1.5 * np.log(1 / setting.eps) / rate for rate in rates)
    run = ss.evolve(loss, model.init(seed, setting.eps), ss.GradientFlow(), until=until, progress=False)
    wanted = {tag for tags in SADDLES.values() for tag in tags}
    evidence = Evidence(run, reading(run).curves)
    return chain.vocab, c, {claim.tag: claim.judge(run, evidence) for claim in CLAIMS if claim.tag in wanted}


def _number(value: float | str | None) -> float:
    return value if isinstance(value, float) else float("nan")

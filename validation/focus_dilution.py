"""Focus and dilution: rates and directions at the first three saddles on random chains, and the numbers measured elsewhere."""

import numpy as np

import stagescope as ss
from stagescope.landscape.token_points import condensed_start, small_point
from stagescope.reading import dense_token
from stagescope.theory.claim import Verdict
from stagescope.theory.focus_dilution import CLAIMS
from stagescope.theory.focus_dilution_evidence import Evidence
from stagescope.theory.focus_dilution_forms import attention_rate, condensation_rate

CHAINS, FIRST_SEED = 10, 31_000
MOST_INCONCLUSIVE = 3
SADDLES = {
    "(0,0)": ("FD:origin", "FD:directions"),
    "(1,0)": ("FD:attention-rate", "FD:focus"),
    "(1,1)": ("FD:embedding-rate", "FD:embedding-direction"),
}
"""Rate and direction claims of each saddle."""


def main() -> bool:
    """The theory is that of small starts, so the table is made at 1e-5; the one at 1e-3 shows what is left of it there."""
    print("rates and directions on random lazy chains: d 3 to 7, Dirichlet pi, persistence .2 to .8")
    print("width 8, scores scaled by 8^-.5, start 1e-5")
    small = random_chains(1e-5)
    print("\nthe same chains, start 1e-3: reported, not judged")
    random_chains(1e-3)
    print("\nnumbers of an independent implementation")
    return small & measured_elsewhere()


def random_chains(eps: float) -> bool:
    columns = ("chain", "d", "pers.", "saddle", "rate", "meas./pred.", "cosine", "rate", "direction")
    print("{:>5} {:>2} {:>6}  {:<6} {:>9} {:>12} {:>8}  {:<13} {:<13}".format(*columns))
    undecided, violated = dict.fromkeys(SADDLES, 0), 0
    for number in range(CHAINS):
        chain, found = chain_verdicts(FIRST_SEED + number, eps)
        for saddle, tags in SADDLES.items():
            rate, direction = (found[tag] for tag in tags)
            shown = _ratio(rate), direction.measured if isinstance(direction.measured, float) else float("nan")
            head = f"{number:>5} {chain.vocab:>2} {chain.persistence:>6.2f}  {saddle:<6} {_number(rate.predicted):>9.4g}"
            print(f"{head} {shown[0]:>12.3f} {shown[1]:>8.4f}  {rate.verdict:<13} {direction.verdict:<13}", flush=True)
            outcomes = {rate.verdict, direction.verdict}
            undecided[saddle] += "inconclusive" in outcomes
            violated += "violated" in outcomes
            for row in (rate, direction):
                if row.verdict != "confirmed":
                    print(f"{'':>21} {row.tag}: {row.reason}")
    print(f"inconclusive of {CHAINS}: {undecided}; violated: {violated}")
    return violated == 0 and max(undecided.values()) <= MOST_INCONCLUSIVE


def chain_verdicts(seed: int, eps: float) -> tuple[ss.LazyChain, dict[str, Verdict]]:
    """A random chain, a flow long enough for its first three saddles, and its verdicts."""
    rng = np.random.default_rng(seed)
    pi = rng.dirichlet(np.full(int(rng.integers(3, 8)), 2.0))
    chain = ss.LazyChain(pi=tuple(pi.tolist()), persistence=float(rng.uniform(0.2, 0.8)))
    model = ss.TokenAttention(vocab=chain.vocab, width=8, scale=8**-0.5)
    loss = ss.TokenPopulation(model=model, process=chain)
    rates = [condensation_rate(pi), attention_rate(pi, chain.transition, model.scale)]
    opening = small_point(loss, condensed_start(loss, 1e-3, 1.0), 1, 1).opening
    rates += [opening.rate] if opening is not None else []
    until = sum(1.5 * np.log(1 / eps) / rate for rate in rates)
    run = ss.evolve(loss, model.init(seed, eps), ss.GradientFlow(), until=until, progress=False)
    wanted = {tag for tags in SADDLES.values() for tag in tags}
    evidence = Evidence(run, dense_token(run))
    return chain, {claim.tag: claim.judge(run, evidence) for claim in CLAIMS if claim.tag in wanted}


def _ratio(row: Verdict) -> float:
    return _number(row.measured) / _number(row.predicted)


def _number(value: float | str | None) -> float:
    return value if isinstance(value, float) else float("nan")


def measured_elsewhere() -> bool:
    rows = [*_events(), *_rows(), *_eps()]
    print(f"{'what':<44} {'measured':>10} {'expected':>18}")
    for what, value, low, high in rows:
        mark = "" if low <= value <= high else "   DOES NOT HOLD"
        print(f"{what:<44} {value:>10.4f} {f'[{low:.4g}, {high:.4g}]':>18}{mark}")
    return all(low <= value <= high for _, value, low, high in rows)


def _events():
    """The spread of about twenty seeds of two implementations; ours are other seeds, so a little more is allowed."""
    spreads = {
        "ref": {"E1": (20.2, 24.5), "Q1": (73.6, 84.6), "E2": (180, 210), "Q2": (276, 307), "E3": (364, 412)},
        "paper": {"E1": (8.0, 10.0), "Q1": (173, 199), "E2": (354, 410), "Q2": (963, 1004), "E3": (1454, 1971)},
    }
    for preset, spread in spreads.items():
        for seed in range(3):
            found = ss.stages(ss.run_study("focus-dilution", preset, seed=seed, progress=False)).events
            for event, (low, high) in spread.items():
                room = 0.25 * (high - low)
                yield f"{preset}, seed {seed}: {event}", found[event] or float("nan"), low - room, high + room


def _rows():
    from stagescope.observables.token import token_curves

    run = ss.run_study("focus-dilution", "ref", frames=3000, progress=False)
    curves, events = token_curves(run), ss.stages(run).events
    for row, top, bottom in ((1, 0.611, 0.381), (2, 0.544, 0.047), (3, 0.522, 0.001)):
        cycle = (run.t >= (events[f"focus{row}"] or 0) - 2) & (run.t <= (events["E2"] or 0))
        inside = curves.attention[cycle, row, 0]
        yield f"ref, row {row}: peak", float(inside.max()), top - 0.01, top + 0.01
        yield f"ref, row {row}: minimum before E2", float(inside.min()), bottom - 0.01, bottom + 0.01


def _eps():
    """Delay per decade of the initial scale between 1e-4 and 1e-5."""
    times = []
    for eps in (1e-4, 1e-5):
        found = ss.stages(ss.run_study("focus-dilution", init_scale=eps, progress=False)).events
        times.append([found[name] or float("nan") for name in ("E1", "Q1", "E2")])
    legs = [(e1, q1 - e1, e2 - q1) for e1, q1, e2 in times]
    for name, first, second, expected in zip(("E1", "Q1-E1", "E2-Q1"), *legs, (12.72, 23.57, 61.0), strict=True):
        yield f"ref: {name} per decade of eps", second - first, 0.97 * expected, 1.03 * expected

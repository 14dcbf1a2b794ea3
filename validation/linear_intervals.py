"""Errors of the cascade of linear-icl by regime, against the flow: what the intervals of its saddle path are read from.

`python -m validation.linear_intervals FIRST COUNT` draws tasks from the seeds FIRST, FIRST + 1, ... and writes an upper bound of
the 95 % quantile of |flow / cascade - 1| of each regime (`tolerance`) and its number of drops to `path_errors` in the paper's
reference.json. With the word `check` at the end nothing is written: it prints how many drops lie inside the stored intervals.
"""

import json
import sys
from pathlib import Path

import numpy as np
from scipy.stats import binom

import stagescope as ss
from stagescope.core.params import root_mean_square
from stagescope.landscape.flow_prediction import NotFollowed, flow_prediction
from stagescope.papers import linear_icl
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.cascade import SilentHead, cascade
from stagescope.papers.linear_icl.limits import LIMITS
from stagescope.papers.linear_icl.path import LINEAR_FLOW, regime
from validation.predictions import task

REFERENCE = Path(linear_icl.__file__).with_name("reference.json")
SHARE = 0.95
LATE = 3.0
"""Flows last this many times longer than the last drop that the cascade predicts."""


def tolerance(errors: list[float]) -> float | None:
    """The least of the errors that is above their 95 % quantile with 95 % confidence; None of fewer than 59, and if infinite.

    The k-th of n is below the quantile with the chance that k or more of n drops are: a binomial law, whatever that of errors.
    """
    k = int(binom.ppf(SHARE, len(errors), SHARE)) + 1
    found = sorted(errors)[k - 1] if k <= len(errors) else np.inf
    return float(f"{found:.2g}") if np.isfinite(found) else None


def main(first: int, count: int, *, check: bool) -> bool:
    errors: dict[str, list[float]] = {}
    inside: dict[str, list[bool]] = {}
    for seed in range(first, first + count):
        _, law, start, until, _, flow = task(seed)
        model, scale = law.model, root_mean_square(start)
        if scale > LIMITS.spread * LIMITS.first * forms.start_unit(law.process, model.merged):
            continue
        try:
            path = flow_prediction(law, start, LATE * until, flow, LINEAR_FLOW)
        except NotFollowed as error:
            print(f"  seed {seed}: {error}")
            continue
        if model.merged:
            times, names = [forms.merged_drop_time(law.process, start)], ["merged"]
        else:
            drops = cascade(law.process, SilentHead.all_of(start), model.rank)
            times = np.maximum.accumulate([drop.time for drop in drops]).tolist()
            names = [regime(law.process, scale, drops, m) for m in range(len(drops))]
        stored = ss.saddle_path(law, start).events if check else {}
        for m, (name, when) in enumerate(zip(names, times, strict=True), start=1):
            event = path.events.get(f"d{m}")
            seen = np.inf if event is None or event.t is None else event.t
            errors.setdefault(name, []).append(abs(seen / when - 1))
            if check and (said := stored[f"d{m}"]).t is not None:
                assert said.low is not None
                assert said.high is not None
                inside.setdefault(name, []).append(said.low <= seen <= said.high)
    for name, found in sorted(errors.items()):
        held = f", inside {np.mean(inside[name]):.2f} of {len(inside[name])}" if name in inside else ""
        low, high, most = np.quantile(found, [0.5, SHARE, 1.0], method="higher")
        bound = tolerance(found)
        said = f"error median {low:.1e}, 95 % {high:.1e}, bound {bound}, most {most:.1e}"
        print(f"{name}: {len(found)} drops, {said}{held}", flush=True)
    if check:
        held = [each for found in inside.values() for each in found]
        least = min(map(np.mean, inside.values()))
        print(f"inside: {sum(held)} of {len(held)}, {np.mean(held):.3f}; by regime at least {least:.2f}")
        return 0.9 <= float(np.mean(held)) <= 0.99
    rows = {name: [tolerance(found), len(found)] for name, found in sorted(errors.items())}
    source = (
        f"python -m validation.linear_intervals {first} {count}: bounds of the 95 % quantile of |flow / cascade - 1|, and drops"
    )
    largest = {"directions": 8, "rank": 5, "heads": 10}
    entry = {"value": {"largest": largest, "regimes": rows}, "unit": "", "tolerance": None, "source": source}
    others = REFERENCE.read_text(encoding="utf-8").split(',\n  "path_errors"')[0].removesuffix("\n}\n")  # the last entry
    REFERENCE.write_text(f'{others},\n  "path_errors": {json.dumps(entry)}\n}}\n', encoding="utf-8")
    return True


if __name__ == "__main__":
    raise SystemExit(0 if main(int(sys.argv[1]), int(sys.argv[2]), check=sys.argv[3:] == ["check"]) else 1)

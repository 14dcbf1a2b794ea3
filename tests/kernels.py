"""Compile the kernels that the suite uses, before two workers compile each of them twice: small runs of all kinds, and readings.

`make test` calls it beside the linters, in two parts: `python -m tests.kernels 0` and `1`. What it leaves out, the tests compile.
"""

import os
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import stagescope as ss

SHORT, FLOW = {"steps": 2}, {"until": 0.1, "frames": 3}
WHOLE = {"frames": 40}
"""Runs that are read too."""
RUNS = (
    [
        ("focus-dilution", "ref", WHOLE),
        ("focus-dilution", "ref", {"pi": (0.05,) * 20, **FLOW}),
        ("focus-dilution", "sampled", SHORT),
        ("linear-icl", "ref", WHOLE),
        ("scan-snap", "syn-small-flow", WHOLE),
        ("scan-snap", "single-common-pinv", FLOW),
        ("scan-snap", "published-medium", SHORT),
        ("scan-snap", "published-medium", {"precision": "float32", **SHORT}),
        ("text-focus", "topics", SHORT),
        ("text-snap", "topics", SHORT),
    ],
    [
        ("incremental", "published-transformer", {"batch": 60, **SHORT}),
        ("incremental", "ladder", {"batch": 8, **SHORT}),
        ("incremental", "published", {"batch": 8, **SHORT}),
        ("incremental", "published", {"batch": 8, "precision": "float64", **SHORT}),
        ("incremental", "published-flow", WHOLE),
        ("markov-icl", "ref", WHOLE),
        ("markov-icl", "softmax", FLOW),
        ("markov-icl", "finite", FLOW),
        ("text-focus", "transformer", {"corpus": "topics", **SHORT}),
    ],
)
"""Two parts that share few kernels and take about as long."""


def main(part: int) -> None:
    for study, preset, options in RUNS[part]:
        began = time.process_time()
        run = ss.run_study(study, preset, progress=False, **options)
        if options is WHOLE:
            ss.stages(run)
            ss.check(run)
            ss.saddle_ladder(run)
        print(f"kernels of {study} {preset}: {time.process_time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))

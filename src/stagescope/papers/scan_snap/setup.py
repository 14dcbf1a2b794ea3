"""From the options of scan and snap to what `evolve` needs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from stagescope.core.errors import InputError
from stagescope.core.params import key
from stagescope.core.spec import digest
from stagescope.papers.scan_snap.claims_heads import leading_tokens, overlap
from stagescope.papers.scan_snap.loss import (
    Pairing,
    PairwiseHeads,
    PairwisePinv,
    PairwisePopulation,
    PairwiseResidual,
    PairwiseSampled,
)
from stagescope.papers.scan_snap.model import PairwiseAttention
from stagescope.papers.scan_snap.observables import Supports, law_of
from stagescope.papers.scan_snap.process import SequenceClasses, read_classes
from stagescope.papers.scan_snap.study import GENERATOR, MEDIUM_CELLS, MEDIUM_LAST, SEEDS, ScanSnapOptions, check_use
from stagescope.readings.setup import make_dynamics, make_record
from stagescope.readings.study import Setup, final_loss
from stagescope.runs.run import Run


def study_setup(options: ScanSnapOptions, seed: int) -> Setup:
    check_use(options)
    facts = {}
    if options.classes is not None:
        process = read_classes(options.classes, options.vocab)
        facts["classes_digest"] = digest(process.describe())
    else:
        process = SequenceClasses.synthetic(**{name: getattr(options, name) for name in (*GENERATOR, "vocab")})
    every_column = options.columns == "all" or options.length is not None
    model = PairwiseAttention.every_output(process) if every_column else PairwiseAttention.merged(process)
    if options.residual:
        model = PairwiseResidual.widened(model)
    law = _law(options, model, process, seed)
    if options.heads > 1:
        if options.init_scale:
            raise InputError("several heads start from --start-scores, with Y at zero: leave out --init-scale")
        params = {name: np.zeros(shape) for name, shape in law.shapes.items()}
    else:
        params = model.init(seed, options.init_scale)
    if options.start_scores:
        params["Z"] = options.start_scores * key(seed, "start scores").normal(size=params["Z"].shape)
    return Setup(
        what=law,
        params=params,
        dynamics=make_dynamics(options, rates={"Y": options.rate_y, "Z": options.rate_z}),
        until=options.until if options.optimizer == "flow" else None,
        record=make_record(options),
        facts=facts,
    )


def _law(options: ScanSnapOptions, model: Any, process: SequenceClasses, seed: int) -> Any:
    if options.residual or options.heads > 1:
        if options.residual and options.heads > 1:
            raise InputError("the residual connection is that of one head: leave out --residual or --heads")
        if options.length is not None or options.decoder == "pinv":
            subject = "the residual connection is" if options.residual else "several heads are"
            raise InputError(f"{subject} trained by the gradient in the long-sequence limit: leave out --length and --decoder")
        if options.residual:
            return PairwiseResidual(model=model, process=process)
        return PairwiseHeads(model=model, process=process, heads=options.heads)
    if options.length is None:
        law = PairwisePinv if options.decoder == "pinv" else PairwisePopulation
        return law(model=model, process=process)
    if options.optimizer == "flow":
        raise InputError("sampled contexts (--length) need steps: choose --optimizer gd, heavy-ball or adam")
    if options.decoder == "pinv":
        raise InputError("the modified decoder is a law of the long-sequence limit: leave out --length")
    if options.precision == "float32" and options.optimizer == "adam":
        raise InputError("steps in float32 are those of gd and heavy-ball: leave out --precision, or choose another --optimizer")
    sampling = {"length": options.length, "batch": options.batch, "seed": seed, "precision": options.precision}
    return PairwiseSampled(model=model, process=process, **sampling)


# Final numbers of scan-and-snap runs: of one run, or of many runs trained in one kernel call.


def final_numbers(run: Run) -> dict[str, float]:
    """Final loss, and class attention at the end."""
    if not run.frames:
        return {}
    law, z = law_of(run), run.params["Z"][-1]
    if isinstance(law, PairwiseHeads):
        return {**final_loss(run), "overlap": overlap(leading_tokens(law, z))}
    return {**final_loss(run), **_attention(law, z)}


def _attention(law: Pairing, z: np.ndarray) -> dict[str, float]:
    """Entropy of class attention on distinct tokens, and its mass on common ones; means over classes, weighted by the prior."""
    supports, weights = Supports.of_law(law), law.process.weights
    attention = supports.attention(z[supports.row, supports.key])
    return {
        "entropy": float(supports.entropy(attention) @ weights),
        "common_mass": float(supports.sums(attention * supports.common) @ weights),
    }


def many_numbers(options: Sequence[ScanSnapOptions], seeds: Sequence[int]) -> list[dict[str, float] | None]:
    """Numbers of sampled heavy-ball runs, one kernel call per problem; None for all other runs and for runs that diverged."""
    may_differ: dict[str, Any] = dict.fromkeys(("rate_y", "rate_z", "lr"))  # may differ in one call, as the seed may
    groups: dict[str, list[int]] = {}
    for place, run_options in enumerate(options):
        if run_options.optimizer == "heavy-ball" and run_options.length is not None:
            groups.setdefault(run_options.model_copy(update=may_differ).model_dump_json(), []).append(place)
    numbers: list[dict[str, float] | None] = [None] * len(options)
    for places in groups.values():
        group, first = [options[place] for place in places], options[places[0]]
        problem: Any = study_setup(first, seeds[places[0]]).what
        lr_y, lr_z = (
            np.array([run_options.lr * getattr(run_options, name) for run_options in group]) for name in ("rate_y", "rate_z")
        )
        own_seeds = np.array([seeds[place] for place in places], dtype=np.int64)
        y, z, steps = problem.train_many(own_seeds, first.init_scale, lr_y, lr_z, steps=first.steps, decay=first.momentum)
        for i, place in enumerate(places):
            if steps[i] == first.steps:
                numbers[place] = {"loss": float(problem.value({"Y": y[i], "Z": z[i]})), **_attention(problem, z[i])}
    return numbers


def figure_six_options() -> list[dict[str, Any]]:
    """Options of the 640 runs of figure 6, each with its own seed, as in `reproduce`."""
    rows = []
    for last in MEDIUM_LAST:
        scale = SequenceClasses.synthetic(last, 2, 10, 10).vocab ** -0.5
        rows += [
            {"num_last": last, "rate_z": z, "rate_y": z * ratio, "init_scale": scale, "seed": SEEDS * place + i}
            for place, (z, ratio) in enumerate(MEDIUM_CELLS)
            for i in range(SEEDS)
        ]
    return rows

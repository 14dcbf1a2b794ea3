"""From the options of scan and snap to what `evolve` needs."""

from typing import Any

from stagescope.errors import InputError
from stagescope.papers.scan_snap.loss import PairwisePinv, PairwisePopulation
from stagescope.papers.scan_snap.model import PairwiseAttention
from stagescope.papers.scan_snap.process import SequenceClasses
from stagescope.papers.scan_snap.sampled import PairwiseSampled
from stagescope.papers.scan_snap.study import GENERATOR, ScanSnapOptions, check_use
from stagescope.papers.scan_snap.tables import read_classes
from stagescope.papers.setup import make_dynamics, make_record
from stagescope.papers.study import Setup
from stagescope.spec import digest


def setup(options: ScanSnapOptions, seed: int) -> Setup:
    check_use(options)
    process, facts = _process(options)
    whole = options.columns == "all" or options.length is not None
    model = PairwiseAttention.every_output(process) if whole else PairwiseAttention.merged(process)
    return Setup(
        what=_law(options, model, process, seed),
        params=model.init(seed, options.init_scale),
        dynamics=make_dynamics(options, rates={"Y": options.rate_y, "Z": options.rate_z}),
        until=options.until if options.optimizer == "flow" else None,
        record=make_record(options),
        facts=facts,
    )


def _law(options: ScanSnapOptions, model: Any, process: SequenceClasses, seed: int) -> Any:
    if options.length is None:
        law = PairwisePinv if options.decoder == "pinv" else PairwisePopulation
        return law(model=model, process=process)
    if options.optimizer == "flow":
        raise InputError("sampled contexts (--length) need steps: choose --optimizer gd, heavy-ball or adam")
    if options.decoder == "pinv":
        raise InputError("the modified decoder is a law of the long-sequence limit: leave out --length")
    if options.precision == "float32" and options.optimizer == "adam":
        raise InputError("steps in float32 are those of gd and heavy-ball: leave out --precision, or choose another --optimizer")
    drawn = {"length": options.length, "batch": options.batch, "seed": seed, "precision": options.precision}
    return PairwiseSampled(model=model, process=process, **drawn)


def _process(options: ScanSnapOptions) -> tuple[SequenceClasses, dict[str, Any]]:
    if options.classes is not None:
        process = read_classes(options.classes, options.vocab)
        return process, {"classes_digest": digest(process.describe())}
    names = (*GENERATOR, "vocab")
    return SequenceClasses.synthetic(**{name: getattr(options, name) for name in names}), {}

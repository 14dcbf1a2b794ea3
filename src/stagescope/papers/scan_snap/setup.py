"""From the options of scan and snap to what `evolve` needs."""

from typing import Any

from stagescope.dynamics.descent import GD, Adam, Descent, HeavyBall
from stagescope.dynamics.dynamics import Dynamics
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import Every, LogSpaced, Record, Uniform
from stagescope.errors import InputError
from stagescope.papers.scan_snap.loss import PairwisePinv, PairwisePopulation
from stagescope.papers.scan_snap.model import PairwiseAttention
from stagescope.papers.scan_snap.process import SequenceClasses
from stagescope.papers.scan_snap.sampled import PairwiseSampled
from stagescope.papers.scan_snap.study import GENERATOR, ScanSnapOptions, check_use
from stagescope.papers.scan_snap.tables import read_classes
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
        dynamics=_dynamics(options),
        until=options.until if options.optimizer == "flow" else None,
        record=_record(options),
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
    return PairwiseSampled(model=model, process=process, length=options.length, batch=options.batch, seed=seed)


def _process(options: ScanSnapOptions) -> tuple[SequenceClasses, dict[str, Any]]:
    if options.classes is not None:
        process = read_classes(options.classes, options.vocab)
        return process, {"classes_digest": digest(process.describe())}
    names = (*GENERATOR, "vocab")
    return SequenceClasses.synthetic(**{name: getattr(options, name) for name in names}), {}


def _dynamics(options: ScanSnapOptions) -> Dynamics:
    rates = {"Y": options.rate_y, "Z": options.rate_z}
    if options.optimizer == "flow":
        return GradientFlow(rates=rates, method=options.method, rtol=options.rtol)
    chosen = {"gd": GD(), "heavy-ball": HeavyBall(momentum=options.momentum), "adam": Adam()}[options.optimizer]
    return Descent(optimizer=chosen, rates=rates, lr=options.lr, steps=options.steps)


def _record(options: ScanSnapOptions) -> Record | None:
    if options.record == "every-step":
        return Every()
    if options.record == "uniform":
        return Uniform(frames=options.frames)
    if options.record == "log" or options.optimizer == "flow":
        return LogSpaced(frames=options.frames)
    return None

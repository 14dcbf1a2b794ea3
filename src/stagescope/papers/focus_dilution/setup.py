"""From the options of focus and dilution to what `evolve` needs."""

from typing import Any

from stagescope.dynamics.record import Uniform
from stagescope.errors import InputError
from stagescope.fields.field import Objective
from stagescope.options import refuse_unused
from stagescope.papers.focus_dilution.finite import TokenFinite
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.papers.focus_dilution.process import LazyChain, asymmetric_law, check_tokens
from stagescope.papers.focus_dilution.sampled import TokenSampled
from stagescope.papers.focus_dilution.study import FocusDilutionOptions, check_use
from stagescope.papers.focus_dilution.tables import read_chain
from stagescope.papers.setup import make_dynamics
from stagescope.papers.study import Setup
from stagescope.processes.markov_chain import Chain
from stagescope.spec import digest

LENGTHS = {"finite": 16, "sampled": 256}
SGD_BATCH = 128


def setup(options: FocusDilutionOptions, seed: int) -> Setup:
    check_use(options)
    chain, facts = _chain(options)
    model = TokenAttention(vocab=chain.vocab, width=options.width, key_width=options.key_width, scale=options.scale)
    scales = _init_scales(options, model)
    if not any(scales.values()):
        raise InputError("every block starts at 0, a critical point where nothing ever moves; take an --init-scale above 0")
    return Setup(
        what=_loss(options, model, chain, seed),
        params=model.init(seed, scales),
        dynamics=make_dynamics(options),
        until=options.until if options.optimizer == "flow" else None,
        record=Uniform(frames=options.frames),
        facts=facts,
    )


def _chain(options: FocusDilutionOptions) -> tuple[Chain, dict[str, Any]]:
    if options.transition is not None:
        chain = read_chain(options.transition)
        return chain, {"transition_digest": digest(chain.describe())}
    pi = options.pi
    if options.pi0 is not None:
        check_tokens(options.tokens)
        pi = asymmetric_law(options.pi0, options.tokens, options.shape or _shape(options), options.delta)
    return LazyChain(pi=pi, persistence=options.persistence), {}


def _shape(options: FocusDilutionOptions) -> tuple[float, ...]:
    """c = (1, 0, ..., 0, -1); a single rare token has nothing to differ from."""
    if options.tokens > 2:
        return (1.0, *(0.0,) * (options.tokens - 3), -1.0)
    if options.delta != 0:
        raise InputError(f"delta {options.delta:g} needs at least two tokens besides the first: use --tokens 3 or more")
    return (0.0,)


def _loss(options: FocusDilutionOptions, model: Any, chain: Chain, seed: int) -> Objective:
    if options.form == "population":
        return TokenPopulation(model=model, process=chain)
    length = options.length if options.length is not None else LENGTHS[options.form]
    if options.form == "finite":
        return TokenFinite(model=model, process=chain, length=length, start=options.start)
    batch = min(SGD_BATCH, options.sequences) if options.optimizer == "sgd" and options.batch is None else options.batch
    drawn = {"sequences": options.sequences, "seed": seed, "batch": batch, "start": options.start}
    return TokenSampled(model=model, process=chain, length=length, **drawn)


def _init_scales(options: FocusDilutionOptions, model: Any) -> dict[str, float]:
    own = {name: getattr(options, f"init_scale_{name.lower()}") for name in model.shapes}
    if None not in own.values():
        refuse_unused(options, ("init_scale",), "every block has a scale of its own")
    return {name: options.init_scale if scale is None else scale for name, scale in own.items()}

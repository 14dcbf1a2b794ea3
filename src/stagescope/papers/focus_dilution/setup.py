"""From the options of focus and dilution to what `evolve` needs."""

import csv
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.core.errors import InputError
from stagescope.core.memory import read_table
from stagescope.core.options import refuse_unused
from stagescope.core.spec import digest
from stagescope.flow.field import Objective
from stagescope.flow.record import Uniform
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import TokenFinite, TokenPopulation, TokenSampled
from stagescope.papers.focus_dilution.model import LazyChain, TokenAttention, asymmetric_law, check_tokens
from stagescope.papers.focus_dilution.study import PLAY, FocusDilutionOptions, check_use
from stagescope.processes.markov_chain import Chain, MarkovChain
from stagescope.readings.setup import make_dynamics
from stagescope.readings.study import Setup

# Transition matrices from files.


def read_chain(path: Path) -> MarkovChain:
    """The chain of a CSV file with one row of the transition matrix per line, without names."""
    try:
        text = read_table(f"the transition matrix in {path}", path)
        rows = [row for row in csv.reader(StringIO(text, newline="")) if any(cell.strip() for cell in row)]
    except InputError:
        raise
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"cannot read the transition matrix in {path}: {error}") from None
    if not rows:
        raise InputError(f"{path} has no rows: write one row of the transition matrix per line, separated by commas")
    if len(rows) == 1 and len(rows[0]) > 1:
        raise InputError(f"{path} has one row, {', '.join(rows[0])!r}, and no matrix below it: write one row per token, no names")
    widths = [len(row) for row in rows]
    if set(widths) != {len(rows)}:
        odd = next((width for width in widths if width != len(rows)), 0)
        raise InputError(f"the transition matrix in {path} is not square: it has {len(rows)} rows, and one of {odd} entries")
    return MarkovChain(rows=tuple(tuple(_number(cell, i, path) for cell in row) for i, row in enumerate(rows)))


def _number(cell: str, row: int, path: Path) -> float:
    try:
        return float(cell)
    except ValueError:
        place = f"row {row} of the transition matrix in {path}"
        raise InputError(f"{place} has {cell.strip()!r}, which is not a number; leave out names and headings") from None


LENGTHS = {"finite": 16, "sampled": 256}


def study_setup(options: FocusDilutionOptions, seed: int) -> Setup:
    check_use(options)
    chain, facts = _chain(options)
    model = TokenAttention(vocab=chain.vocab, width=options.width, key_width=options.key_width, scale=options.scale)
    block_scales = {name: getattr(options, f"init_scale_{name.lower()}") for name in model.shapes}
    if None not in block_scales.values():
        refuse_unused(options, ("init_scale",), "every block has a scale of its own")
    scales = {name: options.init_scale if scale is None else scale for name, scale in block_scales.items()}
    if not any(scales.values()):
        raise InputError("every block starts at 0, a critical point where nothing ever moves; take an --init-scale above 0")
    faster = {"lr": options.lr + options.lr_per_eps * options.eps} if options.lr_per_eps else {}
    return Setup(
        what=_loss(options, model, chain, seed),
        params=model.init(seed, scales),
        dynamics=make_dynamics(options, **faster),
        until=options.until if options.optimizer == "flow" else None,
        record=Uniform(frames=options.frames),
        facts=facts,
    )


def _chain(options: FocusDilutionOptions) -> tuple[Chain, dict[str, Any]]:
    if options.transition is not None:
        chain = read_chain(options.transition)
        return chain, {"transition_digest": digest(chain.describe())}
    pi, tokens = options.pi, options.tokens
    if options.pi0 is not None:
        check_tokens(tokens)
        if tokens == 2 and not options.shape and options.delta != 0:
            raise InputError(f"delta {options.delta:g} needs at least two tokens besides the first: use --tokens 3 or more")
        # A single rare token has nothing to differ from.
        shape = options.shape or ((1.0, *(0.0,) * (tokens - 3), -1.0) if tokens > 2 else (0.0,))
        pi = asymmetric_law(options.pi0, tokens, shape, options.delta)
    return LazyChain(pi=pi, persistence=options.persistence), {}


def _loss(options: FocusDilutionOptions, model: Any, chain: Chain, seed: int) -> Objective:
    if options.form == "population":
        return TokenPopulation(model=model, process=chain)
    length = options.length if options.length is not None else LENGTHS[options.form]
    if options.form == "finite":
        return TokenFinite(model=model, process=chain, length=length, start=options.start)
    batch = min(128, options.sequences) if options.optimizer == "sgd" and options.batch is None else options.batch
    sample = {"sequences": options.sequences, "seed": seed, "batch": batch, "start": options.start}
    return TokenSampled(model=model, process=chain, length=length, **sample)


# What the page that plays focus and dilution is given: random numbers of starts, and the level of an open direction.


def play_draws(seed: int) -> dict[str, np.ndarray]:
    """Of the largest model that the sliders reach. A smaller one has the first numbers of each block."""
    largest = {slider.option: int(slider.high) for slider in PLAY.sliders}
    model = TokenAttention(vocab=largest["tokens"], width=largest["width"], scale=1.0)
    return {name: block.ravel() for name, block in model.init(seed, 1.0).items()}


def play_constants() -> dict[str, float]:
    return {"level": LIMITS.level}

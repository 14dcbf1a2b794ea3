"""Focus and dilution (arXiv 2605.01199): embeddings condense, attention focuses on the frequent token, then dilutes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from stagescope.errors import InputError
from stagescope.studies.study import Options, Setup, Study, refuse_unused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stagescope.dynamics.dynamics import Dynamics
    from stagescope.dynamics.record import Record
    from stagescope.figures.figure import Figure
    from stagescope.processes.markov_chain import Chain
    from stagescope.theory.claim import Claim


class FocusDilutionOptions(Options):
    """Focus and dilution: one attention layer on a Markov chain, in the limit of long contexts."""

    pi: tuple[float, ...] = Field((0.5, 0.25, 0.15, 0.10), description="stationary law of the lazy chain")
    persistence: float = Field(0.6, description="probability of repeating the last token, in [0, 1)")
    transition: Path | None = Field(None, description="transition matrix (CSV, one row per line) in place of the lazy chain")
    scale: float = Field(4.0, gt=0, description="factor of the attention scores")
    width: int = Field(8, ge=1, description="width m of the embedding, and of queries and keys")
    init_scale: float = Field(1e-3, ge=0, description="standard deviation of the initial parameters")
    optimizer: Literal["flow", "gd", "adam"] = Field("flow", description="gradient flow, or steps")
    until: float = Field(800.0, gt=0, description="end time of the flow")
    steps: int = Field(8000, ge=1, description="steps of a descent")
    lr: float = Field(0.1, gt=0, description="step size of a descent")
    method: Literal["auto", "cvode", "lsoda", "dop853", "radau"] = Field("auto", description="integrator of the flow")
    rtol: float = Field(1e-10, gt=0, lt=1, description="relative tolerance of the flow")
    frames: int = Field(1000, ge=3, description="number of recorded frames, equally spaced")


PRESETS: dict[str, dict[str, Any]] = {
    "ref": {},
    "paper": {"pi": (0.75, 0.19, 0.05, 0.01), "persistence": 0.5, "scale": 8**-0.5, "until": 6000.0},
    "near-symmetric": {"pi": (0.4, 0.22, 0.2, 0.18), "persistence": 0.6, "until": 3000.0},
    "zipf": {"pi": (0.4081, 0.2041, 0.1361, 0.102, 0.0816, 0.0681), "persistence": 0.5, "until": 1500.0},
}


def setup(options: FocusDilutionOptions, seed: int) -> Setup:
    from stagescope.models.token_attention import TokenAttention
    from stagescope.objectives.token import TokenPopulation

    if options.optimizer == "flow":
        refuse_unused(options, ("steps", "lr"), "a flow ends at --until and has no steps; choose an --optimizer")
    else:
        refuse_unused(options, ("until", "method", "rtol"), f"{options.optimizer} takes --steps; they are for the flow")
    if options.transition is not None:
        refuse_unused(options, ("pi", "persistence"), "the chain comes from --transition")
    chain = _chain(options)
    model = TokenAttention(vocab=chain.vocab, width=options.width, scale=options.scale)
    return Setup(
        what=TokenPopulation(model=model, process=chain),
        params=model.init(seed, options.init_scale),
        dynamics=_dynamics(options),
        until=options.until if options.optimizer == "flow" else None,
        record=_record(options),
    )


def _chain(options: FocusDilutionOptions) -> "Chain":
    import numpy as np

    from stagescope.processes.markov_chain import LazyChain, MarkovChain

    if options.transition is None:
        return LazyChain(pi=options.pi, persistence=options.persistence)
    try:
        rows = np.loadtxt(options.transition, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the transition matrix in {options.transition}: {error}") from None
    return MarkovChain(rows=tuple(tuple(row) for row in rows.tolist()))


def _dynamics(options: FocusDilutionOptions) -> "Dynamics":
    from stagescope.dynamics.descent import GD, Adam, Descent
    from stagescope.dynamics.flow import GradientFlow

    if options.optimizer == "flow":
        return GradientFlow(method=options.method, rtol=options.rtol)
    return Descent(optimizer=GD() if options.optimizer == "gd" else Adam(), lr=options.lr, steps=options.steps)


def _record(options: FocusDilutionOptions) -> "Record":
    from stagescope.dynamics.record import Uniform

    return Uniform(frames=options.frames)


def _claims() -> "tuple[Claim, ...]":
    from stagescope.theory.focus_dilution import CLAIMS

    return CLAIMS


def _figures() -> "Mapping[str, Figure]":
    return {}


STUDY = Study(
    name="focus-dilution",
    paper="focus-dilution",
    title="Focus and dilution: embeddings condense, attention focuses on the frequent token, then dilutes",
    options=FocusDilutionOptions,
    presets=PRESETS,
    setup=setup,
    tags=("FD:model", "FD:population", "FD:origin", "FD:attention-rate", "FD:stages"),
    claims=_claims,
    figures=_figures,
    ledger=tuple(PRESETS),
)

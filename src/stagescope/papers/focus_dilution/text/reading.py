"""Read a run of focus and dilution on a text: its stages, and the companion runs that its claims need."""

from functools import cached_property
from typing import NoReturn

import numpy as np

from stagescope.core.errors import InputError, StagescopeError
from stagescope.core.params import key
from stagescope.corpora.corpus import written
from stagescope.detect.stage import Stages
from stagescope.flow.descent import Descent
from stagescope.flow.record import Graded, Uniform
from stagescope.papers.focus_dilution.loss import BLOCKS, TokenPopulation
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.papers.focus_dilution.text import forms, stages
from stagescope.papers.focus_dilution.text.claims import FLOW_STEP, TextEvidence
from stagescope.papers.focus_dilution.text.model import TextVariant
from stagescope.papers.focus_dilution.text.observables import TextCurves, text_curves
from stagescope.readings.reading import Reading
from stagescope.readings.rebuild import companion_run, rebuilt
from stagescope.readings.replay import Replay
from stagescope.runs.run import Run


def probes(run: Run, curves: TextCurves) -> dict[str, int]:
    """The words whose rows are followed, with their tokens; by default the three most frequent ones but the first type."""
    named = (run.config or {}).get("probe")
    if named:
        return {word: curves.words.index(written(word)) for word in named}
    order = np.argsort(-curves.pi, kind="stable")[1:].tolist()
    labels = {curves.words[token]: token for token in order}
    ordered = sorted(labels, key=lambda word: not word[:1].isalpha())  # stable: by frequency, marks after words
    return {word: labels[word] for word in ordered[:3]}


def bigram_flow(run: Run, until: float) -> Run:
    """Descent on the population loss of the corpus's bigram chain from the same start, on the same clock [FD:text-bigram].

    Steps of at most .2 stand in for a flow, which is stiff at hundreds of types and slow to integrate.
    """
    law = rebuilt(run.spec["field"])
    model = TokenAttention(**{name: getattr(law.model, name) for name in TokenAttention.model_fields})
    start = {name: run.params[name][0] for name in BLOCKS}
    steps = max(1, int(np.ceil(until / min(FLOW_STEP, float(run.spec["dynamics"]["lr"])))))
    chain = TokenPopulation(model=model, process=law.process)
    record = Graded(frames=441)  # as many as the study records by default
    return companion_run(chain, start, Descent(lr=until / steps, steps=steps), record=record)


def separability(run: Run) -> float:
    """r = sigma_2/sigma_1 of E[h (y - 1/d)^T], h the input of the output layer at the start [FD:text-separability]."""
    law = rebuilt(run.spec["field"])
    if not isinstance(law, TextVariant):
        return forms.separability(law.process, law.length)[0]
    count = 2**15  # windows: enough to know r to about .005
    starts = key(law.seed, "separability").integers(law.windows, size=count)
    excess = np.zeros((law.model.width, law.model.vocab))
    for part in np.array_split(starts, max(1, count // 1024)):
        tokens = law.arrays(part)["tokens"]
        features = np.asarray(law.model.features(run.at(0), tokens[:, :-1]))
        np.add.at(excess.T, np.asarray(tokens[:, -1]), features)
        excess -= features.sum(axis=0)[:, None] / law.model.vocab
    values = np.linalg.svd(excess, compute_uv=False)
    return float(values[1] / values[0])


class TextFocusReading(Reading):
    """Curves of a run on a text, its stages with those of the probe words, and its companion runs."""

    @property
    def replays(self) -> bool:
        """Not where frames are near enough: it takes as long as the training, and `stagescope verify --replay` does it."""
        return False

    @cached_property
    def curves(self) -> TextCurves:
        return text_curves(self.run)

    @cached_property
    def stages(self) -> Stages:
        return stages.detect(self.curves, probes(self.run, self.curves), clock=self.run.clock, status=self.run.status)

    @cached_property
    def evidence(self) -> TextEvidence:
        return TextEvidence(self.run, self.curves, reading=self)

    def early(self, steps: int) -> TextCurves:
        """The first steps again, on the same batches, with more frames, where they pass through all that were recorded there."""
        run = self.run
        recorded = run.only(np.arange(min(int(np.searchsorted(run.step, steps)) + 1, run.frames)))
        law, frame_steps = Replay(recorded, self.field), Uniform(frames=min(60, steps + 1)).steps(steps)
        if (again := law.refined(frame_steps)) is None:
            raise StagescopeError(law.test.sentence)
        return text_curves(again.only(np.flatnonzero(np.isin(again.step, frame_steps))))

    def bigram(self, until: float) -> Run:
        return bigram_flow(self.run, until)

    def separability(self) -> float:
        return separability(self.run)

    @property
    def has_own_ladder(self) -> bool:
        return True

    def own_ladder(self) -> NoReturn:
        """Refused: the gradient of a loss on batches does not vanish anywhere along a run."""
        raise InputError(
            f"a run on a text ({self.type}) makes noisy steps and has no ladder; "
            "`check` compares it with the flow of its bigram chain"
        )

"""The reading of heads on a text: stages, evidence of the claims, facts of a text, and words."""

from functools import cached_property

from rich import box
from rich.table import Table
from rich.text import Text

from stagescope.corpora.corpus import AboutText, TextCorpus
from stagescope.detect.stage import Stage, Stages
from stagescope.papers.incremental.study import WORDS
from stagescope.papers.incremental.text.loss import lag_information
from stagescope.papers.incremental.text.stages import LagHeads, TextEvidence, TextLagCurves, detect, text_lag_curves
from stagescope.readings.reading import Reading
from stagescope.views.view import Explained, captions, listed, motion_words, plain


def about_text(corpus: TextCorpus, window: int, until: float | None = None, progress: bool | None = False) -> AboutText:
    """Information of the first lags, alone and added to the most informative one; it depends on no window and no time."""
    listed = 8
    facts = lag_information(corpus, listed).facts
    table = Table("nats at lag", *(str(lag + 1) for lag in range(listed)), box=box.SIMPLE_HEAD, pad_edge=False)
    for name, label in (("alone", "alone"), ("added", "added"), ("errors", "+-")):
        table.add_row(label, *(f"{value:.3f}" for value in facts[name]))
    order = Text(f"order of importance: {' '.join(map(str, facts['order']))}")
    return AboutText({"lags": facts}, (table, order))


class TextIncrementalReading(Reading):
    """Attention of the heads on each lag, and when they acquire one lag after another."""

    @property
    def replays(self) -> bool:
        """Not where frames are near enough: it takes as long as the training, and `stagescope verify --replay` does it."""
        return False

    @cached_property
    def curves(self) -> TextLagCurves:
        return text_lag_curves(self.run)

    @cached_property
    def heads(self) -> LagHeads:
        return LagHeads(self.curves.time, self.curves.loss, self.curves.mass, self.curves.mass_agreement)

    @cached_property
    def stages(self) -> Stages:
        return detect(self.heads, clock=self.run.clock, status=self.run.status)

    @cached_property
    def evidence(self) -> TextEvidence:
        curves = self.curves
        return TextEvidence(self.run, self.heads, curves.information, curves.levels, curves.held_information, curves.gain)


def explain_text(reading: TextIncrementalReading) -> Explained:
    law = reading.law
    heads, lags = law.model.heads, law.model.context
    layer = f"{heads} attention head{'s' * (heads > 1)}, which see positions only, predict each token from the {lags} before it"
    sentence = f"{layer}, in the text {law.process.title} ({law.process.vocab:,} types). {motion_words(reading.run)}"
    return Explained(sentence, captions=captions(reading.told_stages, _sentence), glossary=WORDS.glossary["text"])


def _sentence(stage: Stage) -> str:
    facts = stage.facts
    if "top_lags" not in facts:
        return plain(stage)
    loss = f"The loss goes from {facts['loss_start']:.4g} to {facts['loss_end']:.4g} nats"
    heads = enumerate(zip(facts["top_lags"], facts["top_attention"], strict=True))
    tops = listed([f"head {i} lag {lag} with {share:.2f}" for i, (lag, share) in heads], most=6)
    if not facts["acquired"]:
        return f"No head has turned to a lag yet. {loss}. At the end of this stage the heads look most at: {tops}."
    newest = facts["acquired"][-1]
    lags = listed([str(lag) for lag in sorted(facts["acquired"])], most=8)
    return f"A head has turned to lag {newest}; acquired so far: lag {lags}. {loss}. At the end heads look most at: {tops}."

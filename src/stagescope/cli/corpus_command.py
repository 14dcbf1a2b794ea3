"""`stagescope corpus`: a text before anything is trained on it."""

import math
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from pydantic import Field

from stagescope.cli.command import Command, print_json
from stagescope.corpora.files import Layout
from stagescope.corpora.options import CORPUS, LAYOUT, TOKENS, VOCAB
from stagescope.errors import InputError, sentence
from stagescope.papers.registry import is_ours, papers
from stagescope.progress import progress_for

if TYPE_CHECKING:
    from stagescope.corpora.facts import AboutText


class Corpus(Command):
    """A text before anything is trained on it: counts, vocabulary, importance of lags, and what papers predict for it."""

    corpus: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME|PATH")] = CORPUS
    tokens: Literal["word", "lower", "char", "bpe"] | None = TOKENS
    layout: Layout | None = LAYOUT
    vocab: int = Field(200, description=VOCAB)
    window: int = Field(256, description="tokens per window of the predictions")
    events: float | None = Field(None, description="also follow the bigram flow up to this t (4000 shows most; a minute)")
    quiet: bool = Field(False, description="no progress bar")
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print as JSON")

    def run(self) -> int:
        from stagescope.corpora.corpus import read_corpus
        from stagescope.corpora.facts import corpus_facts

        shown = False if self.quiet or self.json_ else None
        if self.events is not None and not 0 < self.events < math.inf:
            raise InputError(f"--events {self.events:g} is no time to follow the flow to; take one above 0, such as 4000")
        chosen: Any = {name: getattr(self, name) for name in ("tokens", "layout", "vocab")}
        text = read_corpus(self.corpus, **chosen, progress=progress_for(shown))
        found, about, errors = corpus_facts(text), [], {}
        for name, paper in papers().items():
            try:
                if paper.about_text is not None:
                    about.append(_checked(paper.about_text(text, self.window, self.events, shown)))
            except Exception as error:  # code of a paper runs here
                if is_ours(name):  # such as a text that is shorter than a window
                    raise
                errors[name] = error
        for name, error in errors.items():
            print(f"stagescope: what {name} predicts is left out: {sentence(error)}", file=sys.stderr)
        if self.json_:
            print_json({**found, **{name: value for each in about for name, value in each.facts.items()}})
        else:
            from stagescope.cli.render_corpus import print_corpus

            print_corpus(found, [item for each in about for item in each.shown])
        return 0


def _checked(about: Any) -> "AboutText":
    from stagescope.corpora.facts import AboutText

    if not isinstance(about, AboutText):
        raise InputError(f"about_text returned {about!r:.60}; expected an AboutText")
    return about

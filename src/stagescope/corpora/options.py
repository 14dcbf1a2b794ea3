"""What the studies of real text have in common: which text, and how it is read."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from stagescope.core.options import Options
from stagescope.corpora.files import Layout

if TYPE_CHECKING:
    from stagescope.core.progress import Progress
    from stagescope.corpora.corpus import TextCorpus


CORPUS: Any = Field("topics", description="a known corpus (topics, wikitext-2, tinystories, ...) or the path of a text")
TOKENS: Any = Field(
    None,
    description="words, lower-case words, basic_english, characters or BPE; default: as usual for the corpus, else lower-case",
)
LAYOUT: Any = Field(
    None,
    description="documents: one text, one a line, separated by <|endoftext|>, or JSON lines; default: detected from the file",
)
SHUFFLE = "put the tokens of each part in a random order, drawn from this seed: a null, in which no word predicts another"
VOCAB = "tokens: the most frequent types, and one for all others"


class TextOptions(Options):
    """A corpus and its tokens."""

    corpus: str = CORPUS
    tokens: Literal["word", "lower", "basic", "char", "bpe"] | None = TOKENS
    layout: Layout | None = LAYOUT
    vocab: int = Field(100, ge=2, description=VOCAB)
    shuffle: int | None = Field(None, ge=0, description=SHUFFLE)

    def read(self, progress: "Progress | None" = None) -> "TextCorpus":
        from stagescope.corpora.corpus import read_corpus

        return read_corpus(
            self.corpus, tokens=self.tokens, vocab=self.vocab, layout=self.layout, shuffle=self.shuffle, progress=progress
        )

    @classmethod
    def anchored(cls, name: str, value: Any) -> Any:
        from stagescope.corpora.known import anchored

        return anchored(value) if name == "corpus" else super().anchored(name, value)

    def files(self) -> dict[str, dict[str, Path]]:
        """Also the files of a text given as a path; the name of a known corpus determines its bytes."""
        from stagescope.corpora.known import KNOWN, locate

        text_files = {} if self.corpus in KNOWN else {"corpus": locate(self.corpus)}
        return {**super().files(), **text_files}

    def prepare(self, progress: bool | None) -> None:
        """Read the text with a bar; it then stays in memory for the set-up."""
        from stagescope.core.progress import progress_for

        self.read(progress_for(progress))


def text_facts(corpus: "TextCorpus") -> dict[str, Any]:
    """What a run keeps of its text: the words are the labels of its tokens where the text is not at hand."""
    return {"words": list(corpus.words), "corpus_sha256": corpus.sha256, "train_tokens": len(corpus.train)}

"""References of papers, and tagged statements: words in the code, numbers in a table of each paper."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reference:
    """What to cite for a paper; `arxiv` is its number there, where it has one. `also` is a second paper to cite with it.

    Examples:
        >>> ss.Reference("me2026", "A title", "A. Author", 2026, "a journal").text
        'A. Author: A title. a journal, 2026.'
    """

    key: str
    title: str
    authors: str
    year: int
    venue: str
    arxiv: str = ""
    also: "Reference | None" = None

    @property
    def text(self) -> str:
        place = f" arXiv:{self.arxiv}" if self.arxiv else ""
        second = "" if self.also is None else f"; {self.also.text}"
        return f"{self.authors}: {self.title}. {self.venue}, {self.year}.{place}{second}"

    @property
    def bibtex(self) -> str:
        authors = self.authors.replace(", ", " and ")
        lines = (f"title = {{{self.title}}}", f"author = {{{authors}}}", f"year = {{{self.year}}}")
        extra = (f"note = {{{self.venue}}}",)
        if self.arxiv:
            extra += (f"eprint = {{{self.arxiv}}}", "archivePrefix = {arXiv}")
        entry = f"@misc{{{self.key},\n  " + ",\n  ".join(lines + extra) + "\n}"
        return entry if self.also is None else f"{entry}\n{self.also.bibtex}"


@dataclass(frozen=True)
class Tag:
    """One statement: where it stands and what it says, in the code's own names.

    Examples:
        >>> ss.Tag("lemma 1", "Row sums of Y and Z are conserved").number
        'lemma 1'
    """

    number: str
    says: str


GENERAL = {
    "flow:field": Tag("definition", "theta_b' = rate_b F_b(theta)"),
    "flow:dissipation": Tag("identity", "dL/dt = -sum_b rate_b |grad_b L|^2 along a gradient flow"),
    "flow:linear": Tag("definition", "delta' = J delta near a critical point, J the Jacobian of F"),
}
"""Statements that belong to no paper."""

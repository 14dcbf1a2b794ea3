"""What to cite, and the statements that the code uses, by tag."""

from stagescope.claims.reference import Reference, Tag

REFERENCE = Reference(
    key="toy2026unigram",
    title="Logits Learn Frequencies",
    authors="A. Toy",
    year=2026,
    venue="An example in the documentation of Stagescope",
)
TAGS = {
    "unigram:loss": Tag("definition", "L = log sum_j exp(b_j) - pi . b"),
    "unigram:sum": Tag("section 1", "the sum of b is conserved, because its gradient sums to zero"),
    "unigram:rate": Tag("linearisation", "late excess loss falls like exp(-2 lambda t), lambda least rate of diag(pi) - pi pi^T"),
}

"""Hypothesis strategies: random sequence classes and random states."""

import numpy as np
from hypothesis import strategies as st

from stagescope.papers.scan_snap.model import PairwiseAttention
from stagescope.papers.scan_snap.process import SequenceClass, SequenceClasses


@st.composite
def sequence_classes(draw, most: int = 4, shared_query: bool | None = None):
    """Random classes: random laws over random subsets of common tokens and own distinct ones, extra outputs, random prior."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(2, most))
    commons = draw(st.integers(0, 4))
    distinct = draw(st.integers(1, 4))
    share = draw(st.booleans()) if shared_query is None else shared_query
    queries = commons + count * distinct
    targets = queries + count
    classes = []
    for n in range(count):
        chosen = [token for token in range(commons) if rng.random() < 0.8]
        tokens = (*chosen, *range(commons + n * distinct, commons + (n + 1) * distinct))
        law = rng.dirichlet(np.ones(len(tokens))) + 0.01
        law = law / law.sum()
        query = queries if share else queries + n
        classes.append(SequenceClass(query=query, target=targets + n, tokens=tokens, probabilities=tuple(law)))
    prior = rng.dirichlet(np.full(count, 5.0))
    vocab = targets + count + draw(st.integers(0, 20))
    return SequenceClasses(vocab=vocab, classes=tuple(classes), prior=tuple(prior / prior.sum()))


def random_state(model: PairwiseAttention, seed: int, scale: float = 1.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: scale * rng.normal(size=block.shape) for name, block in model.init().items()}

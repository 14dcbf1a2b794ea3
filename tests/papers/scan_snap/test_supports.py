"""Entries of the supports: what is computed on them is what the dense definitions give."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.scan_snap.model import attention, features
from stagescope.papers.scan_snap.observables import Supports
from stagescope.papers.scan_snap.process import SequenceClass


def common_in(process, keys):
    """Which entries of the table of laws belong to common tokens."""
    return np.isin(keys, sorted(process.common)) & (process.table(keys) > 0)


def unequal() -> ss.SequenceClasses:
    """Classes of different sizes whose tokens are not in order; two of them share a query."""
    made = (
        SequenceClass(query=7, target=9, tokens=(4, 0, 2), probabilities=(0.5, 0.2, 0.3)),
        SequenceClass(query=7, target=10, tokens=(1, 0), probabilities=(0.9, 0.1)),
        SequenceClass(query=8, target=9, tokens=(5, 6, 0, 3), probabilities=(0.1, 0.2, 0.3, 0.4)),
    )
    return ss.SequenceClasses(vocab=30, classes=made)


@pytest.mark.parametrize(
    "process", [unequal(), ss.SequenceClasses.synthetic(3, 2, 4, 3), ss.SequenceClasses.synthetic(1, 1, 0, 1)]
)
def test_entries_agree_with_dense_matrices(process):
    law = ss.PairwiseSampled(model=ss.PairwiseAttention.every_output(process), process=process, length=8, batch=4)
    on, table = Supports.of_law(law), process.table(law.model.keys)
    random = np.random.default_rng(0)
    z = 3 * random.normal(size=(5, *law.model.shapes["Z"]))
    dense = attention(z[:, law.rows["query"]], np.broadcast_to(table, (5, *table.shape)))
    found = on.attention(z[:, on.row, on.key])
    np.testing.assert_array_equal(on.dense(on.chance), table)
    np.testing.assert_array_equal(on.dense(on.common), common_in(process, law.model.keys))
    np.testing.assert_allclose(on.dense(found), dense, rtol=1e-13)
    dense_features = features(z[:, law.rows["query"]], np.broadcast_to(table, (5, *table.shape)))
    np.testing.assert_allclose(on.dense(on.features(found)), dense_features, rtol=1e-13)
    np.testing.assert_array_equal(on.key[on.argtops(found[0])], dense[0].argmax(axis=1))
    own = np.where(common_in(process, law.model.keys), 0.0, dense)
    share = own / own.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(on.entropy(found), -np.sum(share * np.log(np.where(share > 0, share, 1)), axis=2), atol=1e-13)


def test_the_first_of_equal_entries_leads_and_what_is_no_number_does_not():
    process = unequal()
    on = Supports.of_law(ss.population_loss(ss.PairwiseAttention.merged(process), process))
    values = np.array([1.0, 1.0, 0.0, np.nan, -5.0, 2.0, 3.0, 3.0, np.nan])
    assert on.argtops(values).tolist() == [0, 4, 6]

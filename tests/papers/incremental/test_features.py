"""Feature matrices: norms, centring, orthogonality, and files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagescope as ss
from stagescope.core.spec import build

KINDS = ("orthogonal", "centred", "gram-schmidt")
SEEDS = st.integers(0, 10_000)


@given(st.sampled_from(KINDS), SEEDS, st.integers(4, 12), st.integers(1, 4))
def test_every_kind_has_the_promised_norm_and_round_trips(kind, seed, vocab, count):
    features = ss.RandomFeatures(kind=kind, seed=seed)
    np.testing.assert_allclose(np.linalg.norm(features.stack(count, vocab), axis=(1, 2)), np.sqrt(vocab), rtol=1e-12)
    assert build(features.describe()) == features


@given(SEEDS, st.integers(2, 12))
def test_orthogonal(seed, vocab):
    for matrix in ss.RandomFeatures(seed=seed).stack(3, vocab):
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(vocab), atol=1e-12)


@given(st.sampled_from(KINDS[1:]), SEEDS, st.integers(4, 12))
def test_centred_kinds_sum_to_zero_both_ways(kind, seed, vocab):
    found = ss.RandomFeatures(kind=kind, seed=seed).stack(3, vocab)
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=2), 0, atol=1e-12)


@given(SEEDS, st.integers(4, 12))
def test_centred_is_orthogonal_on_vectors_that_sum_to_zero(seed, vocab):
    for matrix in ss.RandomFeatures(kind="centred", seed=seed).stack(2, vocab):
        np.testing.assert_allclose(matrix @ matrix.T, (np.eye(vocab) - 1 / vocab) * vocab / (vocab - 1), atol=1e-12)


@given(SEEDS, st.integers(4, 12))
def test_gram_schmidt_is_orthogonal_in_the_frobenius_product(seed, vocab):
    flat = ss.RandomFeatures(kind="gram-schmidt", seed=seed).stack(4, vocab).reshape(4, -1)
    np.testing.assert_allclose(flat @ flat.T, vocab * np.eye(4), atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_more_groups_keep_the_first_ones(kind):
    features = ss.RandomFeatures(kind=kind, seed=3)
    np.testing.assert_array_equal(features.stack(4, 6)[:2], features.stack(2, 6))
    assert not np.allclose(features.stack(1, 6), ss.RandomFeatures(kind=kind, seed=4).stack(1, 6))


def test_what_cannot_be_drawn():
    with pytest.raises(ss.InputError, match=r"2 centred matrices on 2 tokens cannot be made orthogonal.*seed than 0"):
        ss.RandomFeatures(kind="gram-schmidt").stack(2, 2)
    with pytest.raises(ss.InputError, match=r"features would take 22.4 GiB \(3 x 31,623 x 31,623 numbers\)"):
        ss.RandomFeatures().stack(3, 31_623)
    with pytest.raises(ss.InputError, match=r"kind.*'orthogonal', 'centred' or 'gram-schmidt'"):
        ss.RandomFeatures(kind="normal")
    with pytest.raises(ss.InputError, match="at least 2 tokens"):
        ss.RandomFeatures().stack(1, 1)


@pytest.mark.parametrize("suffix", ["npy", "npz"])
@pytest.mark.parametrize("reverse", [False, True])
def test_matrices_survive_the_file(tmp_path, suffix, reverse):
    matrices = np.random.default_rng(0).normal(size=(3, 4, 4)).astype(np.float32)
    path = tmp_path / f"features.{suffix}"
    np.save(path, matrices) if suffix == "npy" else np.savez(path, features=matrices)
    found = ss.read_features(path, reverse=reverse)
    np.testing.assert_array_equal(found.stack(3, 4), matrices[::-1] if reverse else matrices)
    assert build(found.describe()) == found == ss.GivenFeatures(matrices=found.stack(3, 4))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.ones((4, 4)), r"bad.npy has shape \(4, 4\); expected .*\(groups, d, d\)"),
        (np.ones((3, 4, 5)), r"shape \(3, 4, 5\)"),
        (np.ones((0, 4, 4)), r"shape \(0, 4, 4\)"),
        (np.full((1, 2, 2), np.nan), r"shape \(1, 2, 2\) has 4 entries not finite"),
        (np.ones((1, 2, 2), dtype=complex), "type complex128"),
        (np.ones((2, 1, 1)), "at least 2 x 2"),
        (np.array([[[{}]]]), "cannot read the features in .*: it holds Python objects, not numbers; expected"),
    ],
)
def test_bad_arrays(tmp_path, array, words):
    np.save(tmp_path / "bad.npy", array)
    with pytest.raises(ss.InputError, match=words):
        ss.read_features(tmp_path / "bad.npy")


def test_bad_files(tmp_path):
    np.savez(tmp_path / "two.npz", a=np.ones((1, 2, 2)), b=np.ones((1, 2, 2)))
    (tmp_path / "text.npz").write_text("0.5,0.5")
    np.savez(tmp_path / "whole.npz", a=np.random.default_rng(0).normal(size=(2, 9, 9)))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:-200])
    (tmp_path / "empty.npy").write_bytes(b"")
    for name, words in (
        ("two.npz", r"2 arrays \['a', 'b'\]"),
        ("text.npz", r"cannot read .* neither an \.npy nor an \.npz file; expected"),
        ("cut.npz", "cannot read"),
        ("empty.npy", "cannot read"),
        ("none.npz", "No such file"),
        (".", "directory"),
    ):
        with pytest.raises(ss.InputError, match=words):
            ss.read_features(tmp_path / name)


@pytest.mark.parametrize(
    ("matrices", "words"),
    [
        ((), "no matrices"),
        ([np.eye(3).tolist(), np.eye(2).tolist()], "matrix 1 has 2 rows of 2 entries"),
        ([[[1.0, 2.0], [1.0]]], "2 rows of 1 or 2 entries"),
        ([[[1.0, float("inf")], [1.0, 1.0]]], "finite"),
    ],
)
def test_bad_given_matrices(matrices, words):
    with pytest.raises(ss.InputError, match=words):
        ss.GivenFeatures(matrices=matrices)

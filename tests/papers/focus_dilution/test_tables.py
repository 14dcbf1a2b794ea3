"""Transition matrices from files."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.focus_dilution.setup import read_chain


def test_a_matrix_survives_the_file(tmp_path):
    rows = np.random.default_rng(0).dirichlet(np.ones(3), size=3)
    np.savetxt(tmp_path / "p.csv", rows, delimiter=",", fmt="%.17g")
    assert read_chain(tmp_path / "p.csv") == ss.MarkovChain(rows=rows)


def test_tables_from_spreadsheets(tmp_path):
    (tmp_path / "p.csv").write_text("0.5, 0.5\r\n0.25, 0.75\r\n\r\n", encoding="utf-8-sig")
    np.testing.assert_allclose(read_chain(tmp_path / "p.csv").stationary, [1 / 3, 2 / 3])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0.5,0.5\n", "has one row, '0.5, 0.5', and no matrix below it"),
        ("the,of,and\n", "has one row, 'the, of, and', .* no names"),
        ("0.5,0.5\n0.2,0.3,0.5\n", "not square: it has 2 rows, and one of 3 entries"),
        ("", "has no rows: write one row"),
        ("\n , \n", "has no rows"),
        ("a,b\n0.5,0.5\n0.5,0.5\n", "not square"),
        ("0.5,0.5\n0.5,half\n", "row 1 .* 'half', which is not a number"),
        ("0.5,0.5\n0.5,\n", "row 1 .* '', which is not a number"),
        ("nan,0.5\n0.5,0.5\n", "finite number, got nan"),
        ("0.5,0.6\n0.5,0.5\n", "row 0 sums to 1.1"),
        ("0,1\n1,0\n", "period 2; add a little persistence"),
        ("1,0\n0.5,0.5\n", "reducible.*add a small probability"),
    ],
)
def test_bad_tables(tmp_path, text, words):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(ss.InputError, match=words):
        read_chain(tmp_path / "p.csv")


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "latin.csv").write_bytes("é,1\n1,0\n".encode("latin-1"))
    for name, words in (("latin.csv", "codec"), ("none.csv", "No such file"), (".", "directory")):
        with pytest.raises(ss.InputError, match=f"cannot read the transition matrix in .*{words}"):
            read_chain(tmp_path / name)

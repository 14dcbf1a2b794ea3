"""The manifest has one exact form: every changed byte is seen, and the order of its names survives."""

import json
import re
import string
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.core.errors import DamagedRun, NotARun, StoreError
from stagescope.runs import files, manifest
from tests.runs import samples


@pytest.fixture
def written(tmp_path):
    """A folder with the manifest of an unfinished run, rich in numbers, names and digests."""
    return samples.unfinished(tmp_path / "run")


def rewrite(folder, change):
    path = folder / manifest.NAME
    old = path.read_bytes()
    new = change(old)
    assert new != old
    path.write_bytes(new)


def test_read_is_the_inverse_of_write(tmp_path):
    made = samples.manifest()
    made.write(tmp_path)
    found = manifest.read(tmp_path)
    assert found == made
    assert found.text() == made.text() == (tmp_path / manifest.NAME).read_bytes()


def test_the_order_of_names_survives(tmp_path):
    """The order of blocks is that of the state vector, so a sorted manifest would resume with blocks exchanged."""
    samples.manifest().write(tmp_path)
    found = manifest.read(tmp_path)
    assert list(found.spec["blocks"]) == ["W", "A"]
    assert list(found.arrays) == ["t", "loss", "W", "A"]


def test_every_changed_byte_is_seen(written):
    path = written / manifest.NAME
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in range(len(good)):
        bad = bytearray(good)
        bad[place] ^= int(rng.integers(1, 256))
        path.write_bytes(bad)
        with pytest.raises(StoreError, match=re.escape(str(path))):
            manifest.read(written)


def test_every_digit_that_becomes_another_is_seen(written):
    """The likeliest damage that still is JSON: other numbers, also ones too large to be numbers."""
    path = written / manifest.NAME
    good = path.read_bytes()
    rng = np.random.default_rng(1)
    for place in [i for i, byte in enumerate(good) if chr(byte) in string.digits + "-+.e"]:
        letters = [letter for letter in (string.digits + "-e.").encode() if letter != good[place]]
        bad = bytearray(good)
        bad[place] = rng.choice(letters)
        path.write_bytes(bad)
        with pytest.raises(StoreError, match=re.escape(str(path))):
            manifest.read(written)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + b"\n",
        lambda text: text.rstrip(b"\n"),
        lambda text: b" " + text,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.replace(b'"clock": ', b'"clock":'),
        lambda text: text.replace(b"1e-10", b"1E-10"),
        lambda text: text.replace(b'"until": 1.0', b'"until": 1.00'),
        lambda text: text.replace(b'"until": 1.0', b'"until": 1'),
        lambda text: text.replace(b'"until": 1.0', b'"until": 1e999'),
        lambda text: text.replace(b'"until": 1.0', b'"until": NaN'),
        lambda text: text.replace(b'"W"', b'"\\u0057"', 1),
        lambda text: text.replace(b'"seed": 7', b'"seed": 7, "seed": 7'),
        lambda text: text.replace(b'"seed": 7', b'"seed": 7, "more": 1'),
        lambda text: text.replace(b'"seed": 7', b'"seed": "7"'),
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.decode().encode("utf-16"),
        lambda text: json.dumps(json.loads(text)).encode(),
        lambda text: json.dumps(json.loads(text), indent=1, sort_keys=True).encode() + b"\n",
        lambda text: text[: len(text) // 2],
        lambda text: b"",
        lambda text: b"null",
        lambda text: b"[]",
        lambda text: b"{}",
        lambda text: b"[" * 100_000,
        lambda text: b"\x00" * len(text),
    ],
)
def test_other_forms_of_the_same_content_are_seen(written, change):
    rewrite(written, change)
    with pytest.raises(DamagedRun, match="manifest"):
        manifest.read(written)


def test_upper_case_digits_of_a_digest_are_seen(written):
    digests = set(re.findall(rb'"([0-9a-f]{64})"', (written / manifest.NAME).read_bytes()))
    assert len(digests) > 5
    for digest in digests:
        rewrite(written, lambda text, digest=digest: text.replace(digest, digest.upper()))
        with pytest.raises(DamagedRun):
            manifest.read(written)
        rewrite(written, lambda text, digest=digest: text.replace(digest.upper(), digest))
        manifest.read(written)


def test_exchanged_blocks_are_seen(written):
    def exchange(text):
        body = json.loads(text)
        body["spec"]["blocks"] = dict(reversed(body["spec"]["blocks"].items()))
        return (json.dumps(body, indent=1) + "\n").encode()

    rewrite(written, exchange)
    with pytest.raises(DamagedRun, match="digest"):
        manifest.read(written)


@pytest.mark.parametrize(
    "change",
    [
        {"field": "TokenPopulation"},
        {"field": {}},
        {"field": {"type": ["own"]}},
        {"field": {"type": "own"}},
        {"field": None},
        {"field": None, "source": "arrays"},
        {"field": None, "source": {"kind": ["arrays"]}},
        {"dynamics": None},
        {"dynamics": {"type": ["GradientFlow"]}},
        {"dynamics": "GradientFlow"},
        {"blocks": ["W", "A"]},
        {"blocks": {"W": 2}},
    ],
)
def test_a_spec_of_another_shape_is_damage_although_the_digest_is_right(tmp_path, change):
    samples.manifest().model_copy(update={"spec": {**samples.SPEC, **change}}).write(tmp_path)
    with pytest.raises(DamagedRun, match=next(iter(change))):
        manifest.read(tmp_path)


@pytest.mark.parametrize("name", list(samples.SPEC))
def test_a_spec_without_one_of_its_keys_is_damage(tmp_path, name):
    spec = {key: value for key, value in samples.SPEC.items() if key != name}
    samples.manifest().model_copy(update={"spec": spec}).write(tmp_path)
    with pytest.raises(DamagedRun, match=f"no {name}"):
        manifest.read(tmp_path)


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (3, "schema version 3 is newer than 2; update stagescope"),
        (1, r"schema version 1 is of Stagescope 0\.1; install version 0\.2, which reads it"),
    ],
)
def test_another_schema_is_refused_with_a_remedy(written, version, words):
    def other(text):
        body = {**json.loads(text), "schema_version": version, "something": "new"}
        body.pop("digest")
        return json.dumps({**body, "digest": files.digest(json.dumps(body, indent=1).encode())}, indent=1).encode() + b"\n"

    rewrite(written, other)
    with pytest.raises(StoreError, match=words) as caught:
        manifest.read(written)
    assert not isinstance(caught.value, DamagedRun)


def test_a_folder_that_is_not_a_run(tmp_path):
    with pytest.raises(NotARun, match=r"holds no run \(no manifest.json\)"):
        manifest.read(tmp_path)
    with pytest.raises(NotARun, match="does not exist"):
        manifest.read(tmp_path / "nothing")
    (tmp_path / "file").touch()
    with pytest.raises(NotARun, match="is a file"):
        manifest.read(tmp_path / "file")
    with pytest.raises(StoreError, match="shorter name"):
        manifest.read(tmp_path / ("x" * 300))


@given(st.text(), st.integers(), st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_any_text_and_numbers_in_a_spec_survive(tmp_path_factory, text, whole, numbers):
    folder = tmp_path_factory.mktemp("manifest")
    spec = {**samples.SPEC, "field": {"type": "own", "name": text, "whole": whole, "numbers": numbers}}
    made = samples.manifest().model_copy(update={"spec": spec})
    made.write(folder)
    assert manifest.read(folder) == made


def test_environment_names_what_the_numbers_depend_on():
    found = manifest.environment()
    assert {"python", "system", "machine", "cores", "threads", "packages"} <= set(found)
    assert {"stagescope", "numpy", "jax", "scikit-sundae"} <= set(found["packages"])


def test_the_thread_setup_is_that_of_the_process(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    found = manifest.environment()["threads"]
    assert found["OPENBLAS_NUM_THREADS"] == "3"
    assert "MKL_NUM_THREADS" not in found
    monkeypatch.setitem(sys.modules, "numba", SimpleNamespace(config=SimpleNamespace(NUMBA_NUM_THREADS=5)))
    assert manifest.environment()["threads"]["numba"] == 5
    monkeypatch.delitem(sys.modules, "numba")
    assert "numba" not in manifest.environment()["threads"]

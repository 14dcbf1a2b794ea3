"""Sizes are estimated before anything is made: models, sequences, tables, frames."""

import io
import re
import subprocess
import sys
import time
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest

import stagescope as ss
from stagescope.core import memory
from stagescope.flow import gradient_flow as flow

CHAIN = ss.LaggedChain.spans(5, (2, 1))
SIZES = {"vocab": 5, "heads": 3, "context": 3, "targets": 4}


def test_numbers_and_limit(monkeypatch):
    assert memory.numbers({"a": (2, 3), "b": (), "c": (0, 7)}) == 7
    monkeypatch.setattr(memory, "LIMIT", 8 * 100)
    memory.require_memory("this", "that", 10, 10)
    with pytest.raises(ss.InputError, match=r"^this would take .* GiB \(101 numbers\), above .* GiB; that$"):
        memory.require_memory("this", "that", 101)
    memory.require_parameters({"a": (100 // memory.COPIES,)}, "that")
    with pytest.raises(ss.InputError, match=r"the parameters of this model .*\(8 x 13 numbers\)"):
        memory.require_parameters({"a": (6, 2), "b": (1,)}, "that")


@pytest.mark.long
def test_frames_in_a_folder_need_room_on_its_disk_and_not_in_memory(monkeypatch, tmp_path):
    """The same for a study and for `evolve`: a flow holds the frames up to a restart, a descent one frame."""
    monkeypatch.setattr(memory, "LIMIT", 8 * 60_000)
    monkeypatch.setattr(flow, "WAITING", 30_000)
    usage = types.SimpleNamespace(free=10**9, total=10**9)
    monkeypatch.setattr(memory.shutil, "disk_usage", lambda _: usage)
    for options in ({"until": 1.0}, {"optimizer": "gd", "steps": 5000, "record": "uniform"}):
        many = {"frames": 1000, **options, "progress": False}
        with pytest.raises(ss.InputError, match="the 1,000 recorded frames would take"):
            ss.run_study("scan-snap", **many)
        assert ss.run_study("scan-snap", out=tmp_path / str(len(options)), **many).frames == 1000
        usage.free = 8 * 1000
        with pytest.raises(ss.InputError, match=r"recorded frames would take .* that are free in .*; record fewer --frames"):
            ss.run_study("scan-snap", out=tmp_path / "deep" / "run", **many)
        usage.free = 10**9
    usage.free = usage.total = 0
    memory.require_disk("this", "that", tmp_path / "where there is no disk", 7)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"spans": (10**6, 2), "steps": 1}, "tables of all lags .* shorter spans"),
        ({"spans": (10**12, 2)}, "tables of all lags .* shorter spans"),
        ({"spans": (1,), "vocab": 100_000}, r"tables of all lags .* take a smaller vocabulary \(--vocab\)$"),
        ({"spans": (2, 2), "vocab": 100_000}, r"tables of all lags .* smaller vocabulary \(--vocab\) or fewer groups$"),
        ({"spans": (300_000, 2), "vocab": 4, "heads": 12, "steps": 1}, "parameters of this model .* shorter spans"),
        ({"spans": (100_000, 2), "vocab": 4, "targets": 1, "steps": 1}, "these sequences .* shorter spans"),
        ({"pad": 10**8}, "parameters .* less padding"),
        ({"pad": 10**7, "heads": 1, "targets": 1, "steps": 1, "sequences": 20}, "work space of the heads .* less padding"),
        ({"targets": 10**7}, "parameters .* fewer targets"),
        ({"heads": 10**8}, "parameters .* heads"),
        ({"sequences": 10**9}, "these sequences .* fewer"),
        ({"fresh": True, "batch": 10**9}, "these sequences .* fewer"),
        ({"frames": 10**9}, "times of 1,000,000,000 frames .* fewer --frames"),
        ({"record": "every-step", "steps": 10**7}, "recorded frames .* --record log"),
        ({"frames": 10**7, "steps": 10**7}, "recorded frames .* fewer --frames"),
        ({"model": "content", "spans": (20000, 2), "steps": 1}, "parameters .* shorter spans"),
        ({"model": "transformer", "width": 300000}, "parameters .* smaller width"),
        ({"model": "transformer", "mlp": 10**9}, "parameters .* smaller width"),
        ({"model": "transformer", "spans": (40000, 2), "frames": 10, "layers": 2}, "attention .* less padding"),
        (
            {"model": "transformer", "spans": (3000, 2), "sequences": 100, "targets": 20000, "width": 6},
            "attention .* fewer heads",
        ),
        (
            {"model": "transformer", "width": 3, "pad": 10**7, "sequences": 1, "frames": 3, "steps": 1},
            "attention .* less padding",
        ),
        ({"model": "mirror", "frames": 10**9}, "times of 1,000,000,000 frames"),
        ({"model": "mirror", "frames": 10**8}, "recorded frames .* fewer --frames"),
        ({"model": "regression", "positions": 10**8}, "parameters .* fewer positions"),
        ({"model": "regression-transformer", "positions": 10**8}, "parameters .* fewer positions"),
        ({"model": "regression-transformer", "positions": 10**7}, "target map .* fewer positions"),
        ({"model": "regression-transformer", "batch": 10**9}, "batch .* fewer contexts"),
        ({"model": "regression-transformer", "heads": 10**6, "dim": 100}, "parameters .* fewer heads"),
    ],
    ids=str,
)
def test_too_large_a_run_is_refused_at_once(options, words):
    begin = time.process_time()
    with pytest.raises(ss.InputError, match=r"would take [0-9.,]+ GiB .* numbers\), above [0-9.]+ GiB; .*") as error:
        ss.run_study("incremental", **options, progress=False)
    assert re.search(words, str(error.value)), str(error.value)
    assert time.process_time() - begin < 20  # imports included, on a busy machine


@pytest.mark.parametrize(
    ("make", "numbers"),
    [
        (lambda: ss.PositionalHeads(**SIZES), 3 * (4 * 6 + 25)),
        (lambda: ss.ContentHeads(**SIZES), 3 * (11 * 11 + 5 * 11)),
        (lambda: ss.RegressionHeads(positions=9, gains=(2.0, 1.0), heads=3), 3 * (9 + 2)),
        (lambda: ss.Transformer(**SIZES, width=6, mlp=0, norm="none"), 5 * 6 + 6 * 6 + 4 * 36 + 6 * 5),  # no output bias
    ],
)
def test_models_fit_in_just_as_much_as_they_take(monkeypatch, make, numbers):
    """On a machine with one number less the same model is refused: the estimate is the size of what `init` makes."""
    assert sum(block.size for block in make().init(0).values()) == numbers
    monkeypatch.setattr(memory, "LIMIT", 8 * memory.COPIES * numbers)
    make()
    monkeypatch.setattr(memory, "LIMIT", 8 * memory.COPIES * numbers - 1)
    with pytest.raises(ss.InputError, match=f"8 x {numbers} numbers"):
        make()


@pytest.mark.parametrize("model", [ss.PositionalHeads(**SIZES), ss.ContentHeads(**SIZES), ss.Transformer(**SIZES, width=6)])
def test_objectives_are_refused_before_they_draw(monkeypatch, model):
    monkeypatch.setattr(memory, "LIMIT", 8 * 100_000)
    monkeypatch.setattr(ss.LaggedChain, "sample", None)
    from stagescope.papers.incremental.students import student_loss

    student_loss(model, CHAIN, sequences=100)
    with pytest.raises(ss.InputError, match=r"these sequences .*\(50,000 x 4 x 5 numbers\)"):
        student_loss(model, CHAIN, sequences=50_000)


def test_a_group_of_many_lags_is_checked_in_one_pass():
    """A million lags with one twice: counting each of them would take days."""
    with pytest.raises(ss.InputError, match="group 0 has lag 7 twice"):
        ss.LaggedChain(vocab=2, groups=((*range(1, 300_000), 7),), importances=(1.0,))


HUGE = 10**9
ABSURD = {
    "scan-snap": [
        ({"num_common": 10**7}, "num_common 10,000,000"),
        ({"num_last": HUGE}, "num_last 1,000,000,000"),
        ({"num_unique": 10**12}, "num_unique 1,000,000,000,000"),
        ({"columns": "all", "vocab": HUGE}, r"vocab 1,000,000,000, .* --columns merged$"),
        ({"optimizer": "gd", "length": HUGE}, "128 contexts of 1,000,000,000 tokens .* lower --length or --batch$"),
        ({"optimizer": "gd", "length": 2, "batch": HUGE}, "batch of 1,000,000,000 contexts .* lower --batch$"),
        ({"frames": HUGE}, "1,000,000,000 frames .* fewer --frames$"),
        ({"optimizer": "gd", "record": "every-step", "steps": HUGE}, "fewer --steps than 1,000,000,000, or choose --record log"),
        ({"classes": Path("/dev/zero")}, "classes are read from .json or .csv"),
    ],
    "focus-dilution": [
        ({"width": HUGE}, r"\(vocab 4, width 1,000,000,000\)"),
        ({"key_width": HUGE}, r"key width 1,000,000,000\)"),
        ({"pi0": 0.5, "tokens": HUGE}, r"1,000,000,000 tokens .* \(--tokens, --pi\)$"),
        ({"form": "sampled", "sequences": 8, "length": 10**7}, "8 sequences of length 10,000,000"),
        ({"frames": 10**7}, "10,000,000 recorded frames .* fewer --frames$"),
        ({"transition": Path("/dev/zero")}, "the transition matrix in /dev/zero has more than"),
    ],
    "text-focus": [
        ({"batch": 10**7}, "10,000,000 windows of 256 tokens .* lower --batch"),
        ({"width": HUGE}, "width 1,000,000,000"),
        ({"window": HUGE}, "shorter --window$"),
        ({"form": "causal", "watched": HUGE}, r"the recorded loss \(watched 1,000,000,000\) .* lower --watched"),
        ({"tokens": "bpe", "vocab": HUGE}, "1,000,000,000 pieces .* smaller --vocab"),
    ],
    "text-incremental": [
        ({"batch": HUGE}, "1,000,000,000 windows .* lower --batch"),
        ({"window": HUGE}, "context 1,000,000,000"),
    ],
    "text-snap": [
        ({"batch": HUGE}, "1,000,000,000 windows of 32 tokens .* lower --batch"),
        ({"model": "transformer", "hidden": HUGE}, "hidden 1,000,000,000"),
        ({"model": "transformer", "batch": 10**5}, "the logits of 100,000 windows"),
    ],
}


@pytest.fixture
def small_machine(monkeypatch):
    """A limit that is the same on every machine, and so small that a test that breaks it does no harm."""
    monkeypatch.setattr(memory, "LIMIT", 2**29)


@pytest.mark.parametrize(
    ("study", "options", "words"), [(study, *case) for study, several in ABSURD.items() for case in several], ids=str
)
def test_an_absurd_option_of_any_study_is_refused_at_once(small_machine, study, options, words):
    """A part of validation/sizes.py: the sentence names what was given."""
    begin = time.process_time()
    with pytest.raises(ss.InputError) as error:
        ss.run_study(study, **options, progress=False)
    assert re.search(words, str(error.value)), str(error.value)
    assert time.process_time() - begin < 20  # imports and a text included, on a busy machine


@pytest.mark.parametrize(
    "make",
    [
        lambda: ss.LazyChain(pi=(1e-5,) * 10**5, persistence=0.5),
        lambda: ss.MarkovChain(rows=(range(10),) * 10**5),
        lambda: ss.MarkovChain(rows=range(HUGE)),
        lambda: ss.MarkovChain(rows=np.broadcast_to(0.5, (HUGE, HUGE))),
        lambda: ss.TokenAttention(vocab=4, width=HUGE, scale=1.0),
        lambda: ss.PairwiseAttention.full(HUGE),
        lambda: ss.LazyChain(pi=(0.5, 0.5), persistence=0.5).sample(np.random.default_rng(0), HUGE, HUGE),
        lambda: ss.SequenceClasses.synthetic(num_last=2, num_next_per_last=1, num_common=HUGE, num_unique=10),
        lambda: ss.from_arrays(step=range(10**12), loss=[1.0]),
        lambda: ss.from_arrays(step=[0, 1], loss=np.broadcast_to(0.0, (HUGE, HUGE))),
    ],
)
def test_absurd_objects_are_refused_at_once(small_machine, make):
    with pytest.raises(ss.InputError, match=r"would (take|go through) .*; (take|give) "):
        make()


def test_rows_of_a_chain_that_are_too_long_are_not_copied():
    for rows in ((range(HUGE),) * 2, np.broadcast_to(0.5, (2, HUGE))):
        with pytest.raises(ss.InputError, match="row 0 of the transition matrix has 1000000000 entries, expected 2"):
            ss.MarkovChain(rows=rows)


def test_a_file_that_unpacks_to_gigabytes_is_refused_by_its_header(tmp_path):
    start = io.BytesIO()
    np.lib.format.write_array_header_1_0(start, {"descr": "<f8", "fortran_order": False, "shape": (2, 10**6, 10**6)})
    (tmp_path / "a.npy").write_bytes(start.getvalue() + bytes(1000))
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(tmp_path / "a.npy", "a.npy")
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ss.InputError, match=rf"{name} would take .*\(5 x 2 x 1,000,000 x 1,000,000 numbers\)"):
            ss.read_features(tmp_path / name)


def test_a_limit_of_the_process_counts():
    """The least of machine, container and own limit; read when the module is imported."""
    limited = "import resource as r; r.setrlimit(r.RLIMIT_AS, (2**32, 2**32))"
    code = f"{limited}; from stagescope.core import memory as m; print(m.MACHINE, m.LIMIT)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    machine, limit = map(int, said.split())
    assert machine <= 2**32
    assert limit == machine // 4

"""Sizes are estimated before anything is made: models, sequences, tables, frames."""

import re
import time

import pytest

import stagescope as ss
from stagescope import memory

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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"spans": (10**6, 2), "steps": 1}, "tables of all lags .* shorter spans"),
        ({"spans": (10**12, 2)}, "tables of all lags .* shorter spans"),
        ({"spans": (1,), "vocab": 100_000}, r"tables of all lags .* take a smaller vocabulary \(--vocab\)$"),
        ({"spans": (2, 2), "vocab": 100_000}, r"tables of all lags .* smaller vocabulary \(--vocab\) or fewer groups$"),
        ({"spans": (10**6, 2), "vocab": 4, "heads": 12, "steps": 1}, "parameters of this model .* shorter spans"),
        ({"spans": (10**6, 2), "vocab": 4, "targets": 1, "steps": 1}, "these sequences .* shorter spans"),
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
        ({"model": "transformer", "spans": (3000, 2), "frames": 10, "layers": 2}, "stream .* less padding"),
        ({"model": "transformer", "spans": (3000, 2), "frames": 10, "targets": 100, "width": 6}, "attention .* fewer heads"),
        (
            {"model": "transformer", "width": 3, "pad": 10**7, "sequences": 1, "frames": 3, "steps": 1},
            "inputs of the first layer",
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
    assert time.process_time() - begin < 5  # imports included, on a busy machine


@pytest.mark.parametrize(
    ("make", "numbers"),
    [
        (lambda: ss.PositionalHeads(**SIZES), 3 * (4 * 6 + 25)),
        (lambda: ss.ContentHeads(**SIZES), 3 * (11 * 11 + 5 * 11)),
        (lambda: ss.RegressionHeads(positions=9, gains=(2.0, 1.0), heads=3), 3 * (9 + 2)),
        (lambda: ss.Transformer(**SIZES, width=6, mlp=0, norm="none"), 5 * 6 + 6 * 6 + 4 * 36 + 6 * 5 + 5),
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
    from stagescope.papers.incremental.students.losses import student_loss

    student_loss(model, CHAIN, sequences=100)
    with pytest.raises(ss.InputError, match=r"these sequences .*\(50,000 x 4 x 5 numbers\)"):
        student_loss(model, CHAIN, sequences=50_000)


def test_a_group_of_many_lags_is_checked_in_one_pass():
    """A million lags with one twice: counting each of them would take days."""
    with pytest.raises(ss.InputError, match="group 0 has lag 7 twice"):
        ss.LaggedChain(vocab=2, groups=((*range(1, 300_000), 7),), importances=(1.0,))

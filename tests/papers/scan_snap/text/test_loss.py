"""Y and Z on windows of a text: kernel against definition, merged against all columns, batches."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.flow.field import Objective
from stagescope.papers.scan_snap.model import features
from stagescope.papers.scan_snap.text.loss import PairwiseWindows, on_windows
from stagescope.papers.scan_snap.text.process import topic_windows
from tests.planted import NEXTS, planted_text


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "planted.txt"
    path.write_text(planted_text(800))
    return topic_windows(ss.read_corpus(path, vocab=65, layout="text", tokens="lower"), "the", NEXTS, window=20, least=5)


def somewhere(loss, scale=1.0):
    draw = np.random.default_rng(1)
    return {name: scale * draw.normal(size=shape) for name, shape in loss.shapes.items()}


@pytest.mark.parametrize("scale", [0.5, 30.0])
def test_kernel_is_the_definition(process, scale):
    loss = PairwiseWindows(model=on_windows(process), process=process)
    params = somewhere(loss, scale)
    assert loss.value(params) == pytest.approx(Objective.value(loss, params), rel=1e-12)
    for name, block in Objective.grad(loss, params).items():
        np.testing.assert_allclose(loss.grad(params)[name], block, atol=1e-12)


def test_one_window_by_hand(process):
    loss = PairwiseWindows(model=on_windows(process), process=process)
    params, windows = somewhere(loss), process.part("train")
    counts = np.zeros((len(windows), len(process.keys)))
    counts[windows.of, windows.key] = windows.count
    logits = features(params["Z"][0], counts) @ params["Y"]
    total = np.exp(logits) @ loss.model.multiplicity
    own = logits[np.arange(len(windows)), windows.target]
    assert loss.value(params) == pytest.approx(np.mean(np.log(total) - own), rel=1e-12)


def test_merged_column_is_exact(process):
    """The same steps with a column for every word."""
    merged = on_windows(process)
    every = merged.model_copy(update={"outputs": tuple(range(process.vocab))})
    runs = []
    for model in (merged, every):
        loss = PairwiseWindows(model=model, process=process, batch=32)
        runs.append(ss.evolve(loss, model.init(), ss.Descent(lr=1.0, steps=200), progress=False))
    np.testing.assert_allclose(runs[0].params["Z"], runs[1].params["Z"], atol=1e-10)
    np.testing.assert_allclose(runs[0].params["Y"][-1][:, :4], runs[1].params["Y"][-1][:, list(process.targets)], atol=1e-10)


@pytest.mark.long
def test_kernel_steps_are_compiled_steps(process):
    """GradientLoop with the kernel against the definition compiled by JAX, on the same batches."""
    from stagescope.core.params import Layout
    from stagescope.flow.descent import CompiledLoop

    loss = PairwiseWindows(model=on_windows(process), process=process, batch=16)
    descent = ss.Descent(optimizer=ss.Adam(), lr=0.05, steps=20, clip=0.05, half_life=7.0)
    start = loss.model.init()
    run = ss.evolve(loss, start, descent, progress=False)
    layout = Layout.of(start)
    loop = CompiledLoop(descent, loss.field(), layout)
    carry, done = loop.advance(loop.restore(loop.start(layout.pack(start))), 0, 20)
    assert done == 20
    np.testing.assert_allclose(loop.vector(carry), layout.pack(run.at(-1)), atol=1e-9)


def test_batches_depend_on_seed_and_step(process):
    loss = PairwiseWindows(model=on_windows(process), process=process, batch=16, seed=3)
    np.testing.assert_array_equal(loss.minibatch(7), loss.minibatch(7))
    assert not np.array_equal(loss.minibatch(7), loss.minibatch(8))
    whole = loss.model_copy(update={"batch": None})
    assert whole.minibatch(7) is None
    assert len(whole.all) == len(process.part("train"))


def test_a_model_of_another_vocabulary_is_refused(process):
    model = on_windows(process).model_copy(update={"vocab": 99})
    with pytest.raises(ss.InputError, match="model vocabulary 99 differs"):
        PairwiseWindows(model=model, process=process)

"""Sampled contexts: draws in law, kernel = definition on the same draws, many runs = one run."""

import math
from bisect import bisect_right

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.params import Layout
from stagescope.flow.descent import CompiledLoop, Descent, HeavyBall
from stagescope.papers.scan_snap.loss import PairwiseSampled
from stagescope.papers.scan_snap.sampled_kernel import GUIDE, _exp_rows, _pick, inverse_table


def sampled(shape=(3, 2, 4, 5), length=33, batch=17, seed=5):
    process = ss.SequenceClasses.synthetic(*shape)
    model = ss.PairwiseAttention.every_output(process)
    return PairwiseSampled(model=model, process=process, length=length, batch=batch, seed=seed)


def uneven(length=20, batch=4000, seed=1):
    """Classes of different sizes, laws and priors."""
    one = ss.SequenceClass(query=5, target=6, tokens=(0, 1, 2), probabilities=(0.05, 0.15, 0.8))
    two = ss.SequenceClass(query=5, target=7, tokens=(0, 3), probabilities=(0.3, 0.7))
    process = ss.SequenceClasses(vocab=8, classes=(one, two), prior=(0.2, 0.8))
    model = ss.PairwiseAttention.every_output(process)
    return PairwiseSampled(model=model, process=process, length=length, batch=batch, seed=seed)


def test_inversion_tables_hold_the_law():
    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 40, 5000):
        law = rng.dirichlet(np.full(size, 0.3)) + 1e-7
        law /= law.sum()
        upper, guide = np.empty(size, np.uint64), np.empty(GUIDE, np.int32)
        inverse_table(law, upper, guide)
        found = np.diff(upper.astype(float), prepend=0.0) / 2**32
        np.testing.assert_allclose(found, law, atol=2**-31)
        # every 32-bit number gives the token that a plain search of the cumulative law gives
        bits = np.concatenate([rng.integers(0, 2**32, 3000, dtype=np.uint64), upper[:-1], upper[:-1] - np.uint64(1)])
        walked = [_pick.py_func(b, upper, guide) for b in bits if b < 2**32]
        np.testing.assert_array_equal(walked, np.searchsorted(upper, bits[bits < 2**32], side="right"))


def test_counts_follow_the_law():
    problem = uneven()
    sizes, counts = problem.sample(0)
    assert counts.sum(axis=1).tolist() == [20] * 4000
    assert abs(sizes[0] / 4000 - 0.2) < 5 * math.sqrt(0.16 / 4000)
    for n, rows in enumerate((counts[: sizes[0]], counts[sizes[0] :])):
        law = np.array(problem.process.classes[n].probabilities)
        drawn = rows[:, : len(law)]
        error = np.sqrt(law * (1 - law) / (20 * len(rows)))
        assert np.all(np.abs(drawn.mean(axis=0) / 20 - law) < 5 * error)
        # multinomial, not only the right mean: variance L p (1 - p), and no count outside the class
        np.testing.assert_allclose(drawn.var(axis=0), 20 * law * (1 - law), rtol=0.15)
        assert not rows[:, len(law) :].any()


def test_odd_lengths_and_steps_are_independent_draws():
    problem = uneven(length=21, batch=50)
    first, second = problem.sample(0)[1], problem.sample(1)[1]
    assert first.sum(axis=1).tolist() == [21] * 50
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, problem.sample(0)[1])
    assert not np.array_equal(first, uneven(length=21, batch=50, seed=2).sample(0)[1])


@pytest.mark.parametrize(("length", "batch"), [(2, 1), (3, 40), (21, 50), (130, 7)])
def test_draws_are_those_of_a_plain_loop(length, batch):
    """SplitMix64 from (seed, step): one number for each class, then one for every two tokens of a context."""
    problem = uneven(length=length, batch=batch, seed=9)
    start, upper, _, class_upper, _ = (np.asarray(each).tolist() for each in problem.tables)
    word, golden = 2**64, 0x9E3779B97F4A7C15

    def mix(x):
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % word
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % word
        return x ^ (x >> 31)

    state = mix((9 + golden) % word) ^ (4 * golden % word)
    state = mix(state)
    numbers = iter(mix((state + k * golden) % word) for k in range(1, 10**6))
    classes = sorted(bisect_right(class_upper, next(numbers) >> 32) for _ in range(batch))
    sizes, counts = problem.sample(4)
    assert sizes.tolist() == [classes.count(0), classes.count(1)]
    for row, n in zip(counts.tolist(), classes, strict=True):
        expected = [0, 0, 0]
        for _ in range((length + 1) // 2):
            bits = next(numbers)
            for part in (bits >> 32, bits % 2**32):
                if sum(expected) < length:
                    expected[bisect_right(upper[start[n] : start[n + 1]], part)] += 1
        assert row == expected


def test_vector_exponential_is_exact_to_rounding():
    x = np.random.default_rng(0).normal(size=(20, 57)) * 30
    expected = np.exp(x - x.max(axis=1, keepdims=True))
    total = np.empty(20)
    _exp_rows(x, total)
    np.testing.assert_allclose(x, expected, rtol=1e-14, atol=1e-300)
    np.testing.assert_allclose(total, 1 / expected.sum(axis=1), rtol=1e-13)


@pytest.mark.long
@pytest.mark.parametrize("make", [sampled, uneven])
def test_kernel_steps_equal_the_definition_on_the_same_draws(make):
    problem = make(batch=17)
    descent = Descent(optimizer=HeavyBall(momentum=0.8), rates={"Y": 0.7, "Z": 1.3}, lr=0.9, steps=25)
    start = problem.model.init(1, 0.3)
    run = ss.evolve(problem, start, descent)
    layout = Layout.of(start)
    loop = CompiledLoop(descent, problem.field(), layout)
    carry, done = loop.advance(loop.restore(loop.start(layout.pack(start))), 0, 25)
    assert done == 25
    np.testing.assert_allclose(layout.pack(run.at(-1)), loop.vector(carry), atol=1e-12)


@pytest.mark.parametrize(
    ("make", "batch"), [(sampled, 17), (uneven, 17), (uneven, 1), (lambda **given: sampled(shape=(2, 3, 7, 6), **given), 40)]
)
def test_steps_in_float32_are_those_of_float64(make, batch):
    """On the same batches; a gradient entry to 2e-6 of the largest, 25 steps to 2e-5 of the largest parameter."""
    problem = make(batch=batch)
    single = problem.model_copy(update={"precision": "float32"})
    start = problem.model.init(1, 0.3)
    for lr, steps, tolerance in ((1.0, 1, 2e-6), (0.9, 25, 2e-5)):
        descent = Descent(optimizer=HeavyBall(momentum=0.8), lr=lr, steps=steps)
        ends = [ss.evolve(law, start, descent).at(-1) for law in (problem, single)]
        for name in ("Y", "Z"):
            assert np.any(ends[0][name] != ends[1][name])
            scale = np.abs(ends[0][name]).max()
            np.testing.assert_allclose(ends[1][name], ends[0][name], atol=tolerance * scale, rtol=0)


def test_a_step_in_float32_from_logits_of_hundreds():
    """They would overflow unless shifted; the change of Y and Z to 1e-3 of the largest, as logits of 300 are exact to 2e-5."""
    problem = sampled(batch=17)
    start = {name: (300.0 if name == "Y" else 1.0) * block for name, block in problem.model.init(1, 1.0).items()}
    start = {name: block.astype(np.float32).astype(float) for name, block in start.items()}
    single, descent = problem.model_copy(update={"precision": "float32"}), Descent(optimizer=HeavyBall(), lr=1.0, steps=1)
    ends = [ss.evolve(law, start, descent).at(-1) for law in (problem, single)]
    for name in ("Y", "Z"):
        moved = [end[name] - start[name] for end in ends]
        np.testing.assert_allclose(moved[1], moved[0], atol=1e-3 * np.abs(moved[0]).max(), rtol=0)


def test_a_run_in_float32_does_not_depend_on_its_frames():
    options = {"optimizer": "heavy-ball", "length": 16, "batch": 8, "steps": 40, "precision": "float32", "progress": False}
    every, few = (ss.run_study("scan-snap", record=record, frames=5, **options) for record in ("every-step", "uniform"))
    np.testing.assert_array_equal(few.params["Y"], every.params["Y"][few.step])
    with pytest.raises(ss.InputError, match="gd and heavy-ball"):
        ss.run_study("scan-snap", **{**options, "optimizer": "adam"})
    with pytest.raises(ss.InputError, match="length"):
        ss.run_study("scan-snap", precision="float32")


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_many_runs_are_the_single_runs(precision):
    problem = sampled(length=16, batch=8).model_copy(update={"precision": precision})
    seeds, rates = np.array([3, 4]), np.array([0.5, 2.0])
    y, z, taken = problem.train_many(seeds, 0.2, rates, 2 * rates, steps=12)
    assert taken.tolist() == [12, 12]
    for i, seed in enumerate(seeds):
        alone = problem.model_copy(update={"seed": int(seed)})
        descent = Descent(optimizer=HeavyBall(), rates={"Y": rates[i], "Z": 2 * rates[i]}, steps=12)
        run = ss.evolve(alone, problem.model.init(int(seed), 0.2), descent)
        np.testing.assert_array_equal(run.params["Y"][-1], y[i])
        np.testing.assert_array_equal(run.params["Z"][-1], z[i])


@pytest.mark.long
def test_long_contexts_and_large_batches_tend_to_the_limit():
    process = ss.SequenceClasses.synthetic(2, 1, 2, 3)
    model = ss.PairwiseAttention.every_output(process)
    descent = Descent(lr=0.5, steps=30)
    limit = ss.evolve(ss.population_loss(model, process), model.init(), descent)
    gaps = []
    for length, batch in ((20, 50), (20_000, 500)):
        problem = PairwiseSampled(model=model, process=process, length=length, batch=batch)
        gaps.append(np.abs(ss.evolve(problem, model.init(), descent).params["Z"][-1] - limit.params["Z"][-1]).max())
    assert gaps[1] < 0.25 * gaps[0]


def test_recording_never_changes_a_sampled_run():
    descent = Descent(optimizer=HeavyBall(), steps=40)
    problem = sampled()
    every, few = (ss.evolve(problem, problem.model.init(), descent, record=r) for r in (ss.Every(n=1), ss.Every(n=13)))
    np.testing.assert_array_equal(few.params["Z"], every.params["Z"][few.step])


@pytest.mark.long
def test_a_diverging_rate_names_its_step():
    problem = sampled()
    run = ss.evolve(problem, problem.model.init(), Descent(optimizer=HeavyBall(), lr=1e300, steps=40))
    assert run.status == "diverged"
    assert "diverged at step" in run.reason
    assert all(row.verdict != "confirmed" for row in ss.check(run))


def test_bad_sizes():
    process = ss.SequenceClasses.synthetic(2, 1, 2, 3)
    model = ss.PairwiseAttention.every_output(process)
    with pytest.raises(ss.InputError, match="length"):
        PairwiseSampled(model=model, process=process, length=1, batch=4)
    with pytest.raises(ss.InputError, match="every_output"):
        PairwiseSampled(model=ss.PairwiseAttention.merged(process), process=process, length=4, batch=4)
    with pytest.raises(ss.InputError, match="need steps"):
        ss.run_study("scan-snap", length=16)
    with pytest.raises(ss.InputError, match="length"):
        ss.run_study("scan-snap", length=1, optimizer="gd")


def test_contexts_without_the_strongest_token():
    """Scores so far apart that the strongest token alone would leave nothing of a context that lacks it."""
    problem = uneven(length=4, batch=64)
    params = problem.model.init(0, 0.3)
    params["Z"][0, 2] = 600.0  # token 2 has probability .8 in one class: some contexts of four tokens lack it
    descent = Descent(lr=0.1, steps=3)
    run = ss.evolve(problem, params, descent)
    layout = Layout.of(params)
    loop = CompiledLoop(descent, problem.field(), layout)
    carry, _ = loop.advance(loop.restore(loop.start(layout.pack(params))), 0, 3)
    np.testing.assert_allclose(layout.pack(run.at(-1)), loop.vector(carry), atol=1e-11)

"""From the options of incremental learning to what `evolve` needs."""

from typing import Any

from stagescope.dynamics.descent import Descent
from stagescope.papers.incremental.features import RandomFeatures, read_features
from stagescope.papers.incremental.process import LaggedChain
from stagescope.papers.incremental.regression.loss import MirrorFlow, RegressionLoss
from stagescope.papers.incremental.regression.model import RegressionHeads
from stagescope.papers.incremental.regression.sampled import RegressionSampled
from stagescope.papers.incremental.regression.transformer import RegressionTransformer
from stagescope.papers.incremental.students.setup import initial, student, student_rates
from stagescope.papers.incremental.study import FLOWS, IncrementalOptions, check_use, rule
from stagescope.papers.setup import make_descent, make_flow, make_record
from stagescope.papers.study import Setup
from stagescope.spec import digest


def setup(options: IncrementalOptions, seed: int) -> Setup:
    check_use(options)
    if options.model in FLOWS or options.model == "regression-transformer":
        return _regression(options, seed)
    chain, facts = _chain(options)
    loss = student(options, chain, seed)
    return Setup(
        what=loss,
        params=initial(options, loss.model, _init_seed(options, seed)),
        dynamics=_descent(options),
        record=make_record(options),
        facts=facts,
    )


def _init_seed(options: IncrementalOptions, seed: int) -> int:
    return seed if options.init_seed is None else options.init_seed


def _regression(options: IncrementalOptions, seed: int) -> Setup:
    """The flows, and the transformer on sampled contexts that they are the average of."""
    heads = RegressionHeads(positions=options.positions, gains=options.gains, heads=options.heads)
    start = (_init_seed(options, seed), options.init_scale, options.noise)
    if options.model == "regression-transformer":
        model = RegressionTransformer(reduced=heads, dim=options.dim, feature_seed=options.feature_seed)
        loss = RegressionSampled(model=model, batch=options.batch, seed=seed)
        return Setup(what=loss, params=model.init(*start), dynamics=_descent(options), record=make_record(options))
    law = MirrorFlow(model=heads) if options.model == "mirror" else RegressionLoss(model=heads)
    flow = make_flow(options)
    return Setup(what=law, params=heads.init(*start), dynamics=flow, until=options.until, record=make_record(options))


def _chain(options: IncrementalOptions) -> tuple[LaggedChain, dict[str, Any]]:
    facts: dict[str, Any] = {}
    if options.features is None:
        features = RandomFeatures(kind=options.feature_kind, seed=options.feature_seed)
    else:
        far = options.feature_order == "farthest-first"
        features = read_features(options.features, reverse=far and not options.reverse)
        facts["features_digest"] = digest(features.describe())
    chain = LaggedChain.spans(
        vocab=options.vocab,
        spans=options.spans,
        ratio=options.importance_ratio,
        scale=options.scale,
        stride=options.stride,
        reverse=options.reverse,
        span_weights=options.span_weights or None,
        features=features,
    )
    return chain, facts


def _descent(options: IncrementalOptions) -> Descent:
    """Rates are relative to that of the values, so that t, where there is one, is its sum."""
    return make_descent(options, rule(options), lr=options.rate_values, rates=student_rates(options))

"""From the options of incremental learning to what `evolve` needs."""

from typing import Any

from stagescope.core.spec import digest
from stagescope.flow.descent import Descent
from stagescope.papers.incremental.process import LaggedChain, RandomFeatures, read_features
from stagescope.papers.incremental.regression import (
    MirrorFlow,
    RegressionHeads,
    RegressionLoss,
    RegressionSampled,
    RegressionTransformer,
)
from stagescope.papers.incremental.students import ContentHeads, PositionalHeads, ngram_loss, student_loss
from stagescope.papers.incremental.study import FLOWS, OF_TRANSFORMERS, IncrementalOptions, check_use, rule
from stagescope.papers.incremental.transformer import Transformer
from stagescope.readings.setup import make_descent, make_flow, make_record
from stagescope.readings.study import Setup


def study_setup(options: IncrementalOptions, seed: int) -> Setup:
    check_use(options)
    if options.model in FLOWS or options.model == "regression-transformer":
        return _regression(options, seed)
    facts: dict[str, Any] = {}
    if options.features is None:
        features = RandomFeatures(kind=options.feature_kind, seed=options.feature_seed)
    else:
        far = options.feature_order == "farthest-first"
        features = read_features(options.features, reverse=far and not options.reverse)
        facts["features_digest"] = digest(features.describe())
    chain = LaggedChain.spans(
        ratio=options.importance_ratio,
        span_weights=options.span_weights or None,
        features=features,
        **{name: getattr(options, name) for name in ("vocab", "spans", "scale", "stride", "reverse")},
    )
    names = ("sequences", "labels", "batch", "fresh", "watched", *(("precision",) if options.precision else ()))
    sizes = {"vocab": options.vocab, "heads": options.heads, "context": chain.reach + options.pad, "targets": options.targets}
    model: Any
    if options.model == "transformer":
        model = Transformer(**sizes, **{name: getattr(options, name) for name in OF_TRANSFORMERS})
    else:
        model = ContentHeads(**sizes, layers=options.layers) if options.model == "content" else PositionalHeads(**sizes)
    choices: dict[str, Any] = {name: getattr(options, name) for name in names}
    if options.model == "transformer":
        choices["dropout_steps"] = options.dropout_steps
    if options.ngram is None:
        loss = student_loss(model, chain, seed=seed, **choices)
    else:
        loss = ngram_loss(model, chain, options.ngram, seed=seed, **choices)
        model = loss.model
    start: tuple[Any, ...] = (_init_seed(options, seed),)
    if options.model != "transformer":
        start = (*start, options.init_scale, *((options.init,) if options.model == "content" else ()))
    return Setup(
        what=loss,
        params=model.init(*start),
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


def _descent(options: IncrementalOptions) -> Descent:
    """Rates are relative to that of the values, so that t, where there is one, is its sum."""
    scores = {"content": "W"}.get(options.model, "a")
    of_layers = ("1", "2") if options.model == "content" and options.layers == 2 else ("",)
    of_block = {"V": 1.0, scores: options.rate_attention / options.rate_values}
    rates = {name + i: rate for i in of_layers for name, rate in of_block.items()} if options.model != "transformer" else {}
    return make_descent(options, rule(options), lr=options.rate_values, rates=rates)

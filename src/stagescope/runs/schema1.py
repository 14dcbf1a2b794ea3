"""The ids of types in runs of schema 1, which version 0.1.0 wrote: bare names, also for the types of papers."""

from typing import Any

_TYPES = {
    "focus-dilution": (
        "AttentionVariant LazyChain TextCausal TextCounts TextVariant TokenAttention TokenFinite TokenPopulation TokenSampled"
    ),
    "incremental": (
        "ContentHeads ContentLoss GivenFeatures HeadsLoss LaggedChain MirrorFlow PositionalHeads "
        "RandomFeatures RegressionHeads RegressionLoss RegressionSampled RegressionTransformer TextHeads Transformer "
        "TransformerLoss"
    ),
    "scan-snap": (
        "PairwiseAttention PairwisePinv PairwisePopulation PairwiseSampled PairwiseWindows SequenceClass SequenceClasses "
        "TextTransformer TextTransformerLoss TopicWindows"
    ),
}
"""What each paper had in version 0.1.0. All other types were the core's, whose ids are bare to this day."""
_NEW = {name: f"{paper}/{name}" for paper, names in _TYPES.items() for name in names.split()}


def with_new_ids(spec: Any) -> Any:
    """A spec of schema 1 with the ids of today."""
    if isinstance(spec, list):
        return [with_new_ids(item) for item in spec]
    if not isinstance(spec, dict):
        return spec
    fresh = {name: with_new_ids(item) for name, item in spec.items()}
    return {**fresh, "type": _NEW.get(spec["type"], spec["type"])} if isinstance(spec.get("type"), str) else fresh

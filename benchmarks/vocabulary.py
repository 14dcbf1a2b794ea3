"""The merged output column: a flow with M = 10^5 outputs against one with M = 10^3 (bar: at most twice the time)."""

import json

import stagescope as ss
from benchmarks.timing import least


def seconds(vocab: int) -> float:
    process = ss.SequenceClasses.synthetic(5, 2, 10, 10, vocab=vocab)
    model = ss.PairwiseAttention.merged(process)
    loss = ss.population_loss(model, process)
    return least(lambda: ss.evolve(loss, model.init(), ss.GradientFlow(), until=500.0))


def main() -> None:
    small, large = (seconds(vocab) for vocab in (10**3, 10**5))
    print(f"flow to t=500: {small:.3f} s at M=10^3, {large:.3f} s at M=10^5")
    print(json.dumps({"ratio_1e5_over_1e3": large / small, "seconds_1e3": small, "seconds_1e5": large}))


if __name__ == "__main__":
    main()

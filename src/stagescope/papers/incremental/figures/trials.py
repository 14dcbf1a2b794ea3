"""The runs that the paper's figures of trained students show (arXiv 2602.19143)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stagescope.papers.incremental.figures import published
from stagescope.papers.incremental.figures.runs import Trial, trial


def _xavier(label: str, steps: int, every: int = 10, **changes: Any) -> Trial:
    """A minimal student with queries from Xavier's range, which replaces the scale; `--init xavier` needs its default."""
    return trial(label, "content", steps, every, init="xavier", init_scale=1e-3, **changes)


@dataclass(frozen=True)
class Trials:
    """The runs by figure. Where the step of a transition depends on the initial draw there are several draws."""

    minimal: Trial  # figure 1, and noise 1e-9 of figure 4
    one_layer: Trial  # figures 2 and 3
    xavier: tuple[Trial, ...]  # figure 4 left, five draws; the first is also figure 5 at 9000 sequences
    noises: Mapping[str, Trial]  # figure 4 left
    ratios: Mapping[str, tuple[Trial, ...]]  # figure 4 right, three draws each
    sizes: Mapping[str, tuple[Trial, ...]]  # figure 5: few sequences are overfitted, so the best loss depends on the draw
    online: Trial  # figures 6 and 7
    reversed: Trial  # figures 8 and 9: the most important span is 2 lags, farthest back; then 4, then 8 nearest
    two_layers: Trial  # figures 11 and 12
    weighted: Trial  # figures 13 and 14
    overlapping: Mapping[str, Trial]  # figures 15 to 17, by number of heads
    sgd: Trial  # figures 18 and 19

    def __iter__(self) -> Iterator[Trial]:
        """Every run once."""
        alone = (self.minimal, self.one_layer, self.online, self.reversed, self.two_layers, self.weighted, self.sgd)
        named = (*self.noises.values(), *self.overlapping.values())
        drawn = (item for draws in (*self.ratios.values(), *self.sizes.values()) for item in draws)
        return iter(dict.fromkeys((*alone, *self.xavier, *named, *drawn)))


def _trials() -> Trials:
    minimal = trial("noise 1e-9", "content", 1000, levels=True, compared=3000)
    online = trial("new sequences at every step", "content", 2000, levels=True, compared=3000, fresh=True)
    xavier = (_xavier("Xavier", 1000, levels=True, init_seed=0), *(_xavier("Xavier", 600, init_seed=i) for i in range(1, 5)))
    few = {
        str(size): tuple(
            _xavier(f"{size} sequences", steps, 5, levels=True, sequences=size, batch=size, init_seed=i) for i in range(3)
        )
        for size, steps in ((600, 200), (2000, 500))
    }
    return Trials(
        minimal=minimal,
        one_layer=trial("one layer", "transformer", 1000),
        xavier=xavier,
        noises={
            "1e-3": trial("noise 1e-3", "content", 1000, levels=True, init_scale=1e-3),
            "1e-6": trial("noise 1e-6", "content", 1000, levels=True, init_scale=1e-6),
            "1e-9": minimal,
            "0": trial("no noise", "content", 1000, levels=True, init_scale=0.0),
        },
        ratios={
            ratio: tuple(_xavier(f"ratio {ratio}", 400, importance_ratio=float(ratio), init_seed=i) for i in range(3))
            for ratio in published.ratios()
        },
        sizes={**few, "9000": xavier[:1], "online": (online,)},
        online=online,
        reversed=trial("farthest span first", "transformer", 1000, spans=(2, 4, 8), reverse=True),
        two_layers=trial("two layers", "transformer-2", 1000),
        weighted=_xavier("weights .7 .3", 1000, levels=True, compared=3000, span_weights=(0.7, 0.3)),
        overlapping={str(heads): _xavier(f"{heads} heads", 1000, stride=2, heads=heads, spans=(4, 4, 4)) for heads in (3, 4)},
        sgd=trial("heavy-ball", "transformer", 7000, 50, optimizer="heavy-ball", rate_values=0.2, importance_ratio=2.0),
    )


TRIALS = _trials()

"""Whether each checkpoint continues the ones before it: copies, tensors of other steps, other trainings, wrong order.

A checkpoint with a finding is left out of what is compared afterwards, so that one defect gives one finding.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from stagescope.watching.findings import Finding, listed_tensors, some
from stagescope.watching.lineage import (
    LEAST,
    RULES,
    detours,
    distances,
    families,
    fit,
    kinship,
    mean_distances,
    median_detours,
    misplaced,
)
from stagescope.watching.series import SMALL, Series

SHARED = 0.1
"""Share of entries in tensors that are kin up to which a checkpoint is a stranger as a whole."""


def findings(series: Series) -> tuple[list[Finding], list[str]]:
    """All findings, and notes on what cannot be judged."""
    found: list[Finding] = []
    notes: list[str] = []
    for check in (_copies, _strangers, _strange_tensors, _stuck, _returned, _out_of_order, _off_the_path, _tensors_off_the_path):
        if len(series) < 2:
            break
        if check is _strangers:
            notes += _unjudged(series)
        fresh = list(check(series))
        found += fresh
        series = series.without({name for each in fresh for name in each.facts.get("checkpoints", [each.checkpoint])})
    return found, notes


# bit for bit


def _copies(series: Series) -> Iterator[Finding]:
    """Checkpoints with the same weights. Of each group the one that fits best between its neighbours is kept."""
    same: dict[frozenset[tuple[str, bytes]], list[int]] = defaultdict(list)
    for n, each in enumerate(series.prints):
        same[frozenset((key, each[key].digest) for key in series.weights or each)].append(n)
    groups = [group for group in same.values() if len(group) > 1]
    samples = list(series.samples().values())
    distance = mean_distances(samples) if samples else np.zeros((len(series), len(series)))
    for group in groups:
        kept = min(group, key=lambda n: (round(fit(distance, n, group), 9), n))
        for n in group:
            if n != kept:
                text = f"it has the same weights as {series.names[kept]}, bit for bit"
                if series.weights and all(series.narrow(key) for key in series.weights):
                    text += "; they are kept in 16 bits, where very small moves leave no trace"
                facts = {"same_as": series.names[kept], "tensors": len(series.weights) or len(series.common)}
                yield Finding(series.names[n], "duplicate", None, text, facts)


def _stuck(series: Series) -> Iterator[Finding]:
    """Tensors that are those of the checkpoint before, though they moved before and move after.

    A tensor that rests in several places, or from the beginning, may be frozen for a while. At the end one interval of rest
    counts if the tensor moved in all others.
    """
    found: dict[int, list[str]] = defaultdict(list)
    for key in series.weights:
        pairs = _pairs(series, key)
        if len(pairs) != 1 or pairs[0][1] != pairs[0][0] + 1 or len(series) < 4:
            continue
        first, second = pairs[0]
        needed = _enough(series, key)
        inner = first > 0 and second + 1 < len(series) and needed(first - 1, first) and needed(second, second + 1)
        at_end = second + 1 == len(series) and all(needed(n, n + 1) for n in range(first))
        if inner or at_end:
            found[second].append(key)
    for n, keys in sorted(found.items()):
        text = f"{some(keys)}: still the same as in {series.names[n - 1]}, bit for bit, though it moves between all others"
        facts = {**listed_tensors(keys), "same_as": series.names[n - 1]}
        yield Finding(series.names[n], "duplicate", keys[0], text, facts)


def _pairs(series: Series, key: str) -> list[tuple[int, int]]:
    """Places that hold the same tensor, two by two; one that is the same in three places or more is frozen for a while."""
    places: dict[bytes, list[int]] = defaultdict(list)
    for n, each in enumerate(series.digests(key)):
        places[each].append(n)
    several = [group for group in places.values() if len(group) > 1]
    return [(group[0], group[1]) for group in several] if all(len(group) == 2 for group in several) else []


def _enough(series: Series, key: str) -> Callable[[int, int], bool]:
    """Whether so many entries of a tensor differ between two places that they do not come back, or come to rest, by chance.

    In 16 bits small moves leave no trace: there half of the entries of a large tensor must differ.
    """
    sample = series.sample(key)
    least = SMALL
    if series.narrow(key):
        least = sample.shape[1] // 2 if sample.shape[1] >= LEAST else sample.shape[1] + 1
    return lambda first, second: int((sample[first] != sample[second]).sum()) >= least


def _returned(series: Series) -> Iterator[Finding]:
    """Tensors that are bit for bit those of another step, with others between: of the two the one that fits worse is named."""
    found: dict[tuple[int, int], list[str]] = defaultdict(list)
    for key in series.weights:
        needed = _enough(series, key)
        for first, second in _pairs(series, key):
            if any(needed(first, n) for n in range(first + 1, second)):
                found[first, second].append(key)
    for pair, keys in sorted(found.items()):
        distance = mean_distances([series.sample(key) for key in keys])
        wrong = max(pair, key=lambda n: fit(distance, n, pair))
        other = series.names[sum(pair) - wrong]
        text = f"{some(keys)}: the same as in {other}, bit for bit, and not as in the checkpoints between"
        yield Finding(series.names[wrong], "foreign tensor", keys[0], text, {**listed_tensors(keys), "same_as": other})


# kinship


def _strangers(series: Series) -> Iterator[Finding]:
    """Checkpoints that share nothing with the most. Where some tensors are shared, the others are foreign tensors."""
    samples = list(series.samples(SMALL, 2).values())
    if not samples:
        return
    kin = kinship(samples)
    main, *others = families(kin)
    usual = np.median([kin.correlation[a, b] for a, b in pairwise(main)]) if len(main) > 1 else np.nan
    for family in others:
        if _shared(samples, family, main) > SHARED:
            continue
        names = [series.names[n] for n in family]
        most = float(max(kin.correlation[n, m] for n in family for m in main))
        who = f"it and {len(names) - 1} more, up to {names[-1]}, share" if len(names) > 1 else "it shares"
        text = f"{who} nothing with {_others(series, main)}: its weights correlate with theirs by {max(most, 0.0):.2f} at most"
        text += f", theirs with each other by {usual:.2f}" if np.isfinite(usual) else ""
        if family[0] == 0:
            text += "; the others do not descend from it, unless the training had forgotten its start by then"
        facts = {"checkpoints": names, "correlation": most, "usual": None if np.isnan(usual) else float(usual)}
        yield Finding(names[0], "other lineage", None, text, facts)


def _shared(samples: list[np.ndarray], family: list[int], main: list[int]) -> float:
    """The share of entries in tensors of which a family is kin of the main one, of those that can be judged."""
    shared = total = 0
    for sample in samples:
        kin = kinship([sample])
        between = np.ix_(family, main)
        if kin.judged[between].any():
            total += sample.shape[1]
            shared += sample.shape[1] * bool(kin.related[between].any())
    return shared / total if total else 0.0


def _others(series: Series, main: list[int]) -> str:
    return series.names[main[0]] if len(main) == 1 else f"the {len(main)} checkpoints of the main line"


def _unjudged(series: Series) -> list[str]:
    """A note on checkpoints of which kinship says nothing."""
    samples = list(series.samples(SMALL, 2).values())
    kin = kinship(samples) if samples else None
    unsure = [name for n, name in enumerate(series.names) if kin is None or not np.delete(kin.judged[n], n).any()]
    if not unsure:
        return []
    shown = f"{', '.join(unsure[:3])}{' and others' if len(unsure) > 3 else ''}"
    return [
        f"the lineage of {shown} cannot be judged: the moving tensors are constant, too small, or of another size than the others"
    ]


def _strange_tensors(series: Series) -> Iterator[Finding]:
    """Single tensors that share nothing with those of the other checkpoints."""
    found: dict[int, dict[str, float]] = defaultdict(dict)
    for key, sample in series.samples(LEAST, 2).items():
        kin = kinship([sample])
        main, *others = families(kin)
        for family in others:
            found[family[0]][key] = float(max(kin.correlation[n, m] for n in family for m in main))
    for n, keys in sorted(found.items()):
        most = max(keys.values())
        text = f"{some(list(keys))}: shares nothing with the other checkpoints, the correlation is {max(most, 0.0):.2f} at most"
        facts = {**listed_tensors(list(keys)), "correlation": most}
        yield Finding(series.names[n], "foreign tensor", next(iter(keys)), text, facts)


# the path


def _out_of_order(series: Series) -> Iterator[Finding]:
    """Checkpoints whose weights belong to another place in the order."""
    samples = list(series.samples().values())
    for each in misplaced(mean_distances(samples)) if samples else []:
        before, after = (None if n is None else series.names[n] for n in (each.before, each.after))
        where = f"between {before} and {after}" if before and after else f"before {after}" if after else f"after {before}"
        text = f"its weights belong {where}: the path through them is {each.shorter:.0%} shorter there"
        yield Finding(
            series.names[each.place], "out of order", None, text, {"before": before, "after": after, "shorter": each.shorter}
        )


def _off_the_path(series: Series) -> Iterator[Finding]:
    """Checkpoints that are far from their neighbours, which are near each other."""
    while len(series) > 2 and (samples := list(series.samples().values())):
        found = median_detours(samples)
        worst = int(np.argmax(found))
        if found[worst] < max(RULES.detour, RULES.detour_over_usual * float(np.median(found))):
            return
        before, name, after = series.names[worst : worst + 3]
        text = f"it does not lie between {before} and {after}: the way through it is {found[worst]:.1f} times as long as past it"
        yield Finding(name, "other lineage", None, text, {"detour": float(found[worst]), "before": before, "after": after})
        series = series.without({name})


def _tensors_off_the_path(series: Series) -> Iterator[Finding]:
    """Single tensors that are far from those of both neighbours, where the others are not."""
    samples = series.samples(LEAST) if len(series) > 2 else {}
    if not samples:
        return
    usual = median_detours(list(series.samples().values()))
    found: dict[int, dict[str, float]] = defaultdict(dict)
    for key, sample in samples.items():
        detour = np.nan_to_num(detours(distances(sample)), nan=1.0)
        for n in np.flatnonzero((detour >= RULES.tensor_detour) & (detour >= 2 * usual)):
            found[int(n) + 1][key] = float(detour[n])
    for n, keys in sorted(found.items()):
        before, name, after = series.names[n - 1 : n + 2]
        most = max(keys.values())
        text = f"{some(list(keys))}: the way from {before} to {after} is {most:.1f} times as long through it as past it"
        yield Finding(name, "foreign tensor", next(iter(keys)), text, {**listed_tensors(list(keys)), "detour": most})

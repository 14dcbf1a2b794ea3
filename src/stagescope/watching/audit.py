"""Audit of checkpoints: which are cut, not finite, the same, out of order, or of another training.

A checkpoint with a finding is left out of what is compared afterwards, so that one defect gives one finding. Published hashes
show which checkpoints are the same without their weights.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from stagescope.core.errors import InputError, first_names, printable, shortened
from stagescope.core.progress import progress_for
from stagescope.core.spec import Json
from stagescope.watching.folders import Checkpoint, DamagedCheckpoint, is_weights, listed, number, trainer_step
from stagescope.watching.lineage import (
    ENTRIES,
    LEAST,
    LIMITS,
    SMALL,
    Print,
    Series,
    affordable_entries,
    detours,
    distances,
    families,
    fit,
    kinship,
    mean_distances,
    median_detours,
    misplaced,
    take,
)

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


Kind = Literal["truncated", "NaN", "duplicate", "foreign tensor", "out of order", "other lineage"]


@dataclass(frozen=True)
class Finding:
    """One defect: of which checkpoint, of what kind, of which tensor (None: of the whole), in words and in numbers.

    Examples:
        >>> same = {"model.safetensors": "a" * 64}
        >>> ss.audit_hashes({"step1": same, "step2": same}).findings[0].kind
        'duplicate'
    """

    checkpoint: str
    kind: Kind
    tensor: str | None
    sentence: str
    facts: Json

    def json(self) -> Json:
        return {**vars(self), "sentence": printable(self.sentence)}


@dataclass(frozen=True)
class Audit:
    """An audit of checkpoints, or of hashes of their files: names in order, findings, and notes on what was not judged.

    Examples:
        >>> same = {"model.safetensors": "a" * 64}
        >>> found = ss.audit_hashes({"step1": same, "step2": same})
        >>> found.clean, len(found.findings)
        (False, 1)
    """

    checkpoints: tuple[str, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.findings)

    def __add__(self, other: "Audit") -> "Audit":
        """Both together, of the same checkpoints or of others."""
        new_names = tuple(name for name in other.checkpoints if name not in self.checkpoints)
        return Audit(self.checkpoints + new_names, self.findings + other.findings, self.notes + other.notes)

    @property
    def clean(self) -> bool:
        return not self.findings

    def of(self, kind: Kind) -> tuple[Finding, ...]:
        """The findings of one kind."""
        return tuple(finding for finding in self.findings if finding.kind == kind)

    def json(self) -> Json:
        return {
            "checkpoints": list(self.checkpoints),
            "findings": [finding.json() for finding in self.findings],
            "notes": [printable(note) for note in self.notes],
        }

    def summary(self) -> str:
        number = f"{len(self.findings)} finding{'s' if len(self.findings) > 1 else ''}" if self.findings else "nothing found"
        return f"{len(self.checkpoints)} checkpoints: {number}"

    def text(self) -> "Table | Text":
        """For the terminal: one finding a row, or a line that there is none."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        caption = Text(printable("\n".join([self.summary(), *(f"note: {note}" for note in self.notes)])))
        if self.clean:
            return caption
        table = Table(box=box.SIMPLE_HEAD, caption=caption, caption_justify="left", pad_edge=False)
        for head in ("checkpoint", "finding", "what"):
            table.add_column(Text(head), no_wrap=head == "finding")
        for finding in self.findings:
            table.add_row(*(Text(printable(word)) for word in (finding.checkpoint, finding.kind, finding.sentence)))
        return table


def listed_tensors(names: list[str]) -> Json:
    """Names of tensors as facts: the first 20, and how many there are."""
    return {"tensors": names[:20], "count": len(names)}


def some(names: list[str]) -> str:
    """Names of tensors in a sentence: the first one, and how many more."""
    first = repr(shortened(names[0], 80))
    return first if len(names) == 1 else f"{first} and {len(names) - 1} more"


def tensors_finding(checkpoint: str, kind: Kind, names: Iterable[str], text: str, **facts: Any) -> Finding:
    """A defect of some tensors; the sentence and the facts begin with their names."""
    names = list(names)
    return Finding(checkpoint, kind, names[0], f"{some(names)}: {text}", {**listed_tensors(names), **facts})


def continuity_findings(series: Series) -> tuple[list[Finding], list[str]]:
    """All findings, and notes on what cannot be judged."""
    findings: list[Finding] = []
    notes: list[str] = []
    for check in (
        _copies,
        _unrelated_checkpoints,
        _unrelated_tensors,
        _stuck,
        _returned,
        _out_of_order,
        _off_the_path,
        _tensors_off_the_path,
    ):
        if len(series) < 2:
            break
        if check is _unrelated_checkpoints:
            notes += _unjudged(series)
        fresh = list(check(series))
        findings += fresh
        series = series.without({name for finding in fresh for name in finding.facts.get("checkpoints", [finding.checkpoint])})
    return findings, notes


# bit for bit


def _copies(series: Series) -> Iterator[Finding]:
    """Checkpoints with the same weights. Of each group the one that fits best between its neighbours is kept."""
    places_by_weights: dict[frozenset[tuple[str, bytes]], list[int]] = defaultdict(list)
    for n, prints in enumerate(series.prints):
        places_by_weights[frozenset((key, prints[key].digest) for key in series.weights or prints)].append(n)
    groups = [group for group in places_by_weights.values() if len(group) > 1]
    samples = list(series.samples().values())
    distance = mean_distances(samples) if samples else np.zeros((len(series), len(series)))
    for group in groups:
        best = min(group, key=lambda n: (round(fit(distance, n, group), 9), n))
        for n in group:
            if n != best:
                text = f"it has the same weights as {series.names[best]}, bit for bit"
                if series.weights and all(series.narrow(key) for key in series.weights):
                    text += "; they are kept in 16 bits, where very small moves leave no trace"
                facts = {"same_as": series.names[best], "tensors": len(series.weights) or len(series.common)}
                yield Finding(series.names[n], "duplicate", None, text, facts)


def _stuck(series: Series) -> Iterator[Finding]:
    """Tensors that are those of the checkpoint before, though they moved before and move after.

    A tensor that rests in several places, or from the beginning, may be frozen for a while. At the end one interval of rest
    counts if the tensor moved in all others.
    """
    unchanged: dict[int, list[str]] = defaultdict(list)
    for key in series.weights:
        pairs = _pairs(series, key)
        if len(pairs) != 1 or pairs[0][1] != pairs[0][0] + 1 or len(series) < 4:
            continue
        first, second = pairs[0]
        differ = _enough(series, key)
        inner = first > 0 and second + 1 < len(series) and differ(first - 1, first) and differ(second, second + 1)
        at_end = second + 1 == len(series) and all(differ(n, n + 1) for n in range(first))
        if inner or at_end:
            unchanged[second].append(key)
    for n, keys in sorted(unchanged.items()):
        before, name = series.names[n - 1 : n + 1]
        text = f"still the same as in {before}, bit for bit, though it moves between all others"
        yield tensors_finding(name, "duplicate", keys, text, same_as=before)


def _pairs(series: Series, key: str) -> list[tuple[int, int]]:
    """Places that hold the same tensor, two by two; one that is the same in three places or more is frozen for a while."""
    places: dict[bytes, list[int]] = defaultdict(list)
    for n, digest in enumerate(series.digests(key)):
        places[digest].append(n)
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
    copies: dict[tuple[int, int], list[str]] = defaultdict(list)
    for key in series.weights:
        differ = _enough(series, key)
        for first, second in _pairs(series, key):
            if any(differ(first, n) for n in range(first + 1, second)):
                copies[first, second].append(key)
    for pair, keys in sorted(copies.items()):
        distance = mean_distances([series.sample(key) for key in keys])
        wrong = max(pair, key=lambda n: fit(distance, n, pair))
        original = series.names[sum(pair) - wrong]
        text = f"the same as in {original}, bit for bit, and not as in the checkpoints between"
        yield tensors_finding(series.names[wrong], "foreign tensor", keys, text, same_as=original)


# kinship


def _unrelated_checkpoints(series: Series) -> Iterator[Finding]:
    """Checkpoints that share nothing with the most. Where some tensors are shared, the others are foreign tensors."""
    samples = list(series.samples(SMALL, 2).values())
    if not samples:
        return
    kin = kinship(samples)
    main, *side_families = families(kin)
    usual = np.median([kin.correlation[a, b] for a, b in pairwise(main)]) if len(main) > 1 else np.nan
    for family in side_families:
        if _shared(samples, family, main) > LIMITS.shared:
            continue
        names = [series.names[n] for n in family]
        correlation = float(max(kin.correlation[n, m] for n in family for m in main))
        who = f"it and {len(names) - 1} more, up to {names[-1]}, share" if len(names) > 1 else "it shares"
        main_name = series.names[main[0]] if len(main) == 1 else f"the {len(main)} checkpoints of the main line"
        text = f"{who} nothing with {main_name}: its weights correlate with theirs by {max(correlation, 0.0):.2f} at most"
        text += f", theirs with each other by {usual:.2f}" if np.isfinite(usual) else ""
        if family[0] == 0:
            text += "; the others do not descend from it, unless the training had forgotten its start by then"
        facts = {"checkpoints": names, "correlation": correlation, "usual": None if np.isnan(usual) else float(usual)}
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


def _unjudged(series: Series) -> list[str]:
    """A note on checkpoints of which kinship says nothing."""
    samples = list(series.samples(SMALL, 2).values())
    kin = kinship(samples) if samples else None
    unsure = [name for n, name in enumerate(series.names) if kin is None or not np.delete(kin.judged[n], n).any()]
    if not unsure:
        return []
    reason = "the moving tensors are constant, too small, or of another size than the others"
    return [f"the lineage of {first_names(unsure)} cannot be judged: {reason}"]


def _unrelated_tensors(series: Series) -> Iterator[Finding]:
    """Single tensors that share nothing with those of the other checkpoints."""
    by_checkpoint: dict[int, dict[str, float]] = defaultdict(dict)
    for key, sample in series.samples(LEAST, 2).items():
        kin = kinship([sample])
        main, *side_families = families(kin)
        for family in side_families:
            by_checkpoint[family[0]][key] = float(max(kin.correlation[n, m] for n in family for m in main))
    for n, keys in sorted(by_checkpoint.items()):
        correlation = max(keys.values())
        text = f"shares nothing with the other checkpoints, the correlation is {max(correlation, 0.0):.2f} at most"
        yield tensors_finding(series.names[n], "foreign tensor", keys, text, correlation=correlation)


# the path


def _out_of_order(series: Series) -> Iterator[Finding]:
    """Checkpoints whose weights belong to another place in the order."""
    samples = list(series.samples().values())
    for misfit in misplaced(mean_distances(samples)) if samples else []:
        before, after = (None if n is None else series.names[n] for n in (misfit.before, misfit.after))
        place = f"between {before} and {after}" if before and after else f"before {after}" if after else f"after {before}"
        text = f"its weights belong {place}: the path through them is {misfit.shorter:.0%} shorter there"
        facts = {"before": before, "after": after, "shorter": misfit.shorter}
        yield Finding(series.names[misfit.place], "out of order", None, text, facts)


def _off_the_path(series: Series) -> Iterator[Finding]:
    """Checkpoints that are far from their neighbours, which are near each other."""
    while len(series) > 2 and (samples := list(series.samples().values())):
        detours = median_detours(samples)
        worst = int(np.argmax(detours))
        if detours[worst] < max(LIMITS.detour, LIMITS.detour_over_usual * float(np.median(detours))):
            return
        before, name, after = series.names[worst : worst + 3]
        text = (
            f"it does not lie between {before} and {after}: the way through it is {detours[worst]:.1f} times as long as past it"
        )
        yield Finding(name, "other lineage", None, text, {"detour": float(detours[worst]), "before": before, "after": after})
        series = series.without({name})


def _tensors_off_the_path(series: Series) -> Iterator[Finding]:
    """Single tensors that are far from those of both neighbours, where the others are not."""
    samples = series.samples(LEAST) if len(series) > 2 else {}
    if not samples:
        return
    usual = median_detours(list(series.samples().values()))
    by_checkpoint: dict[int, dict[str, float]] = defaultdict(dict)
    for key, sample in samples.items():
        detour = np.nan_to_num(detours(distances(sample)), nan=1.0)
        for n in np.flatnonzero((detour >= LIMITS.tensor_detour) & (detour >= 2 * usual)):
            by_checkpoint[int(n) + 1][key] = float(detour[n])
    for n, keys in sorted(by_checkpoint.items()):
        before, name, after = series.names[n - 1 : n + 2]
        largest = max(keys.values())
        text = f"the way from {before} to {after} is {largest:.1f} times as long through it as past it"
        yield tensors_finding(name, "foreign tensor", keys, text, detour=largest)


def audit(folder: str | Path, *, progress: bool | None = None) -> Audit:
    """Look for defects in the checkpoints of a folder. Weights are read once, one tensor at a time; nothing stored is run.

    Args:
        folder: holds one folder or file for each checkpoint, with its step in its name.
        progress: True shows a bar, False none, None one on a terminal.

    Raises:
        InputError: the folder holds fewer than two checkpoints, or one that cannot be opened safely.

    Returns:
        The names of the checkpoints in order, and what was found.

    Examples:
        >>> from safetensors.numpy import save_file
        >>> for step in (0, 100, 200):
        ...     Path(f"training/step{step}").mkdir(parents=True)
        ...     save_file({"head": np.full((4, 4), step, np.float32)}, f"training/step{step}/model.safetensors")
        >>> ss.audit("training").checkpoints
        ('step0', 'step100', 'step200')
    """
    checkpoints = listed(folder)
    if len(checkpoints) < 2:
        raise InputError(f"{folder} holds one checkpoint, {checkpoints[0].name!r}; an audit compares at least two")
    series, cut = _read(checkpoints, progress)
    findings = [*_numbers(checkpoints), *cut]
    if len(series) > 1:
        odd, notes = _tensor_sets(series)
        findings += odd
        series = series.without({finding.checkpoint for finding in odd})
        findings += _not_finite(series)
        continuing, unjudged = continuity_findings(
            series.without({finding.checkpoint for finding in findings if finding.kind == "NaN"})
        )
        findings += continuing
        notes += unjudged
    else:
        notes = ["fewer than two checkpoints could be read, so none was compared"]
    places = {checkpoint.name: place for place, checkpoint in enumerate(checkpoints)}
    findings.sort(key=lambda finding: (places[finding.checkpoint], get_args(Kind).index(finding.kind)))
    return Audit(tuple(checkpoint.name for checkpoint in checkpoints), tuple(findings), tuple(notes))


def _read(checkpoints: Sequence[Checkpoint], progress: bool | None) -> tuple[Series, list[Finding]]:
    """Fingerprints of the checkpoints that are whole, and a finding for each that is not, or whose trainer's state is not."""
    names: list[str] = []
    prints: list[dict[str, Print]] = []
    cut: list[Finding] = []
    entries = ENTRIES
    with progress_for(progress) as bar:
        for checkpoint in bar.each(checkpoints, "reading checkpoints", "checkpoint"):
            try:
                trainer_step(checkpoint.path)
            except DamagedCheckpoint as error:
                cut.append(_truncated(checkpoint, str(error)))
            try:
                fingerprints = take(checkpoint, entries)
            except DamagedCheckpoint as error:
                cut.append(_truncated(checkpoint, str(error)))
                continue
            if not fingerprints:
                cut.append(_truncated(checkpoint, "it holds no tensors"))
                continue
            if not prints and (fewer := affordable_entries(len(checkpoints), len(fingerprints))) < entries:
                entries = fewer
                fingerprints = take(checkpoint, entries)
            names.append(checkpoint.name)
            prints.append(fingerprints)
    return Series(tuple(names), tuple(prints)), cut


def _truncated(checkpoint: Checkpoint, text: str) -> Finding:
    """A checkpoint that is not whole, in a sentence with paths from its folder on."""
    text = text.replace(f"{checkpoint.path.resolve().parent}/", "").replace(f"{checkpoint.path.parent}/", "")
    return Finding(checkpoint.name, "truncated", None, text, {"path": checkpoint.name})


def _numbers(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Checkpoints whose names have another order than the steps that their trainers state."""
    for first, second in pairwise(checkpoints):
        before, after = number(first.name), number(second.name)
        if first.step == second.step:
            text = f"it states the step {second.step}, and so does {first.name}"
        elif before is not None and after is not None and before >= after:
            text = f"its name comes before {first.name}, but its trainer's state has step {second.step}, after {first.step}"
        else:
            continue
        yield Finding(
            second.name, "out of order", None, text, {"step": second.step, "other": first.name, "other_step": first.step}
        )


def _tensor_sets(series: Series) -> tuple[list[Finding], list[str]]:
    """Checkpoints with other names or shapes of tensors than the most have. One lasting change is a note, no finding."""
    forms = [frozenset((name, fingerprint.form) for name, fingerprint in prints.items()) for prints in series.prints]
    runs = [(form, len(list(group))) for form, group in groupby(forms)]
    if len(runs) == 1:
        return [], []
    if len(runs) == 2 and min(length for _, length in runs) > 1:
        since = series.names[runs[0][1]]
        return [], [f"from {since} on the names or shapes of tensors are others; only those that stay are compared"]
    usual = Counter(forms).most_common(1)[0][0]
    return [finding for n, form in enumerate(forms) if form != usual for finding in _other_set(series.names[n], form, usual)], []


def _other_set(name: str, form: frozenset, usual: frozenset) -> Iterator[Finding]:
    """What a checkpoint lacks, and what it has in place of it or more."""
    mine, theirs = dict(form), dict(usual)
    absent = sorted(set(theirs) - set(mine))
    if absent:
        facts = {"missing": listed_tensors(absent)}
        yield Finding(name, "truncated", absent[0], f"it lacks {some(absent)}, which other checkpoints have", facts)
    foreign = sorted(key for key, signature in mine.items() if theirs.get(key) != signature)
    if foreign:
        shape, usual_form = mine[foreign[0]][0], theirs.get(foreign[0], (None,))[0]
        trait = (
            "a name"
            if usual_form is None
            else f"the shape {shape} in place of {usual_form}"
            if shape != usual_form
            else "a type of numbers"
        )
        yield tensors_finding(name, "foreign tensor", foreign, f"{trait} that no other checkpoint has")


def _not_finite(series: Series) -> Iterator[Finding]:
    """Tensors with NaN or infinite entries; infinities of a tensor that never moves, such as a mask, are no finding."""
    never = set(series.common) - set(series.moving)
    for name, prints in zip(series.names, series.prints, strict=True):
        bad = sorted(key for key, fingerprint in prints.items() if fingerprint.nan or (fingerprint.infinite and key not in never))
        if bad:
            nan, infinite = (sum(getattr(prints[key], kind) for key in bad) for kind in ("nan", "infinite"))
            total = sum(int(np.prod(prints[key].shape)) for key in bad)
            text = f"{nan:,} NaN and {infinite:,} infinite of {total:,} entries"
            yield tensors_finding(name, "NaN", bad, text, nan=nan, infinite=infinite, entries=total)


_SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)
_LIMIT = 2**28
"""Bytes of a file of hashes that are read."""
Hashes = dict[str, dict[str, str]]


def audit_hashes(hashes: Mapping[str, Mapping[str, str]] | str | Path) -> Audit:
    """Look for checkpoints of different steps whose files are the same.

    Args:
        hashes: {checkpoint: {file: sha256}}, or a JSON file that holds this. Files that hold no weights, such as a tokenizer, are
            left out. A checkpoint without a number in its name, such as `main`, may be the same as one with a number.

    Raises:
        InputError: it is no such table, or has fewer than two checkpoints with weights.

    Returns:
        The names of the checkpoints in order, and what was found.

    Examples:
        >>> first, second = {"model.safetensors": "a" * 64}, {"model.safetensors": "b" * 64}
        >>> print(ss.audit_hashes({"step1": first, "step2": second}).summary())
        2 checkpoints: nothing found
    """
    table = _checked(_loaded(Path(hashes)) if isinstance(hashes, str | Path) else hashes)
    if len(table) < 2:
        raise InputError(
            f"the hashes are of {len(table)} checkpoint{'s' * (len(table) != 1)} with weights; an audit compares at least two"
        )
    names = sorted(table, key=lambda name: (number(name) is None, number(name) or 0, name))
    findings = list(_equal_checkpoints(names, table))
    copies = {finding.checkpoint for finding in findings}
    findings += _same_files([name for name in names if name not in copies], table)
    findings.sort(key=lambda finding: names.index(finding.checkpoint))
    return Audit(tuple(names), tuple(findings))


def _equal_checkpoints(names: list[str], table: Hashes) -> Iterator[Finding]:
    """Checkpoints of which all files of weights are the same."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in names:
        groups[tuple(sorted(table[name].values()))].append(name)
    for group in groups.values():
        for name, first in _other_steps(group):
            files = len(table[name])
            text = f"{'its file is the same' if files == 1 else f'all {files} files are the same'} as in {first}"
            yield Finding(name, "duplicate", None, text, {"same_as": first, "files": files})


def _same_files(names: list[str], table: Hashes) -> Iterator[Finding]:
    """Single files that are the same in some checkpoints and not in all: those that are in all hold what never moves."""
    places: dict[str, list[str]] = defaultdict(list)
    for name in names:
        for value in set(table[name].values()):
            places[value].append(name)
    shared: dict[tuple[str, str], list[str]] = defaultdict(list)
    for value, group in places.items():
        for pair in _other_steps(group) if len(group) < len(names) else []:
            shared[pair] += [file for file, digest in table[pair[0]].items() if digest == value]
    for (name, first), files in shared.items():
        text = f"the same file as in {first}, while other files differ"
        yield tensors_finding(name, "duplicate", sorted(files), text, same_as=first)


def _other_steps(group: list[str]) -> list[tuple[str, str]]:
    """Of names with numbers, those with others than the first has, each with the first.

    All numbers of a name count: `stage2-ingredient1-step1000` is another checkpoint than that of ingredient 2.
    """
    numbers = {name: [int(digits) for digits in re.findall(r"\d{1,18}", name)] for name in group}
    numbered = [name for name in group if numbers[name]]
    return [(name, numbered[0]) for name in numbered if numbers[name] != numbers[numbered[0]]]


def _loaded(path: Path) -> Any:
    if not path.is_file():
        raise InputError(
            f"{path} is {'no file' if path.exists() else 'missing'}; give a JSON file {{checkpoint: {{file: sha256}}}}"
        )
    if path.stat().st_size > _LIMIT:
        raise InputError(f"{path} has {path.stat().st_size:,} bytes, more than a list of hashes; it is not read")
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON that can be read; expected {{checkpoint: {{file: sha256}}}}") from error


def _checked(table: Any) -> Hashes:
    """The table with lower-case hashes, of files with weights alone."""
    if not isinstance(table, Mapping):
        raise InputError(f"the hashes are a {type(table).__name__}; expected {{checkpoint: {{file: sha256}}}}")
    hashes: Hashes = {}
    for name, files in table.items():
        if not isinstance(name, str) or not isinstance(files, Mapping):
            raise InputError(f"the hashes of {name!r:.80} are a {type(files).__name__}; expected {{file: sha256}}")
        for file, value in files.items():
            match = _SHA256.fullmatch(value) if isinstance(value, str) else None
            if match is None or not isinstance(file, str):
                raise InputError(
                    f"the hash of {file!r:.80} in {name!r:.80} is {value!r:.80}; expected a sha256 of 64 hexadecimal digits"
                )
            if is_weights(file):
                hashes.setdefault(name, {})[file] = match[1].lower()
    return hashes

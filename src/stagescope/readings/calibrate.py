"""Draw inputs and nulls of a study by seed, judge its claims on them, and count.

Inputs and nulls of the studies of this package are not installed with it: they are in `validation/nulls` of a checkout.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import stagescope
from stagescope.claims.calibration import Calibration
from stagescope.claims.claim import Claim
from stagescope.claims.inputs import Inputs
from stagescope.claims.own import Claims, claims_digest, forget, own_claims, refuse_taken
from stagescope.core.errors import InputError, sentence
from stagescope.core.progress import progress_for
from stagescope.core.threads import results
from stagescope.readings.reading import check, reading
from stagescope.readings.registry import is_ours, kind_of, paper_of
from stagescope.readings.registry import study as study_named
from stagescope.readings.study import Study
from stagescope.runs.files import store_errors

Task = tuple[str, str, str, int]
"""Study, role, name of the inputs, seed."""


def calibrate(
    study: str,
    draws: int = 30,
    first: int = 0,
    *,
    nulls: int | None = None,
    claims: Claims = (),
    keep: str | Path | None = None,
    workers: int = 1,
    progress: bool | None = None,
) -> Calibration:
    """How often each claim of a study is confirmed, violated or left open on its inputs and on its nulls.

    Args:
        study: its name; runs of its `inputs` are drawn. Those of the studies of this package need a checkout of it.
        draws: of every family of inputs, and of every null. One draw of a null serves all claims that name it.
        nulls: draws of every null, where they are to be others than of inputs.
        claims: your own, judged instead of the study's: a `Claim`, several, or "module:NAME" of some.
        first: the first seed. Rules must be frozen before the seeds that judge them are drawn.
        keep: a file to which every draw is added as a line; a second call goes on where the first one stopped. Draws that were
            judged by other rules, or by own claims whose file was changed since, are made again.
        workers: processes. Above 1, call it under `if __name__ == "__main__":`.

    Returns:
        A line for each claim, and draws that failed.

    Examples:
        >>> def ends(evidence):
        ...     return ss.Comparison(None, None, None, evidence.run.done, "the run reached its end")
        >>> every = ss.Claim(tag="own:ends", statement="The run ends", regime=lambda _: ss.Regime(True, "all runs"), compare=ends)
        >>> line = ss.calibrate("linear-icl", draws=1, claims=[every]).lines[0]
        >>> line.tag
        'own:ends'
    """
    count = {"input": draws, "null": draws if nulls is None else nulls}
    for option, value, least in (("draws", draws, 1), ("nulls", count["null"], 1), ("first", first, 0), ("workers", workers, 1)):
        if value < least:
            raise InputError(f"{option} is {value}; give at least {least}")
    if isinstance(claims, str):
        forget(claims)  # this process may have imported them before they were changed
    else:
        claims = own_claims(claims)
    if workers > 1 and claims and not isinstance(claims, str):
        raise InputError('several workers need claims by name: claims="module:NAME"')
    of_study, extra_claims = study_named(study), own_claims(claims)
    paper_claims = (*of_study.claims(), *with_nulls(of_study))
    refuse_taken((claim for claim in extra_claims if claim not in paper_claims), of_study.claims())
    judged = extra_claims or with_nulls(of_study)
    digest = claims_digest(claims) if extra_claims and keep is not None else None
    draws_of = [(inputs.name, role, tags) for inputs, role, tags in families(of_study, judged)]
    tasks = [(study, role, name, seed) for name, role, _ in draws_of for seed in range(first, first + count[role])]
    if not tasks:
        remedy = (
            "work in a checkout of Stagescope, where they are in validation/nulls"
            if _is_built_in(of_study)
            else "give it `inputs`"
        )
        raise InputError(f"{study} has no inputs to draw and its claims have no nulls; {remedy}")
    rules = {claim.tag: claim.rules for claim in judged}
    rows = _earlier_draws(keep, {(role, name): {tag: rules[tag] for tag in tags} for name, role, tags in draws_of}, digest)
    remaining = [task for task in tasks if task not in rows]
    with progress_for(progress) as bar:
        bar.begin(f"draws of {study}", len(remaining), "draws")
        for done, (_, row) in enumerate(results(partial(_draw, claims), remaining, workers), start=1):
            rows[row["study"], row["role"], row["family"], row["seed"]] = row
            if keep is not None:
                with store_errors(Path(keep)), Path(keep).open("a") as file:
                    file.write(json.dumps(row if digest is None else {**row, "claims": digest}) + "\n")
            bar.update(done)
    return Calibration.of(study, judged, [rows[task] for task in tasks])


def families(study: Study, claims: Sequence[Claim]) -> Iterator[tuple[Inputs, str, tuple[str, ...]]]:
    """(inputs, "input" or "null", tags of the claims that are tried on them); a null is drawn once for all its claims."""
    for inputs in (*study.inputs(), *_beside_source(study, "INPUTS", ())):
        if tags := tuple(claim.tag for claim in claims if claim.tag.startswith(inputs.about)):
            yield inputs, "input", tags
    nulls: dict[str, tuple[Inputs, list[str]]] = {}
    for claim in claims:
        for null in claim.nulls:
            nulls.setdefault(null.name, (null, []))[1].append(claim.tag)
    for null, tags in nulls.values():
        yield null, "null", tuple(tags)


def with_nulls(study: Study) -> tuple[Claim, ...]:
    """The claims of a study, each with its nulls."""
    nulls = _beside_source(study, "NULLS", {})
    return tuple(replace(claim, null=(*claim.nulls, *nulls.get(claim.tag, ()))) for claim in study.claims())


def _is_built_in(study: Study) -> bool:
    return any(field.startswith(f"{stagescope.__name__}.") for kind in study.kinds for field in kind.fields)


def _beside_source(study: Study, name: str, default: Any) -> Any:
    """What `validation/nulls/PAPER.py`, or `PAPER_text.py`, of this checkout has under `name` for a study."""
    root = Path(stagescope.__file__).resolve().parents[2]
    if not _is_built_in(study) or not is_ours(paper := paper_of(study.name).name):
        return default
    for module in (paper.replace("-", "_"), f"{paper.replace('-', '_')}_text"):
        if (root / "validation" / "nulls" / f"{module}.py").is_file():
            if str(root) not in sys.path:
                sys.path.append(str(root))
            inputs = getattr(import_module(f"validation.nulls.{module}"), name)
            if study.name in inputs:
                return inputs[study.name]
    return default


def _earlier_draws(
    keep: str | Path | None, rules: Mapping[tuple[str, str], Mapping[str, int]], digest: str | None
) -> dict[Task, dict[str, Any]]:
    """Draws of earlier calls of the same claims by the rules in force; one that failed, or whose line was cut, is made again.

    `rules` has the version of each claim that is tried on a family, by role and name of the family; `digest` is that of the
    files of own claims, None for those of the study.
    """
    if keep is None or not Path(keep).exists():
        return {}
    path = Path(keep)
    with store_errors(path):
        text = path.read_text(errors="replace")
    rows = [_row(line) for line in text.splitlines()]
    complete_rows = rows if text.endswith("\n") else rows[:-1]
    if (complete_rows and not any(complete_rows)) or (not complete_rows and text):
        raise InputError(f"{keep} holds something else than draws; choose another --keep, or a file that does not exist")
    if text and not text.endswith("\n"):  # the call was stopped while it wrote
        with store_errors(path), path.open("a") as file:
            file.write("\n")
    draws = {}
    for row in filter(None, rows):
        verdicts = row.get("verdicts")
        judged = None if verdicts is None else {tag: verdict["rules"] for tag, verdict in verdicts.items()}
        same_rules = row.get("claims") == digest and judged == rules.get((row["role"], row["family"]))
        if judged is not None and same_rules:
            draws[row["study"], row["role"], row["family"], row["seed"]] = row
    return draws


def _row(line: str) -> dict[str, Any] | None:
    """The draw of a line; None where it is none."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and {"study", "role", "family", "seed"} <= row.keys() else None


def _draw(claims: Claims, task: Task) -> dict[str, Any]:
    """What `check` says of one draw, saved and opened again as a user would; what fails is a row with its reason.

    Without claims of the user's own only the claims that are tried are judged: a verdict does not depend on the others.
    """
    name, role, family, seed = task
    judged = own_claims(claims) or with_nulls(study_named(name))
    inputs, _, tags = next(
        family_inputs
        for family_inputs in families(study_named(name), judged)
        if (family_inputs[1], family_inputs[0].name) == (role, family)
    )
    row: dict[str, Any] = {"study": name, "role": role, "family": family, "seed": seed}
    began = time.monotonic()
    try:
        with TemporaryDirectory() as folder:
            run = inputs.make(seed).save(Path(folder) / "run")
            kind = kind_of(run.type)
            paper_tags = set() if kind is None else {claim.tag for claim in kind.claims()}
            extra_claims = [claim for claim in judged if claim.tag in tags and claim.tag not in paper_tags]
            ledger = check(Path(folder) / "run", extra_claims) if extra_claims else reading(Path(folder) / "run").judged(tags)
        verdicts = {verdict.tag: verdict for verdict in ledger if verdict.tag in tags}
        if broken := [verdict.reason for verdict in verdicts.values() if verdict.error is not None]:
            row["failed"] = broken[0]
        else:
            names = ("verdict", "in_regime", "rules", "reason")
            row["verdicts"] = {tag: {name: getattr(verdict, name) for name in names} for tag, verdict in verdicts.items()}
    except (Exception, SystemExit) as error:  # inputs of the user's own may raise anything
        row["failed"] = sentence(error)
    return {**row, "seconds": time.monotonic() - began}

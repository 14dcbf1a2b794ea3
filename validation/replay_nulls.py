"""Are rates and times confirmed on runs whose way is false? Of every paper with a flow, falsified folders judged by `check`.

    python -m validation.replay_nulls [STUDY ...] [--draws 30] [--first 400000] [--workers 1] [--budget SECONDS] [--process]
    python -m validation.replay_nulls --table

Each draw makes a true flow, saves it, writes the six falsified folders of `validation.nulls.falsified`, and has all seven judged:
by `ss.check` of the folder, which is what the command calls, or with --process by `stagescope check --json` in a process of its
own. Rows are added to `validation/draws/`, so that a call goes on where the last one stopped: by --budget, in seconds of CPU, or
interrupted. Each row names the commit of `src`: what other sources judged is drawn again. Counts go to `replay_nulls.json` and
into docs/how-sure.md.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import stagescope as ss
from stagescope.core.errors import sentence
from stagescope.core.params import key
from stagescope.core.threads import results
from stagescope.runs.run import Run
from validation import how_sure
from validation.nulls import focus_dilution, incremental, linear_icl, markov_icl, scan_snap
from validation.nulls.falsified import FALSIFIED, falsified

HERE = Path(__file__).parent
DRAWS = HERE / "draws"
FRAMES = (40, 150, 600)
"""Recorded frames: a coarse run must be read as honestly as a dense one."""
OTHER = 3.0
"""Factor of a rate of the run whose frames are stolen, where no seed moves the start: beyond every tolerance of a time."""
TIMED = {
    "FD:origin": "growth per time at (0,0)",
    "FD:attention-rate": "growth per time at (1,0)",
    "FD:linear-condensed": "size after a time at (1,0)",
    "FD:embedding-rate": "growth per time at (1,1)",
    "FD:redistribution": "growth per time of D",
    "FD:eps-law": "delays between runs",
    "FD:delta-law": "growth per time at (1,1), between chains",
    "FD:predicted-times": "times of events",
    "ISA:first": "t_1",
    "ISA:clock": "times of drops",
    "ISA:parting": "growth per time on plateau 1",
    "ISA:escape": "growth per time on plateau 1",
    "ISA:escape-law": "t_2 at several noises",
    "ISA:wkb": "t_2 at several noises",
    "ISA:t2": "t_2",
    "LIN:merged-drop": "time of the drop",
    "LIN:merged-rate": "growth per time at the origin",
    "LIN:logistic": "a curve in time",
    "LIN:first-drop": "time of the first drop",
    "LIN:scalar": "a curve in time",
    "LIN:cascade": "times of later drops",
    "LIN:scale-law": "times at several scales",
    "LIN:rank": "growth per time of a direction",
    "LIN:rank-plateaus": "lengths of plateaus",
    "MIC:plateau-law": "t_2",
    "MIC:two-step": "t_2",
    "MIC:start-noise": "t_2 at several noises",
    "MIC:doubly-stochastic": "t_2 under two priors",
    "SnS:lemma-6": "a curve in time",
    "SnS:lemma-4": "dz/dt",
    "SnS:theorem-3": "chi at each time",
    "SnS:sandwich": "chi at each time",
    "SnS:theorem-4": "B at each time",
    "SnS:transition": "time of the transition",
    "SnS:snap": "motion in the last nine tenths of the time",
}
"""Claims about rates and times, and what each reads off the clock. The others compare levels, directions, orders and shapes: a
run that passes through the same points in another time may confirm them, truly."""

Options = dict[str, Any]


def _focus(random: np.random.Generator, seed: int) -> tuple[str, Options, Options]:
    drawn = focus_dilution.setting(seed, focus_dilution.lazy_chain)
    assert isinstance(drawn.chain, ss.LazyChain)
    chain = {"pi": drawn.chain.pi, "persistence": drawn.chain.persistence}
    sizes = {"scale": drawn.scale, "init_scale": drawn.eps, "width": drawn.width, "key_width": drawn.key_width}
    return "lazy chains", {**chain, **sizes, "until": drawn.until}, {}


def _incremental(random: np.random.Generator, seed: int) -> tuple[str, Options, Options]:
    family = ("flows", incremental.flow) if random.random() < 0.7 else ("wide flows", incremental.wide_flow)
    config = dict(family[1](seed).config or {})
    names = ss.study("incremental").options.model_fields
    return family[0], {name: config[name] for name in names if config.get(name) is not None}, {}


def _linear(random: np.random.Generator, seed: int) -> tuple[str, Options, Options]:
    family = str(random.choice(["separate", "ranked", "merged"]))
    drawn = getattr(linear_icl, f"_{family}_options")(random)
    sizes = {"heads": drawn["heads"], "init_scale": drawn["scale"], "context": drawn["task"].contexts[0]}
    shape = {"merged": True} if family == "merged" else {"rank": drawn["rank"]}
    return family, {"eigenvalues": drawn["task"].eigenvalues, **sizes, **shape}, {}


def _markov(random: np.random.Generator, seed: int) -> tuple[str, Options, Options]:
    family = str(random.choice(["slow lags", "noisy starts", "doubly stochastic"]))
    options = markov_icl._slow(random)
    if family == "noisy starts":
        options |= {"init_scale": markov_icl._between(random, 1e-4, 1.0)}
    if family == "doubly stochastic":
        options = {"doubly_stochastic": True, "lags": options["lags"], "ratio": markov_icl._between(random, 0.5, 10)}
    return family, options, {"ratio": OTHER * options["ratio"]}


def _scan(random: np.random.Generator, seed: int) -> tuple[str, Options, Options]:
    family = str(random.choice(["gradient", "pinv", "theorems"]))
    options = scan_snap._theorem_options(random) if family == "theorems" else scan_snap._flow(random, family)
    return family, options, {"rate_y": OTHER * options["rate_y"]}


SETTINGS: dict[str, Callable[[np.random.Generator, int], tuple[str, Options, Options]]] = {
    "focus-dilution": _focus,
    "incremental": _incremental,
    "linear-icl": _linear,
    "markov-icl": _markov,
    "scan-snap": _scan,
}
"""By study: the name of a family, options of a flow, and what is changed of them in the run whose frames are stolen. That has the
next seed, too; only where the start is not drawn, changes of a rate are needed."""


def _pair(study: str, seed: int) -> tuple[str, Run, Run]:
    random = key(seed, "replay nulls", study)
    family, options, changes = SETTINGS[study](random, seed)
    options["frames"] = int(random.choice(FRAMES))
    run = ss.run_study(study, **options, seed=seed, progress=False)
    changes = {**changes, "until": float(run.t[-1])}  # of a study that ends by the start
    return family, run, ss.run_study(study, **{**options, **changes}, seed=seed + 1, progress=False)


def _judged(folder: Path, process: bool) -> dict[str, str]:
    """The verdict of every claim of the paper, as the command gives it."""
    if not process:
        return {row.tag: row.verdict for row in ss.check(folder)}
    command = [sys.executable, "-m", "stagescope", "check", str(folder), "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {row["tag"]: row["verdict"] for row in json.loads(answer)["claims"]}


def _draw(process: bool, commit: str, task: tuple[str, int]) -> dict[str, Any]:
    """One true run and its falsified folders, judged; what fails is a row with its reason."""
    study, seed = task
    began, row = time.process_time(), {"study": study, "seed": seed, "commit": commit, "process": process}
    try:
        with TemporaryDirectory() as name:
            root = Path(name)
            row["family"], run, other = _pair(study, seed)
            row["frames"] = run.save(root / "true").frames
            other.save(root / "other")
            for null in FALSIFIED:
                falsified(null, root / "true", root / "other", root / null, seed)
                if problems := ss.verify(root / null):
                    raise ss.StagescopeError(problems[0])
            row["verdicts"] = {null: _judged(root / null, process) for null in ("true", *FALSIFIED)}
    except Exception as error:
        row["failed"] = sentence(error)
    return {**row, "cpu": round(time.process_time() - began, 2)}


def rows_of(file: Path, commit: str | None = None) -> list[dict[str, Any]]:
    """Draws that were made, those of one commit or of the last one in the file; one that was cut or failed is left out."""
    rows = []
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue  # the call was stopped while it wrote
    commit = commit or (rows[-1]["commit"] if rows else None)
    return [row for row in rows if row["commit"] == commit and "verdicts" in row]


def counted(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """By study: seeds, verdicts on true runs, and how many of each null confirm each claim that applies to the true run."""
    studies: dict[str, Any] = {}
    for row in rows:
        body = studies.setdefault(
            row["study"], {"seeds": [], "claims": {}, "any": dict.fromkeys(FALSIFIED, 0), "true": Counter()}
        )
        true = {tag: verdict for tag, verdict in row["verdicts"]["true"].items() if verdict != "not applicable"}
        body["seeds"].append(row["seed"])
        body["true"].update(true.values())
        timed = [tag for tag in true if tag in TIMED]
        for tag in timed:
            line = body["claims"].setdefault(tag, {"true": Counter(), **dict.fromkeys(FALSIFIED, 0)})
            line["true"][true[tag]] += 1
        for null in FALSIFIED:
            confirmed = [tag for tag in timed if row["verdicts"][null][tag] == "confirmed"]
            body["any"][null] += bool(confirmed)
            for tag in confirmed:
                body["claims"][tag][null] += 1
    return studies


def write_counts(file: Path) -> dict[str, Any]:
    rows = rows_of(file)
    by = "command" if rows and all(row.get("process") for row in rows) else "check"
    found = {"commit": rows[-1]["commit"] if rows else "", "by": by, "studies": counted(rows)}
    how_sure.FALSIFIED_COUNTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    how_sure.main()
    return found["studies"]


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="validation.replay_nulls", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"default: {', '.join(SETTINGS)}")
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--first", type=int, default=400_000, help="first seed; draw only after the rules are frozen")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds of CPU of this call")
    parser.add_argument("--process", action="store_true", help="judge by `stagescope check --json`, each in a process of its own")
    parser.add_argument("--table", action="store_true", help="draw nothing: count the rows that are there")
    return parser.parse_args(words)


def main(words: Sequence[str] = ()) -> bool:
    """Draw what is missing, count all, and say whether every bar is met."""
    given = _parsed(words)
    DRAWS.mkdir(exist_ok=True)
    file, commit, spent = DRAWS / f"replay-{given.first}.jsonl", how_sure.commit(), 0.0
    there = {(row["study"], row["seed"]) for row in rows_of(file, commit)}
    tasks = [(study, given.first + i) for i in range(given.draws) for study in given.studies or SETTINGS]
    tasks = [] if given.table else [task for task in tasks if task not in there]
    for _, row in results(partial(_draw, given.process, commit), tasks, given.workers):
        with file.open("a") as out:
            out.write(json.dumps(row) + "\n")
        print(row["study"], row["seed"], row.get("failed", f"{row['cpu']} s"), flush=True)
        spent += row["cpu"]
        if spent > given.budget:
            print(f"{spent:.0f} s of CPU are spent; call again to go on")
            break
    studies = write_counts(file)
    print(how_sure.falsified_tables(studies))
    missed = [f"{study}: {miss}" for study, body in studies.items() for miss in how_sure.misses(body)]
    print("\n".join(missed))
    return bool(studies) and not missed


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)

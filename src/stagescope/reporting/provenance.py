"""Where a run comes from: its settings, what made it, how to make it again, and what to cite."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import stagescope
from stagescope.options import option_words
from stagescope.papers.registry import paper_of, studies
from stagescope.runs.run import Run
from stagescope.watching.source import KINDS, is_watched

LISTED = 24
"""Items of a setting that are listed: a vocabulary would fill the page."""


def provenance(run: Run) -> dict[str, Any]:
    """Titled facts: rows (name, value) or a text. The order is that of the page."""
    sections: dict[str, Any] = {"run": _run(run), "model and probe": _model(run), "settings": _settings(run)}
    sections["made with"] = _versions(run)
    sections["on the command line"], sections["in Python"] = reproduce(run) or (None, None)
    sections["cite"] = citation(run)
    return {title: facts for title, facts in sections.items() if facts}


def _run(run: Run) -> list[tuple[str, str]]:
    last = f"{run.clock} = {run.time[-1]:.6g}" if run.frames else "none"
    clock = "flow time: the sum of step sizes" if run.clock == "t" else "steps: this optimiser has no flow time"
    field, dynamics = run.spec["field"], run.spec["dynamics"]
    rows = [
        ("status", run.status + (f": {run.reason}" if run.reason else "")),
        ("frames", f"{run.frames:,}, the last at {last}"),
        ("clock", f"{run.clock} ({clock})" if field is not None else f"{run.clock}, as it was recorded"),
        ("seed", "not known" if run.seed is None else str(run.seed)),
        ("digest of the settings", run.config_digest),
        *([("source", _source(run.spec["source"]))] if field is None else [("model", str(field.get("name", field["type"])))]),
        *([] if dynamics is None else [("dynamics", _brief(dynamics))]),
        ("parameters", ", ".join(f"{name} {'x'.join(map(str, run.params[name].shape[1:])) or '1'}" for name in run.params)),
    ]
    rows = [(name, value) for name, value in rows if value]
    if run.study is not None:
        rows.insert(0, ("study", f"{run.study}: {studies()[run.study].title}" if run.study in studies() else run.study))
    return rows


def _model(run: Run) -> list[tuple[str, str]]:
    """What is known of a model that was watched, a row each."""
    if not is_watched(run):
        return []
    rows = [(name, value) for name, value in run.spec["source"].items() if name not in ("kind", "probe")]
    probe = run.spec["source"].get("probe")
    rows += [(f"probe: {name}", value) for name, value in probe.items()] if isinstance(probe, Mapping) else []
    return [(str(name), _plain(_tokens(_local(value)))) for name, value in rows if value not in (None, [])]


def _tokens(value: Any) -> Any:
    """Texts in a list are quoted: tokens may be blanks."""
    return (
        [json.dumps(item, ensure_ascii=False) if isinstance(item, str) else item for item in value]
        if isinstance(value, list)
        else value
    )


def _source(source: Mapping[str, Any]) -> str:
    """Where a run without a law of motion comes from."""
    if source["kind"] in KINDS:
        return {"watched": "training watched by ss.watch", "checkpoints": "checkpoints of a folder"}[source["kind"]]
    rest = {name: _local(value) for name, value in source.items() if name != "kind"}
    return f"{source['kind']} recorded elsewhere" + (f" {json.dumps(rest)}" if rest else "")


def _brief(described: Any) -> str:
    kept = {name: value for name, value in described.items() if name != "type" and value not in ({}, None)}
    return f"{described['type']} {json.dumps(kept)}" if kept else str(described["type"])


def _settings(run: Run) -> list[tuple[str, str]]:
    config = run.config or {}
    return [
        (name, _plain(_local(value))) for name, value in config.items() if value is not None and name not in ("study", "seed")
    ]


def _local(value: Any) -> Any:
    """A file by its name alone: the page is made to be sent, and whoever makes the run again has the file elsewhere."""
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        more = f" ... ({len(value):,} in all)" if len(value) > LISTED else ""
        return " ".join(map(_plain, value[:LISTED])) + more or "none"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _versions(run: Run) -> list[tuple[str, str]]:
    environment = run.provenance.get("environment") or {}
    rows = [(name, str(environment[name])) for name in ("python", "system", "machine", "cores") if name in environment]
    rows += [(name, str(version)) for name, version in environment.get("packages", {}).items() if version != "absent"]
    return [*rows, ("page written by stagescope", stagescope.__version__)]


def reproduce(run: Run) -> tuple[str, str] | None:
    """The command and the Python lines that make the run again; None for runs that are not a study's."""
    if run.study is None or run.study not in studies() or run.config is None:
        return None
    changed = _changed(run)
    literals = {name: tuple(value) if isinstance(value, list) else value for name, value in changed.items()}
    arguments = [repr(run.study), *(f"{name}={value!r}" for name, value in literals.items()), f"seed={run.seed}"]
    lines = f"import stagescope as ss\n\nrun = ss.run_study({', '.join(arguments)})\nprint(ss.check(run))"
    return run_command(run.study, changed, run.seed or 0, (run.path and run.path.name) or "run"), lines


def run_command(study: str, changed: Mapping[str, Any], seed: int, out: str) -> str:
    """The command that makes a run of a study, from the options that differ from its defaults."""
    words = [word for name, value in changed.items() for word in option_words(name, _local(value))]
    return shlex.join(["stagescope", "run", study, *words, "--seed", str(seed), "--out", out])


def _changed(run: Run) -> dict[str, Any]:
    """Options that differ from the study's defaults, as the config has them."""
    fields, config = studies()[run.study or ""].options.model_fields, run.config or {}
    found = {}
    for name, info in fields.items():
        value = config.get(name)
        default = list(info.default) if isinstance(info.default, tuple) else info.default
        if name in config and value is not None and value != default:
            found[name] = _local(value)
    return found


def citation(run: Run) -> str | None:
    """The paper of the run's study, as text and BibTeX."""
    if run.study is None or run.study not in studies():
        return None
    paper = paper_of(run.study).reference
    return f"{paper.text}\n\n{paper.bibtex}"

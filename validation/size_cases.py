"""Cases of absurd sizes that are no options of a study in Python: the command line, public classes, files, stored runs."""

import contextlib
import io
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Case = tuple[str, Callable[[], Any]]
HUGE = 10**9


def command(*words: str) -> None:
    """Run `stagescope` with these words; what it says on standard error is raised as an error of ours.

    That is one sentence; `verify` has findings instead, each of which begins with the folder.
    """
    from stagescope.cli.main import run
    from stagescope.core.errors import InputError

    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = run(list(words))
    if code:
        text = said.getvalue().strip()
        findings = words[0] == "verify" and all(line.startswith(words[1]) for line in text.splitlines())
        if not findings and ("\n" in text or not text.startswith("stagescope: ")):
            raise RuntimeError(f"exit code {code}, not one sentence: {text[-300:]}")
        raise InputError(text)


def of_commands(scratch: Path) -> Iterator[Case]:
    for line in (
        "scan-snap --num-common 10000000",
        "scan-snap --frames 1000000000",
        "scan-snap --length 1000000000 --optimizer gd",
        "focus-dilution --width 1000000000",
        "focus-dilution --pi0 0.5 --tokens 1000000000",
        "incremental --vocab 1000000000",
        "text-focus --window 1000000000",
        "text-focus --batch 1000000000",
        "text-focus --form causal --watched 1000000000",
        "text-incremental --heads 1000000000",
        "text-snap --model transformer --width 1000000000",
    ):
        words = ("run", *line.split(), "--out", str(scratch / "run"), "--quiet")
        yield f"stagescope run {line}", lambda words=words: command(*words)
    yield "stagescope corpus topics --vocab 1e9", lambda: command("corpus", "topics", "--vocab", str(HUGE))
    yield "stagescope corpus topics --window 1e9", lambda: command("corpus", "topics", "--window", str(HUGE))


def of_classes() -> Iterator[Case]:
    import stagescope as ss

    zeros, chain = np.broadcast_to(0.0, (HUGE, HUGE)), ss.LaggedChain.spans(5, (2, 1))
    sizes: dict[str, Any] = {"vocab": 5, "heads": 3, "context": 3, "targets": 4}
    small = {"num_last": 2, "num_next_per_last": 1, "num_common": 10, "num_unique": 10}
    classes = ss.SequenceClasses.synthetic(**small)
    wide = ss.PairwiseAttention.every_output(classes)
    lazy, model = ss.LazyChain(pi=(0.5, 0.5), persistence=0.5), ss.TokenAttention(vocab=2, width=2, scale=1.0)
    made: dict[str, Callable[[], Any]] = {
        "LazyChain of 1e6 tokens": lambda: ss.LazyChain(pi=(1e-6,) * 10**6, persistence=0.5),
        "MarkovChain(rows of 1e9)": lambda: ss.MarkovChain(rows=(range(HUGE),) * 2),  # pyright: ignore[reportArgumentType]
        "LazyChain.sample": lambda: lazy.sample(np.random.default_rng(0), HUGE, HUGE),
        "LazyChain.sample_counts": lambda: lazy.sample_counts(np.random.default_rng(0), HUGE, HUGE),
        "LaggedChain(vocab)": lambda: ss.LaggedChain(vocab=HUGE, groups=((1,),), importances=(1.0,)),
        "LaggedChain.sample": lambda: chain.sample(np.random.default_rng(0), HUGE, HUGE),
        "TokenAttention(width)": lambda: ss.TokenAttention(vocab=4, width=HUGE, scale=1.0),
        "TokenAttention(key_width)": lambda: ss.TokenAttention(vocab=4, width=4, key_width=HUGE, scale=1.0),
        "TokenAttention(vocab)": lambda: ss.TokenAttention(vocab=HUGE, width=4, scale=1.0),
        "TokenFinite(length)": lambda: ss.TokenFinite(model=model, process=lazy, length=HUGE),
        "TokenSampled(sequences)": lambda: ss.TokenSampled(model=model, process=lazy, sequences=HUGE, length=2),
        "TokenSampled(length)": lambda: ss.TokenSampled(model=model, process=lazy, sequences=2, length=HUGE),
        "PairwiseAttention.full": lambda: ss.PairwiseAttention.full(HUGE),
        "PairwiseSampled(length)": lambda: ss.PairwiseSampled(model=wide, process=classes, length=HUGE, batch=1),
        "PairwiseSampled(batch)": lambda: ss.PairwiseSampled(model=wide, process=classes, length=2, batch=HUGE),
        "PositionalHeads(heads)": lambda: ss.PositionalHeads(**{**sizes, "heads": HUGE}),
        "ContentHeads(context)": lambda: ss.ContentHeads(**{**sizes, "context": HUGE}),
        "Transformer(width)": lambda: ss.Transformer(**sizes, width=3 * HUGE),
        "RegressionHeads(positions)": lambda: ss.RegressionHeads(positions=HUGE, gains=(1.0,), heads=1),
        "RandomFeatures.stack": lambda: ss.RandomFeatures().stack(2, HUGE),
        "held_out(sequences)": lambda: ss.held_out(ss.PositionalHeads(**sizes), chain, sequences=HUGE),
        "read_corpus(vocab)": lambda: ss.read_corpus("topics", vocab=HUGE),
        "read_corpus(vocab, bpe)": lambda: ss.read_corpus("topics", tokens="bpe", vocab=HUGE),
        "TextCorpus.windows": lambda: ss.read_corpus("topics").windows(HUGE),
        "from_arrays(view)": lambda: ss.from_arrays(step=np.arange(3), loss=zeros),
        "from_arrays(range)": lambda: ss.from_arrays(step=range(HUGE), loss=[1.0]),
    }
    for name in small:
        made[f"SequenceClasses.synthetic({name})"] = lambda name=name: ss.SequenceClasses.synthetic(**{**small, name: HUGE})
    yield from made.items()


def of_files(scratch: Path) -> Iterator[Case]:
    """Files that unpack to far more than they hold, claim to, or have no end."""
    import stagescope as ss

    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2, HUGE, HUGE)})
    claims, packed = scratch / "claims.npy", scratch / "packed.npz"
    claims.write_bytes(header.getvalue() + bytes(1000))
    shape = (2, 2**13, 2**13)  # 1 GiB of zeros, 1 MB as a file
    start = io.BytesIO()
    np.lib.format.write_array_header_1_0(start, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w", force_zip64=True) as member:
        member.write(start.getvalue())
        for _ in range(2**10):
            member.write(bytes(2**20))
    yield "features that claim 2 x 1e9 x 1e9", lambda: ss.read_features(claims)
    yield f"features of {packed.stat().st_size:,} bytes that unpack to 1 GiB", lambda: ss.read_features(packed)
    large = scratch / "large.csv"
    with large.open("wb") as file:
        file.truncate(10**11)  # takes no room on the disk
    for study, option in (("scan-snap", "classes"), ("focus-dilution", "transition"), ("incremental", "features")):
        for path in (large, Path("/dev/zero")):
            given: dict[str, Any] = {option: path}
            yield f"{study} --{option} {path.name}", lambda study=study, given=given: ss.run_study(study, **given)
    yield "text-focus --corpus of 100 GB", lambda: ss.run_study("text-focus", corpus=str(large))


def of_runs(scratch: Path) -> Iterator[Case]:
    """Stored runs that claim arrays of absurd shape, with digests that fit."""
    good = scratch / "good"
    command("run", "focus-dilution", "--until", "1", "--frames", "20", "--out", str(good), "--quiet")
    changes: dict[str, Callable[[Path, dict[str, Any]], None]] = {
        "recorded shape 1e9 x 1e9": lambda folder, _: claim(folder, "W0", [20, HUGE, HUGE]),
        "recorded shape of words": lambda folder, _: claim(folder, "t", ["x", "y"]),
        "a negative recorded shape": lambda folder, _: claim(folder, "W0", [20, -1, -1]),
        "blocks 1e9 x 1e9": lambda _, body: body["spec"]["blocks"].update(W0=[HUGE, HUGE]),
        "width 1e9": lambda _, body: body["spec"]["field"]["model"].update(width=HUGE),
        "1e12 committed frames": lambda _, body: body.update(committed=10**12),
        "1e12 frames a file": lambda _, body: body.update(chunk=10**12),
        "no frame a file": lambda _, body: body.update(chunk=0),
    }
    for number, (name, change) in enumerate(changes.items()):
        folder = scratch / f"hostile-{number}"
        shutil.copytree(good, folder)
        body = json.loads((folder / "manifest.json").read_text())
        change(folder, body)
        seal(folder, body)
        for word in ("verify", "info", "stages", "report"):
            out = ("--out", str(scratch / f"{number}.html"), "--skip", "ledger", "ladder") if word == "report" else ()
            yield f"stagescope {word}, {name}", lambda words=(word, str(folder), *out): command(*words)
    first = scratch / "hostile-0"
    yield "stagescope figures", lambda: command("figures", str(first), "--out", str(scratch / "figures"), "--quiet")
    yield "stagescope export", lambda: command("export", str(first), "--to", "npz", "--out", str(scratch / "a.npz"))


def claim(folder: Path, name: str, shape: list[Any]) -> None:
    """Give a recorded array another shape in its description."""
    path = folder / "data.zarr" / name / "zarr.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "shape": shape}))


def seal(folder: Path, body: dict[str, Any]) -> None:
    """Write a manifest with digests that fit, as somebody would who means harm."""
    from stagescope.runs import files

    body.pop("digest")
    body["files"] = {name: files.sha256(folder / name) for name in body["files"]}
    digest = files.digest(json.dumps(body, indent=1).encode())
    (folder / "manifest.json").write_text(json.dumps({**body, "digest": digest}, indent=1) + "\n")

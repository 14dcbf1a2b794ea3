"""Download a known corpus through the library `datasets`, which is the extra [hub]."""

import os
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile

from stagescope.core.errors import InputError
from stagescope.corpora.files import SEPARATOR

PARTS = {"train": "train.txt", "validation": "valid.txt", "test": "test.txt"}
"""File of each split of the hub."""


def available() -> bool:
    """Whether the extra is installed."""
    return find_spec("datasets") is not None


def download(hub: tuple[str, str | None], folder: Path) -> None:
    """Write the splits of a data set of texts as files into `folder`; a file appears whole or not at all."""
    from datasets import load_dataset  # pyright: ignore[reportMissingImports]

    # a line as in the published files: the hub leaves an empty one without its blank and its end
    lines = "wikitext" in hub[0].lower()
    try:
        dataset = load_dataset(*hub)
        folder.mkdir(parents=True, exist_ok=True)
        for split, file in PARTS.items():
            if split in dataset:
                texts = (row["text"] for row in dataset[split])
                _write(folder / file, (text or " \n" if lines else f"{text.strip()}\n{SEPARATOR}\n" for text in texts))
    except Exception as error:  # the library raises whatever its many dependencies do
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        name = hub[0] if hub[1] is None else f"{hub[0]} ({hub[1]})"
        raise InputError(f"{name} could not be downloaded: {reason}; be online, or put its files into {folder}") from None


def _write(path: Path, texts: Iterable[str]) -> None:
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False, newline="") as file:
        try:
            file.writelines(texts)
        except BaseException:
            os.unlink(file.name)
            raise
    os.replace(file.name, path)

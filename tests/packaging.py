"""Build the distributions of this project, and what may be in them."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def built(out: Path) -> tuple[Path, Path]:
    """Wheel and source distribution, built into a folder by the backend of pyproject.toml; nothing is fetched."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(out)], cwd=ROOT, check=True, capture_output=True)
    (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, source


def names(distribution: Path) -> list[str]:
    """The files in a wheel or a source distribution."""
    if distribution.suffix == ".whl":
        with zipfile.ZipFile(distribution) as file:
            return file.namelist()
    with tarfile.open(distribution) as file:
        return file.getnames()

"""Compiled kernels in their private cache: loaded when intact, compiled when not, never fatal."""

import ast
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from numba import types
from numba.extending import intrinsic

from stagescope.core import caches
from stagescope.flow import kernels
from stagescope.flow.kernels import cfunc, njit

SOURCE = """
from stagescope.flow.kernels import njit

@njit(cache=True)
def double(x):
    return 2 * x
"""


@pytest.fixture
def double(tmp_path, monkeypatch):
    """Imports the kernel anew, as another process would, from its file or from a copy."""
    monkeypatch.setenv(caches.VARIABLE, "")  # not delenv: what is set in a test would stay where there was nothing
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "doubling.py"
    path.write_text(SOURCE)

    def fresh(path=path):
        spec = importlib.util.spec_from_file_location("doubling", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.double

    return fresh


def hits(kernel) -> int:
    return sum(kernel.stats.cache_hits.values())


def files(tmp_path):
    found = sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file())
    assert [path.suffix for path in found] == [".nbc", ".nbi"]
    return found


def test_a_kernel_is_compiled_once_and_kept_in_private(double, tmp_path):
    first = double()
    assert (first(2.0), hits(first)) == (4.0, 0)
    again = double()
    assert (again(3.0), hits(again)) == (6.0, 1)
    assert not list(tmp_path.glob("__pycache__/*.nb*"))
    for path in files(tmp_path):
        assert path.is_relative_to(tmp_path / "cache" / "stagescope" / "numba")
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_another_copy_of_the_source_finds_it(double, tmp_path):
    """A fresh clone, or an environment made anew."""
    double()(2.0)
    (tmp_path / "clone").mkdir()
    path = shutil.copyfile(tmp_path / "doubling.py", tmp_path / "clone" / "doubling.py")
    os.utime(path, (0, 0))
    kernel = double(path)
    assert (kernel(3.0), hits(kernel)) == (6.0, 1)


@pytest.mark.long
@pytest.mark.parametrize("suffix", [".nbc", ".nbi"])
def test_damaged_files_are_made_again(double, tmp_path, capsys, suffix):
    """A flipped object would abort the process in LLVM, a zeroed index would raise from pickle."""
    double()(2.0)
    (path,) = (each for each in files(tmp_path) if each.suffix == suffix)
    whole = path.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :]
    for damaged in (bytes(len(whole)), flipped):
        path.write_bytes(damaged)
        kernel = double()
        assert (kernel(2.0), hits(kernel)) == (4.0, 0)
        assert f"{path} is damaged" in capsys.readouterr().err
        again = double()
        assert (again(2.0), hits(again)) == (4.0, 1)


def test_a_changed_source_is_compiled(double, tmp_path):
    double()(2.0)
    (tmp_path / "doubling.py").write_text(SOURCE.replace("2 * x", "30 * x"))  # of another length, so that Python sees it too
    assert double()(2.0) == 60.0


def test_code_of_another_source_is_not_served(double, tmp_path, monkeypatch):
    """The new index was written, the new machine code was not: the disk was full, or another process still has the old source."""
    double()(2.0)
    (tmp_path / "doubling.py").write_text(SOURCE.replace("2 * x", "30 * x"))
    with monkeypatch.context() as full:
        full.setattr(kernels._Files, "_save_data", lambda *_: None)
        assert double()(2.0) == 60.0
    kernel = double()
    assert (kernel(2.0), hits(kernel)) == (60.0, 0)


def test_code_for_another_signature_is_not_served(double, tmp_path, monkeypatch):
    """Two processes that compile at once take the same name for two signatures."""
    double()(2.0)
    monkeypatch.setattr(kernels._Files, "_save_data", lambda *_: None)
    with monkeypatch.context() as first:
        first.setattr(kernels._Files, "_load_index", lambda _: {})
        assert double()(2) == 4
    kernel = double()
    assert (kernel(3), hits(kernel)) == (6, 0)


@pytest.mark.long
def test_a_kernel_of_another_file_that_changed_is_compiled(double, tmp_path, monkeypatch):
    """Numba looks at the file of the caller alone. Numbers that a kernel names are compiled in too."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "doubling.py").write_text(SOURCE.replace("2 * x", "twice(x) + PART").replace("\n@", "from other import *\n\n@"))
    for factor, part in ((2, 0.5), (30, 0.5), (30, 0.25)):
        (tmp_path / "other.py").write_text(
            SOURCE.replace("2 * x", f"{factor} * x").replace("double", "twice") + f"PART = {part}\n"
        )
        monkeypatch.delitem(sys.modules, "other", raising=False)
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        assert double()(2.0) == factor * 2.0 + part
        kernel = double()
        assert (kernel(2.0), hits(kernel)) == (factor * 2.0 + part, 1)


def test_an_entry_that_cannot_be_unpickled_is_compiled(double, tmp_path, capsys):
    double()(2.0)
    caches.write_entry(files(tmp_path)[0], b"not a pickle")
    assert double()(2.0) == 4.0
    assert "cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize("reason", ["no folder", "another Numba"])
def test_without_a_cache_kernels_are_compiled(double, tmp_path, monkeypatch, reason):
    if reason == "no folder":
        monkeypatch.setattr(kernels, "cache_folder", lambda kind: None)
    else:
        monkeypatch.setattr(kernels, "_KNOWN", False)
    assert double()(2.0) == 4.0
    assert not (tmp_path / "cache").exists() or not list((tmp_path / "cache").rglob("*.nb*"))


def test_numba_reads_through_the_checked_methods():
    assert kernels._KNOWN


def test_a_callback_is_kept_too(tmp_path, monkeypatch):
    monkeypatch.setenv(caches.VARIABLE, "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def negative(x):
        return -x

    signature = types.float64(types.float64)
    assert cfunc(signature)(negative).ctypes(2.0) == -2.0
    files(tmp_path)
    assert cfunc(signature)(negative)._cache_hits == 1


def test_the_code_of_an_intrinsic_counts():
    """It may be in another file than the kernel that names it."""

    def made(number):
        space = {"types": types}
        exec(f"def give(typing, x):\n    return types.int64(x), lambda *_: {number}\ndef kernel(x):\n    return tool(x)", space)
        space["tool"] = intrinsic(space["give"])
        return list(kernels._made_from(space["kernel"], {}, set()))

    assert made(1) == made(1)
    assert made(1) != made(2)


def test_the_code_of_a_kernel_that_is_called_through_its_module_counts():
    def made(number):
        module = ModuleType("other")
        exec(f"def tool(x):\n    return x + {number}", vars(module))
        vars(module)["tool"] = njit(cache=False)(vars(module)["tool"])
        space = {"other": module}
        exec("def kernel(x):\n    return other.tool(x)", space)
        return list(kernels._made_from(space["kernel"], {}, set()))

    assert made(1) == made(1)
    assert made(1) != made(2)


def test_without_cache_nothing_is_kept():
    assert njit(cache=False)(lambda x: x)._cache.cache_path is None


@pytest.mark.long
def test_kept_code_is_loaded_without_what_compiles_it(tmp_path):
    """A kernel that calls BLAS is loaded as Numba does it, which looks at SciPy first."""
    (tmp_path / "products.py").write_text(f"{SOURCE}\n@njit(cache=True)\ndef product(a, b):\n    return a @ b\n")
    code = """
import sys, numpy, products
assert products.double(2.0) == 4.0
ready = "numba.np.arraymath" in sys.modules
assert products.product(numpy.eye(2), numpy.ones((2, 2))).tolist() == [[1.0, 1.0], [1.0, 1.0]]
print(ready, "numba.np.arraymath" in sys.modules)
print(*(sum(kernel.stats.cache_hits.values()) for kernel in (products.double, products.product)))
"""
    env = {
        **os.environ,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}",
    }
    env.pop(caches.VARIABLE, None)
    printed = [
        subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert printed == [["True", "True", "0", "0"], ["False", "True", "1", "1"]]


def compiled_functions():
    """Every kernel of the package: its file, and its source as a tree."""
    for path in Path(kernels.__file__).parent.rglob("*kernel.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef) and any("njit" in ast.unparse(name) for name in function.decorator_list):
                yield path, function


@pytest.mark.long
def test_no_kernel_takes_a_fixed_power():
    """Numba compiles x ** 2 in one of two ways, by what the process compiled before, and the last bits of a run with it."""
    found = []
    for path, function in compiled_functions():
        powers = (node for node in ast.walk(function) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow))
        found += [f"{path.name}:{node.lineno}" for node in powers if isinstance(node.right, ast.Constant)]
    assert not found, "write a product"


@pytest.mark.long
def test_no_kernel_with_fastmath_takes_the_exponential_of_lanes():
    """It rounds by adding a large number and taking it off again, which "reassoc" of the kernel around it leaves out."""
    users = [(path, f) for path, f in compiled_functions() if re.search(r"\bexponential\(", ast.unparse(f))]
    assert users
    for path, function in users:
        how = " ".join(ast.unparse(name) for name in function.decorator_list)
        assert "fastmath" not in how, f"{path.name}:{function.lineno}"
        assert "**" not in how, f"{path.name}:{function.lineno}"
        assert "inline" not in how, f"{path.name}:{function.lineno}: it would be inside another kernel"

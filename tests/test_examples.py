"""Every public name has an example in its docstring, and each example prints what it shows."""

import contextlib
import doctest
import inspect
import os
import tempfile

import pytest

import stagescope as ss
from tests.documents import ROOT, agree, parse

FIRST = [block.text for block in parse((ROOT / "docs" / "api.md").read_text()) if block.kind == "python"]
"""The lines that all examples follow."""


class Checker(doctest.OutputChecker):
    """Compares as documents are compared: a number may differ by one unit of its last digit."""

    def check_output(self, want, got, optionflags):
        return agree(want, got)


def examples(name):
    return doctest.DocTestParser().get_examples(inspect.getdoc(getattr(ss, name)) or "", name)


def test_every_public_name_has_an_example_that_is_true():
    assert [name for name in ss.__all__ if not examples(name)] == []
    said = []
    runner = doctest.DocTestRunner(Checker(), verbose=False)
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch), pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
        space = {"__name__": "__main__"}
        for block in FIRST:
            exec(block, space)
        for name in ss.__all__:
            runner.run(doctest.DocTest(examples(name), dict(space), name, None, None, None), out=said.append)
    assert not runner.failures, "".join(said)


def test_a_wrong_example_is_caught():
    checker = Checker()
    assert checker.check_output("1.50", "1.51", 0)
    assert not checker.check_output("1.50", "1.62", 0)
    assert not checker.check_output("'finished'", "'stopped'", 0)


def test_arguments_that_are_described_exist():
    """`Args:` of a docstring names parameters, and all of those that have no default."""
    for name in ss.__all__:
        text = inspect.getdoc(getattr(ss, name)) or ""
        if "\nArgs:\n" not in text:
            continue
        section = text.split("\nArgs:\n")[1].split("\n\n")[0]
        described = {word.strip() for line in section.splitlines() if line[4:5].strip() for word in line.split(":")[0].split(",")}
        parameters = inspect.signature(getattr(ss, name)).parameters
        extra = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        assert extra or described <= set(parameters), name
        needed = {key for key, each in parameters.items() if each.default is each.empty and each.kind is not each.VAR_KEYWORD}
        assert needed <= described, (name, needed - described)

"""Ids of types: no two types share one, and nobody's class disturbs another's."""

from typing import Any

import pytest

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.core.ids import type_id
from stagescope.core.spec import Described, build, missing_type
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.readings.rebuild import field_of


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    """Types that a test defines are forgotten; modules of ours that it imports first keep theirs."""
    before = Described.registry
    monkeypatch.setattr(Described, "registry", dict(before))
    yield
    ours = {name: kind for name, kind in Described.registry.items() if kind.__module__.split(".")[0] == "stagescope"}
    before |= {name: kind for name, kind in ours.items() if name not in before}


def define(module: str, name: str = "TokenPopulation", field: str = "size", qualname: str | None = None) -> type[Described]:
    """A class as a module, a script or a notebook would define it."""
    body: dict[str, Any] = {"__module__": module, "__qualname__": qualname or name, "__annotations__": {field: int}}
    return type(Described)(name, (Described,), body)


@pytest.mark.parametrize(
    ("module", "identity"),
    [
        ("stagescope.flow.gradient_flow", "Toy"),
        ("stagescope.readings.paper", "Toy"),
        ("stagescope.papers.scan_snap.loss", "scan-snap/Toy"),
        ("stagescope.papers.scan_snap.text.loss", "scan-snap/Toy"),
        ("my_paper", "my-paper/Toy"),
        ("my_paper.loss.exact", "my-paper/Toy"),
        ("__main__", "__main__/Toy"),
    ],
)
def test_the_id_of_a_type(module, identity):
    assert type_id(module, "Toy") == identity


@pytest.mark.parametrize("module", ["__main__", "my_paper.loss", "tests.test_spec"])
def test_a_class_of_the_same_name_elsewhere_disturbs_nothing(module):
    mine = define(module)
    spec = mine(size=3).describe()
    assert spec["type"] != "focus-dilution/TokenPopulation"
    assert type(build(spec)) is mine
    theirs = ss.TokenPopulation(
        model=ss.TokenAttention(vocab=3, width=4, scale=1.0), process=ss.LazyChain(pi=(0.5, 0.3, 0.2), persistence=0.6)
    )
    law = field_of({"field": theirs.describe()}).objective
    assert type(law) is TokenPopulation


def test_a_notebook_cell_that_is_run_again_replaces_its_class():
    define("__main__")
    second = define("__main__", field="width")
    assert type(build({"type": "__main__/TokenPopulation", "width": 3})) is second


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("my_paper.loss", "Toy"), ("my_paper.other", "Toy")),
        (("my_paper", "Toy"), ("my_paper", "make.<locals>.Toy")),
        (("my-paper", "Toy"), ("my_paper", "Toy")),
    ],
)
def test_two_types_with_one_id_are_refused_by_both_names(first, second):
    kept = define(first[0], "Toy", qualname=first[1])
    with pytest.raises(InputError) as caught:
        define(second[0], "Toy", qualname=second[1])
    for module, qualname in (first, second):
        assert f"{module}.{qualname}" in str(caught.value)
    assert Described.registry["my-paper/Toy"] is kept


def test_a_package_called_like_one_of_our_papers_cannot_take_its_types():
    with pytest.raises(InputError, match=r"papers.focus_dilution.loss.TokenPopulation and focus_dilution.TokenPopulation"):
        define("focus_dilution")
    assert Described.registry["focus-dilution/TokenPopulation"] is TokenPopulation


def test_a_type_that_is_not_there_is_asked_for_by_its_package():
    with pytest.raises(InputError, match="type Toy of the package 'my_paper', which is not installed"):
        build({"type": "my-paper/Toy"})
    with pytest.raises(InputError, match="Toy of a script or notebook; define Toy first"):
        build({"type": "__main__/Toy"})
    with pytest.raises(InputError, match=r"unknown type in a spec 'GradientFlaw'; did you mean 'GradientFlow'"):
        build({"type": "GradientFlaw"})
    define("my_paper", "Toy")
    assert missing_type("my-paper/Toy") is None


def test_a_type_that_is_no_text_is_refused():
    with pytest.raises(InputError, match="unknown type in a spec"):
        build({"type": ["GradientFlow"]})


def test_a_class_of_another_notebook_is_not_taken_for_this_one():
    """Both are `__main__/Toy`; the fields tell them apart."""
    spec = define("__main__", "Toy", "size")(size=3).describe()
    define("__main__", "Toy", "width")
    with pytest.raises(InputError, match="'size'"):
        build(spec)

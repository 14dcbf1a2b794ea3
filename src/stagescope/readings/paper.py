"""A paper is one object: its reference, its statements, its studies, and how runs of its models are read.

Everything else the laboratory knows of a paper is derived from this object. Nothing heavy is imported here: functions of a paper
import what they need when they are called.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stagescope.claims.reference import Reference, Tag
from stagescope.core.ids import named_object

if TYPE_CHECKING:
    from stagescope.readings.study import Study


FORMS = ("population", "finite", "sampled")
"""What the loss of a model may average over."""


@dataclass(frozen=True)
class Cost:
    """What takes a minute or more on runs of a kind: a notebook leaves out slow claims, a page leaves out a slow ladder."""

    slow_claims: bool = False
    slow_ladder: bool = False


@dataclass(frozen=True)
class Kind:
    """How runs of some types of field are read.

    `fields` are types of objectives or fields, each as "package.module:Type". `read` makes the `Reading` of a run, `claims`
    gives the paper's claims on such runs, `views` lists what the page shows of a reading. `path(objective, start, until, seen)`
    is the saddle path from a start where the model has a structured one; it may end at the first event after the time `seen`;
    `flow()` are the `FlowEvents` by which a flow before its run is read, `descent(objective, start, descent)` predicts steps.
    `explain(reading)` says in words what is seen: model, process, captions of stages, symbols (`views.explained.Explained`).
    `rung(family, label, value)` gives the critical points of a rung of the model's ladder for objectives that depend on a number,
    and a start among them at a value.

    Examples:
        >>> ss.study("linear-icl").kinds[0].fields
        ('stagescope.papers.linear_icl.loss:LinearPopulation', 'stagescope.papers.linear_icl.loss:LinearSampled')
    """

    fields: tuple[str, ...]
    read: Callable[[Any], Any]
    claims: Callable[[], tuple[Any, ...]] = tuple
    views: Callable[[Any], list[Any]] = lambda reading: named_object("stagescope.views.any_run:any_views")(reading)
    explain: Callable[[Any], Any] = lambda reading: named_object("stagescope.views.view:any_explained")(reading)
    cost: Cost = field(default_factory=Cost)
    path: Callable[[Any, Any, float, float], Any] | None = None
    flow: Callable[[], Any] | None = None
    descent: Callable[[Any, Any, Any], Any] | None = None
    rung: Callable[[Callable[[float], Any], tuple[int, ...], float], Any] | None = None


@dataclass(frozen=True)
class Paper:
    """Everything the laboratory needs to know of a paper.

    `forms` names the losses of its model by what they average over: "population", "finite" or "sampled"; each
    is written as "package.module:Type". `about_text` says what the paper predicts for a corpus before any training. `watched`
    gives its claims on transformers that were trained elsewhere and watched (`ss.watch`); their tags are among `tags`.

    Examples:
        >>> cited = ss.Reference("me2026", "A title", "A. Author", 2026, "a journal")
        >>> ss.Paper("mine", cited, tags={"mine:law": ss.Tag("section 2", "y grows as t")}, studies=()).name
        'mine'
    """

    name: str
    reference: Reference
    tags: Mapping[str, Tag]
    studies: "tuple[Study, ...]"
    forms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    about_text: Callable[..., Any] | None = None
    watched: Callable[[], tuple[Any, ...]] = tuple

"""What an audit found: findings, the table of them, and the same as data."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from stagescope.errors import printable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

Kind = Literal["truncated", "NaN", "duplicate", "foreign tensor", "out of order", "other lineage"]
SHOWN = 20
"""Names of tensors that the facts of a finding hold at most; their number is there too."""


@dataclass(frozen=True)
class Finding:
    """One defect: of which checkpoint, of what kind, of which tensor (None: of the whole), in words and in numbers.

    Examples:
        >>> same = {"model.safetensors": "a" * 64}
        >>> ss.audit_hashes({"step1": same, "step2": same}).findings[0].kind
        'duplicate'
    """

    checkpoint: str
    kind: Kind
    tensor: str | None
    sentence: str
    facts: dict[str, Any]

    def json(self) -> dict[str, Any]:
        return {
            "checkpoint": self.checkpoint,
            "kind": self.kind,
            "tensor": self.tensor,
            "sentence": printable(self.sentence),
            "facts": self.facts,
        }


@dataclass(frozen=True)
class Audit:
    """An audit of checkpoints, or of hashes of their files: names in order, findings, and notes on what was not judged.

    Examples:
        >>> same = {"model.safetensors": "a" * 64}
        >>> found = ss.audit_hashes({"step1": same, "step2": same})
        >>> found.clean, len(found.findings)
        (False, 1)
    """

    checkpoints: tuple[str, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.findings)

    def __add__(self, other: "Audit") -> "Audit":
        """Both together, of the same checkpoints or of others."""
        more = tuple(name for name in other.checkpoints if name not in self.checkpoints)
        return Audit(self.checkpoints + more, self.findings + other.findings, self.notes + other.notes)

    @property
    def clean(self) -> bool:
        return not self.findings

    def of(self, kind: Kind) -> tuple[Finding, ...]:
        """The findings of one kind."""
        return tuple(each for each in self.findings if each.kind == kind)

    def json(self) -> dict[str, Any]:
        return {
            "checkpoints": list(self.checkpoints),
            "findings": [each.json() for each in self.findings],
            "notes": [printable(each) for each in self.notes],
        }

    def summary(self) -> str:
        number = f"{len(self.findings)} finding{'s' if len(self.findings) > 1 else ''}" if self.findings else "nothing found"
        return f"{len(self.checkpoints)} checkpoints: {number}"

    def text(self) -> "Table | Text":
        """For the terminal: one finding a row, or a line that there is none."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        caption = Text(printable("\n".join([self.summary(), *(f"note: {each}" for each in self.notes)])))
        if self.clean:
            return caption
        table = Table(box=box.SIMPLE_HEAD, caption=caption, caption_justify="left", pad_edge=False)
        for head in ("checkpoint", "finding", "what"):
            table.add_column(Text(head), no_wrap=head == "finding")
        for each in self.findings:
            table.add_row(*(Text(printable(word)) for word in (each.checkpoint, each.kind, each.sentence)))
        return table


def listed_tensors(names: list[str]) -> dict[str, Any]:
    """Names of tensors as facts."""
    return {"tensors": names[:SHOWN], "count": len(names)}


def some(names: list[str]) -> str:
    """Names of tensors in a sentence: the first one, and how many more."""
    shown = repr(names[0]) if len(names[0]) <= 80 else repr(names[0][:77] + "...")
    return shown if len(names) == 1 else f"{shown} and {len(names) - 1} more"

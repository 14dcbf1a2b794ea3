"""The verdicts of a run by name, each judged when it is asked for."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import stagescope as ss
from stagescope.claims.claim import Claim, Verdict
from stagescope.readings.reading import reading


class Judged(Mapping[str, Verdict]):
    """What `ss.check` finds on a run, by tag without `prefix`. One of `claims` alone costs only what that claim needs."""

    def __init__(self, run: ss.Run, claims: Iterable[Claim], prefix: str = "") -> None:
        self._run, self._prefix = run, prefix
        self._claims = {claim.tag.removeprefix(prefix): claim for claim in claims}

    @cached_property
    def _whole(self) -> dict[str, Verdict]:
        rows = {row.tag.removeprefix(self._prefix): row for row in ss.check(self._run)}
        return {name: row for name, row in rows.items() if name in self._claims}

    def __getitem__(self, name: str) -> Verdict:
        if name not in self._claims or "_whole" in self.__dict__:
            return self._whole[name]
        return next(iter(reading(self._run).judge([self._claims[name]])))

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole)

    def __len__(self) -> int:
        return len(self._whole)

"""Claims of your own: given as objects, or by the name of a module that has them."""

import hashlib
import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stagescope.claims.claim import Claim
from stagescope.core.errors import InputError
from stagescope.core.own import imported, member, parts

Claims = str | Claim | Iterable[Claim]
"""Claims as a caller gives them: one, several, or "module:NAME"."""


def own_claims(claims: Claims) -> tuple[Claim, ...]:
    """The claims that are given; "module:NAME" is imported from the current folder or from what is installed."""
    if isinstance(claims, str):
        module, name = _parts(claims)
        return _checked(member(imported(module, "claims"), name, (Claim, tuple, list)), claims)
    return _checked(claims, "claims")


def refuse_taken(claims: Iterable[Claim], written: Iterable[Claim]) -> None:
    """A claim of one's own with the tag of a paper's would be taken for it."""
    tags = {claim.tag for claim in written}
    for claim in claims:
        if claim.tag in tags:
            raise InputError(f"the tag {claim.tag!r} is that of a claim of the paper; give your own claim another tag")


def claims_digest(claims: Claims) -> str:
    """SHA-256 of the files in which claims are written, so that a change of them is noticed."""
    if isinstance(claims, str):
        return source_digest(claims)
    seal = hashlib.sha256()
    for claim in own_claims(claims):
        for function in (claim.regime, claim.compare, *(null.make for null in claim.nulls)):
            module = sys.modules.get(getattr(function, "func", function).__module__)  # `func` of a partial
            file = getattr(module, "__file__", None)
            if file is None:
                raise InputError(f"the claim {claim.tag} is in no file, so a change of it is not noticed; write it into a module")
            seal.update(Path(file).read_bytes())
    return seal.hexdigest()


def source_digest(name: str) -> str:
    """SHA-256 of the file of the module in "module:NAME", so that a change of the claims is noticed."""
    module = imported(_parts(name)[0], "claims")
    if getattr(module, "__file__", None) is None or module.__name__ == "__main__":
        raise InputError(f"{name}: workers cannot import {module.__name__}; write the claims into a file of their own")
    return hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest()


def forget(name: str) -> None:
    """Import the module of "module:NAME" anew when it is next used: a worker may have the claims of an earlier call."""
    sys.modules.pop(_parts(name)[0], None)
    importlib.invalidate_caches()


def _parts(name: str) -> tuple[str, str]:
    return parts(name, "claims", "myclaims:CLAIMS")


def _checked(given: Any, what: str) -> tuple[Claim, ...]:
    """Claims and nothing else."""
    if isinstance(given, Claim):
        return (given,)
    if isinstance(given, dict) or not isinstance(given, Iterable):
        raise InputError(f"{what} is of type {type(given).__name__}; give a Claim, or a list of claims")
    claims = tuple(given)
    for place, claim in enumerate(claims):
        if not isinstance(claim, Claim):
            raise InputError(f"{what}: number {place + 1} is of type {type(claim).__name__}, not a stagescope Claim")
    tags = [claim.tag for claim in claims]
    for tag in tags:
        if tags.count(tag) > 1:
            raise InputError(f"{what}: {tags.count(tag)} claims have the tag {tag!r}; give each a tag of its own")
    return claims

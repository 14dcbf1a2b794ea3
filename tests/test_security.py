"""The page on security: every test that it names exists."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "security.md"


def test_every_promise_names_a_test_that_exists():
    place, missing, count = None, [], 0
    for file, name in re.findall(r"`([\w/]+\.py)?(?:::(\w+))?`", PAGE.read_text()):
        if not file and not name:
            continue
        place = TESTS / file if file else place
        count += 1
        if place is None or not place.exists() or (name and f"def {name}(" not in place.read_text()):
            missing.append(f"{file}::{name}")
    assert missing == []
    assert count > 25

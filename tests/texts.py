"""Real corpora in tests: skipped, with the reason, where they are not."""

import pytest

from stagescope.core.errors import InputError
from stagescope.corpora.known import locate


def needs(name: str) -> pytest.MarkDecorator:
    """Skip a test where a known corpus is not at hand."""
    try:
        locate(name)
    except InputError as error:
        return pytest.mark.skip(reason=str(error))
    return pytest.mark.skipif(False, reason="")

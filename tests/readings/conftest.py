"""Figures of these tests are drawn once, as small PNG, unless a test is about the files."""

import pytest

from stagescope.views import figure


@pytest.fixture(autouse=True)
def drawn_once(monkeypatch, request):
    if "all_formats" not in request.keywords:
        monkeypatch.setattr(figure, "FORMATS", ("png",))
        monkeypatch.setitem(figure.STYLE, "savefig.dpi", 100)

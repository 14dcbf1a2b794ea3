"""A name says what it holds: words that would name anything are rare."""

import ast
from collections import Counter

from tests.test_layers import MODULES

WORDS = """found made kept seen said shown known given asked held moved taken drawn left told meant written opened sought
chosen wanted needed lacking missing reached joined marked counted each every what whole other others own more many
most rest same where when why how here there at of by on beside elsewhere apart alike aside"""
MOST = 0.015
"""Their share of all names that are assigned. `left` beside `right` is one of them."""


def test_names_say_what_they_hold():
    names: Counter[str] = Counter()
    for path in MODULES.values():
        stored = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name))
        names.update(node.id.strip("_") for node in stored if isinstance(node.ctx, ast.Store))
    vague = Counter({name: count for name, count in names.items() if name in WORDS.split()})
    assert vague.total() <= MOST * names.total(), vague.most_common(10)

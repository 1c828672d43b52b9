"""Which statements of a kernel are needed, and which depend on the tile of a loop."""

import pytest
from tilewright.attention.codegen.source.liveness import assigned, split_loop, used, without_unused

from tilewright.attention.codegen.source.tree import code


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("a = 1; b = a; tl.store(x, a)", {"a"}),
        ("other = 1; a = tl.load(x, other=0); tl.store(x, a)", {"a"}),  # a keyword is no use
        ("a = 1; a = 2; tl.store(x, a)", {"a"}),
        ("t = 0\nfor k in range(n):\n    t += k\ntl.store(x, t)", {"t"}),
        ("t = 0\nfor k in range(n):\n    t += k\ntl.store(x, 1)", set()),
        ('a = 1\nif m == 0:\n    tl.send("parent", a)', {"a"}),
        ('a = tl.recv("parent", (1,), tl.int32)', {"a"}),
        ("n = 3; a = 0\nif n:\n    a = 1\ntl.store(x, a)", {"n", "a"}),
        ("a = 1; b = a; mark_best(b)", {"a", "b"}),
        ("a, b = 1, 2; tl.store(x, b)", {"a", "b"}),
    ],
)
def test_assignments_that_nothing_needs_are_left_out(source: str, kept: set[str]) -> None:
    assert assigned(without_unused(code(source))) == kept


def test_what_is_wanted_stays() -> None:
    assert assigned(without_unused(code("a = 1; b = 2"), ["b"])) == {"b"}


def test_what_depends_on_a_tile_stays_in_the_loop() -> None:
    source = "q = 1; k = page + q; turned = q * 2\nif q:\n    s = k\nu = s + turned; v = turned"
    ahead, inside = split_loop(code(source), ["page"])
    assert assigned(ahead) == {"q", "turned", "v"}
    assert assigned(inside) == {"k", "s", "u"}


def test_a_value_that_is_added_to_is_read() -> None:
    assert used(code("t += a")) == {"t", "a"}
    assert used(code("t = a")) == {"a"}

"""Kernels as trees: printed as they were written, they say what they use and what is needed."""

import pytest

from tilewright.attention.codegen.source.tree import (
    Function,
    assigned,
    called,
    code,
    joined,
    lines,
    split_loop,
    used,
    without_unused,
)
from tilewright.errors import InternalError

BODY = """\
first, stop = tl.load(x), 4
total = (first + 1)  # parentheses stay
for start in range(-2, stop, 16):
    if start % 2 == 0:
        total += tl.load(x + start, mask=start < stop, other=0)
    else:
        total = float("-inf")
    tl.store(y + start, (total).to(tl.int8))
tl.debug_barrier()  # of all threads"""


def printed(source: str, remark: str = "") -> str:
    statements = code(source, remark=remark)
    text = Function("f", "It is done.", {"x": "numbers", "y": ""}, statements).text()
    head, _, body = text.partition('    """It is done."""\n')
    assert head == "@triton.jit\ndef f(\n    x,  # numbers\n    y,\n):\n"
    return "\n".join(line.removeprefix("    ") for line in body.splitlines())


def test_source_is_printed_as_it_was() -> None:
    assert printed(BODY) == BODY


def test_source_may_be_indented_and_have_empty_lines() -> None:
    assert printed("\n        a = 1\n\n        b = a\n    ") == "a = 1\nb = a"


def test_a_remark_stands_ahead_of_the_first_statement() -> None:
    assert printed("a = 1; b = a", "[1, 4] größe") == "# [1, 4] größe\na = 1\nb = a"


def test_names_behind_letters_of_several_bytes_are_cut_out_whole() -> None:
    assert printed("größe = maß + tl.load(maß)") == "größe = maß + tl.load(maß)"


@pytest.mark.parametrize(
    "source", ["while a: b = 1", "a -= 1", "a[0] = 1", "def f(): a = 1", "[]", "a"]
)
def test_what_is_no_statement_of_a_kernel_is_refused(source: str) -> None:
    with pytest.raises(InternalError, match="a statement of a kernel"):
        code(source)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = (1 +\n    2)", "a statement on one line"),
        ("# why\na = 1", "remarks beside the source"),
        ("for k in range(n):  # why\n    a = k", "a head on a line of its own"),
        ("if a: b = 1", "a head on a line of its own"),
    ],
)
def test_what_would_not_be_printed_as_it_is_is_refused(source: str, expected: str) -> None:
    with pytest.raises(InternalError, match=expected):
        code(source)


def test_lines_in_the_midst_of_others_are_indented_as_their_place_is() -> None:
    inner = lines("""
        if a:
            b = 1
    """)
    outer = lines(f"""
        for k in range(n):
            {inner}
            {""}
            c = b
    """)
    assert outer == "for k in range(n):\n    if a:\n        b = 1\n\n    c = b"
    assert printed(joined([outer, "d = c"])).splitlines()[-2:] == ["    c = b", "d = c"]


def test_statements_that_are_there_already_take_the_place_of_dots() -> None:
    turn = code("total += k", remark="once more")
    found = code("for k in range(0, n, 4):\n    ...\nend = total", turn)
    assert found[0].body == tuple(turn)
    assert found[1:] == code("end = total")


@pytest.mark.parametrize(("source", "parts"), [("a = 1", 1), ("...\na = 1", 2)])
def test_parts_without_a_place_are_refused(source: str, parts: int) -> None:
    with pytest.raises(InternalError, match=r"a line \.\.\. for each part"):
        code(source, *[code("b = 1")] * parts)


def test_dots_without_a_part_are_refused() -> None:
    with pytest.raises(InternalError, match=r"a line \.\.\. for each part"):
        code("...\na = 1")


def test_keywords_and_texts_are_no_names() -> None:
    source = 'tl.where(there, tl.load(x, mask=k < 2, other=0), float("-inf"))'
    assert used(code(source)) == {"tl", "there", "x", "k", "float"}


def test_calls_are_known_wherever_they_stand() -> None:
    statements = code(BODY)
    found = [name for name, _ in called(statements[2:3])]
    assert found == ["range", "tl.load", "float", "tl.store", "total.to"]


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

"""Kernels as trees: what is taken apart is printed as it was, and says what it uses."""

import pytest

from tilewright.attention.codegen.source.tree import (
    Assign,
    Expression,
    Function,
    If,
    Loop,
    code,
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
    text = Function("f", "It is done.", {"x": "numbers", "y": ""}, code(source, remark)).text()
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


@pytest.mark.parametrize("source", ["while a: b = 1", "a -= 1", "a[0] = 1", "def f(): a = 1"])
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


def test_keywords_and_texts_are_no_names() -> None:
    names = Expression.of('tl.where(there, tl.load(x, mask=k < 2, other=0), float("-inf"))').names
    assert names == {"tl", "there", "x", "k", "float"}


def test_calls_are_known_wherever_they_stand() -> None:
    loop, *_ = (item for item in code(BODY) if isinstance(item, Loop))
    assert [name for name, _ in loop.calls()] == ["tl.load", "float", "tl.store", "total.to"]


def test_bounds_that_are_literals_are_known() -> None:
    (loop,) = (item for item in code(BODY) if isinstance(item, Loop))
    assert [bound.whole_number() for bound in loop.bounds] == [-2, None, 16]


def test_built_and_written_statements_are_equal() -> None:
    turn = code("total += k")
    assert code("for k in range(0, n, 4):\n    total += k") == [Loop.over("k", "0", "n", 4, turn)]
    assert code("if a == 0:\n    total += k") == [If.of("a == 0", turn)]
    assert turn == [Assign(("total",), Expression.of("k"), "+")]

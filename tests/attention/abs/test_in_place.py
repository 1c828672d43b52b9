"""Ops that replace their operand when their result is unused: Vortex's early Softmax, Normalize."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attention.flow.making import examine
from tilewright.attention.graph import Node
from tilewright.attention.indexer import (
    Exp,
    GeMM,
    Load,
    Max,
    Normalize,
    Save,
    Softmax,
    TopK,
    Union,
    topK,
)
from tilewright.errors import OperandError


def scores(q: Any, cache: Any, ctx: Any) -> Any:
    return GeMM()(q.mean(1), cache["centroids"], ctx=ctx)


def chain(node: Node | None) -> list[str]:
    """Ops from a selection back along first inputs."""
    found = []
    while node is not None and node.op.name != "GeMM":
        found.append(node.op.name)
        node = node.inputs[0] if node.inputs else None
    return found


def selected_by(forward: Any, **more: Any) -> list[str]:
    return chain(examine(forward, **more).graph.output.branches[0].selection)


@pytest.mark.parametrize("op", [Softmax, Normalize])
def test_an_unused_result_replaces_its_operand_in_what_follows(op: Any) -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        score = scores(q, cache, ctx)
        op()(score, ctx=ctx)
        topK()(score, o, ctx=ctx)

    assert selected_by(forward) == ["TopK", op.__name__]


def test_a_used_result_leaves_its_operand_alone_and_a_later_read_is_told() -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        score = scores(q, cache, ctx)
        weights = Softmax()(score, ctx=ctx)
        topK()(score + weights * 0.5, o, ctx=ctx)

    graph, warnings = examine(forward)
    selection = graph.output.branches[0].selection
    assert selection is not None
    assert selection.inputs[0].inputs[0].op.name == "GeMM"
    assert [warning.code for warning in warnings] == ["operand-read-again"]
    assert warnings[0].source.startswith("test_in_place.py:")


def test_a_used_result_without_a_later_read_of_the_operand_is_not_told() -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        weights = Softmax()(GeMM()(q, cache["centroids"], ctx=ctx), ctx=ctx)
        topK()(Max(dim=2)(weights, ctx=ctx), o, ctx=ctx)

    assert examine(forward).warnings == ()


def test_reads_before_the_call_keep_the_value_from_before() -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        score = scores(q, cache, ctx)
        before = Exp()(score, ctx=ctx)
        copy = score.clone()
        Softmax()(score, ctx=ctx)
        topK()(before * copy * score, o, ctx=ctx)

    selection = examine(forward).graph.output.branches[0].selection
    assert selection is not None
    (product,) = selection.inputs
    assert chain(product.inputs[0].inputs[0]) == ["Exp"]
    assert chain(product.inputs[0].inputs[1]) == ["Cast"]
    assert chain(product.inputs[1]) == ["Softmax"]


def test_a_view_taken_after_the_call_is_of_the_new_value() -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        score = GeMM()(q, cache["centroids"], ctx=ctx)
        Softmax()(score, ctx=ctx)
        topK()(score.transpose(1, 2).reshape(-1, 1, 4).amax(2), o, ctx=ctx)

    assert selected_by(forward) == ["TopK", "Max", "Reshape", "Transpose", "Softmax"]


def test_what_is_saved_is_the_new_value() -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        score = scores(q, cache, ctx)
        Softmax()(score, ctx=ctx)
        Save()(score, cache["mass"], ctx=ctx)
        topK()(score + Load()(cache["mass"], ctx=ctx), o, ctx=ctx)

    graph = examine(forward, fields={"centroids": (1, 16), "mass": (1, 1)}).graph
    assert chain(graph.state_writes[0].value) == ["Softmax"]


def test_a_save_before_the_call_keeps_the_value_from_before() -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        score = scores(q, cache, ctx)
        Save()(score, cache["mass"], ctx=ctx)
        Softmax()(score, ctx=ctx)
        topK()(score + Load()(cache["mass"], ctx=ctx), o, ctx=ctx)

    graph = examine(forward, fields={"centroids": (1, 16), "mass": (1, 1)}).graph
    assert chain(graph.state_writes[0].value) == []


def test_both_streams_of_a_union_read_the_new_value() -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        score = scores(q, cache, ctx)
        Softmax()(score, ctx=ctx)
        Union()(TopK(2)(score, ctx=ctx), TopK(3)(Exp()(score, ctx=ctx), ctx=ctx), o, ctx=ctx)

    selection = examine(forward).graph.output.branches[0].selection
    assert selection is not None
    assert [chain(item) for item in selection.inputs] == [
        ["TopK", "Softmax"],
        ["TopK", "Exp", "Softmax"],
    ]


@given(st.lists(st.sampled_from(["softmax", "normalize", "read"]), max_size=6))
def test_each_read_sees_the_calls_before_it_in_any_program(program: list[str]) -> None:
    """The oracle is a list that grows as a buffer would be overwritten."""
    ops: dict[str, Any] = {"softmax": Softmax(), "normalize": Normalize()}  # one object, many calls
    written: list[str] = []
    wanted: list[list[str]] = []

    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        score = scores(q, cache, ctx)
        total = Exp()(score, ctx=ctx)
        for word in program:
            if word == "read":
                total = total * Exp()(score, ctx=ctx)
                wanted.append(["Exp", *reversed(written)])
            else:
                ops[word](score, ctx=ctx)
                written.append(word.title())
        topK()(total, o, ctx=ctx)

    selection = examine(forward).graph.output.branches[0].selection
    assert selection is not None
    node, found = selection.inputs[0], []
    while node.op.name == "Multiply":
        found.append(chain(node.inputs[1]))
        node = node.inputs[0]
    assert found[::-1] == wanted
    assert chain(node) == ["Exp"]


def test_a_call_whose_operand_nobody_reads_again_is_told() -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        score = scores(q, cache, ctx)
        topK()(score, o, ctx=ctx)
        Softmax()(score, ctx=ctx)

    assert [warning.code for warning in examine(forward).warnings] == ["unused-value"]


@pytest.mark.parametrize(
    ("operand", "found"),
    [
        (lambda q, _c, _ctx: q, "BATCHED bfloat16.*expected a value in format RAGGED"),
        (lambda _q, c, _ctx: c["centroids"], "PAGED bfloat16.*lift the field with Load"),
        (lambda q, c, ctx: scores(q, c, ctx).cast("int32"), "RAGGED int32.*write y = Softmax"),
    ],
)
def test_what_cannot_be_replaced_is_refused_with_the_line(operand: Any, found: str) -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        Softmax()(operand(q, cache, ctx), ctx=ctx)
        topK()(scores(q, cache, ctx), o, ctx=ctx)

    with pytest.raises(OperandError, match=found) as caught:
        examine(forward)
    assert caught.value.source.startswith("test_in_place.py:")


def test_the_method_form_returns_a_new_value_always() -> None:
    def forward(q: Any, o: Any, cache: Any, ctx: Any) -> None:
        score = scores(q, cache, ctx)
        score.softmax(0)
        topK()(score, o, ctx=ctx)

    graph, warnings = examine(forward)
    assert chain(graph.output.branches[0].selection) == ["TopK"]
    assert [warning.code for warning in warnings] == ["unused-value"]

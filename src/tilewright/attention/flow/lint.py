"""Warnings for what a flow says without effect."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from tilewright.attention.abs.in_place import ReadAgain
from tilewright.attention.abs.trace import Trace
from tilewright.attention.graph import FORMAT, Graph, Node, Side, walk
from tilewright.attention.ops import binary, leaf, page_axis, reduce, selection, unary

EXACT_SELECTION = "exact-selection"


class Lint(NamedTuple):
    """One warning: a stable code for programs, a line, a sentence."""

    code: str
    source: str
    text: str

    def __str__(self) -> str:
        place = f"{self.source}: " if self.source else ""
        return f"{place}{self.text} [{self.code}]"


def lint_flow(
    graph: Graph, cache: Trace, indexer: Trace, read_again: tuple[ReadAgain, ...] = ()
) -> tuple[Lint, ...]:
    """Return all warnings, in the order of the author's lines within each kind."""
    return (
        *_unused_values(cache),
        *_unused_values(indexer),
        *_overwritten(cache),
        *_fields(graph),
        *_states(graph),
        *_without_effect(graph),
        *_unused_tolerance(graph),
        *_unusual_defaults(cache, indexer),
        *map(_operand_read_again, read_again),
    )


def _operand_read_again(read: ReadAgain) -> Lint:
    name = read.call.op.name
    text = (
        f"the operand of {name} at {read.call.source} is read again and has its value from before:"
        f" the result of {name} is used, so it is a new value; read that, or drop the result"
    )
    return Lint("operand-read-again", read.source, text)


def _unused_values(trace: Trace) -> Iterator[Lint]:
    roots = [write.value for write in (*trace.field_writes.values(), *trace.overwritten)]
    roots += [write.value for write in trace.state_writes.values()]
    roots += list(trace.output.nodes()) if trace.output else []
    needed = set(walk(roots))
    used = {item for node in trace.nodes for item in node.inputs}
    for node in trace.nodes:
        silent = not node.inputs or isinstance(node.op, selection.SelectedTokens)
        if node not in needed and node not in used and not silent:
            yield Lint("unused-value", node.source, f"the result of {node.op.name} is not used")


def _overwritten(cache: Trace) -> Iterator[Lint]:
    for write in cache.overwritten:
        text = f"field {write.target!r} is written again later; only the last value is kept"
        yield Lint("overwritten-field", write.source, text)


def _read(graph: Graph, kind: type[leaf.FieldRead | leaf.StateRead]) -> set[str]:
    """Return the variables that forward_indexer reads by ops of a kind."""
    return {node.op.variable for node in graph.nodes(Side.INDEXER) if isinstance(node.op, kind)}


def _fields(graph: Graph) -> Iterator[Lint]:
    read = _read(graph, leaf.FieldRead)
    written = {write.target: write for write in graph.field_writes}
    for item in graph.fields:
        if item.name in graph.geometry.reserved_fields:
            continue
        if item.name not in written:
            text = f"field {item.name!r} is never written; it stays {item.initial:g}"
            yield Lint("field-never-written", "", text)
        if item.name not in read:
            source = written[item.name].source if item.name in written else ""
            text = f"field {item.name!r} is never read by forward_indexer"
            yield Lint("field-never-read", source, text)


def _states(graph: Graph) -> Iterator[Lint]:
    read = _read(graph, leaf.StateRead)
    for write in graph.state_writes:
        if write.target not in read:
            text = f"state {write.target!r} is saved and never read"
            yield Lint("state-never-read", write.source, text)


def _without_effect(graph: Graph) -> Iterator[Lint]:
    """What keeps the order of scores does not change which pages a top-k takes."""
    users = Counter(item for node in graph.nodes(Side.INDEXER) for item in node.inputs)
    users.update(graph.indexer_roots())
    for node in graph.nodes(Side.INDEXER):
        if not isinstance(node.op, selection.TopK | selection.ApproxTopK):
            continue
        scores = node.inputs[0]
        while users[scores] == 1 and (kept := _order_kept(scores)) is not None:
            reason, scores_before = kept
            text = f"{scores.op.name} before {node.op.name} has no effect: {reason}"
            yield Lint("order-kept", scores.source, text)
            scores = scores_before


def _unused_tolerance(graph: Graph) -> Iterator[Lint]:
    for node in graph.nodes(Side.INDEXER):
        if isinstance(node.op, selection.ApproxTopK) and node.op.tolerate_ratio > 0:
            ratio = f"tolerate_ratio={node.op.tolerate_ratio:g}"
            text = f"{ratio} is without effect: ApproxTopK selects exactly on every backend"
            yield Lint(EXACT_SELECTION, node.source, text)


def _order_kept(node: Node) -> tuple[str, Node] | None:
    """Why a node keeps the order of its input over pages, and that input."""
    op, monotone = node.op, "it keeps the order of scores"
    if isinstance(op, binary.Add):
        return _added_constant(node, op)
    if isinstance(op, binary.Multiply):
        return _scaled(node)
    rising = (
        (isinstance(op, unary.Add_Mul | unary.Exp) and op.beta > 0)
        or (isinstance(op, unary.Log) and op.beta > 0 <= op.alpha and _is_positive(node))
        or (isinstance(op, unary.Sigmoid) and op.beta < 0)
        or (isinstance(op, unary.Sqrt) and _is_positive(node))
        or isinstance(op, page_axis.Normalize)
        or (isinstance(op, page_axis.Softmax) and op.dim == 0 and op.scale > 0)
    )
    single = node.type.shape == (1, 1)
    if rising and (single or not isinstance(op, page_axis.Normalize | page_axis.Softmax)):
        return monotone, node.inputs[0]
    return None


def _is_positive(node: Node) -> bool:
    """Whether the operand has no negative entries; of these Log and Sqrt make NaN, all alike."""
    never_negative = unary.Exp | unary.Abs | unary.Sigmoid | unary.Sqrt | reduce.L2Norm
    return isinstance(node.inputs[0].op, never_negative | page_axis.Softmax)


def _added_constant(node: Node, op: binary.Add) -> tuple[str, Node] | None:
    reason = "it adds one number to all pages of a sequence"
    x, y = node.inputs
    for scores, other, factor in ((x, y, op.alpha), (y, x, op.beta)):
        if other.type.format is FORMAT.BATCHED and scores.type.format is not FORMAT.BATCHED:
            return (reason, scores) if factor > 0 else None
    return None


def _scaled(node: Node) -> tuple[str, Node] | None:
    for scores, factor in (node.inputs, node.inputs[::-1]):
        if isinstance(factor.op, leaf.Constant) and factor.op.value > 0:
            return "it multiplies all scores by one positive number", scores
    return None


def _unusual_defaults(*traces: Trace) -> Iterator[Lint]:
    for node in chain.from_iterable(trace.nodes for trace in traces):
        if isinstance(node.op, unary.Sigmoid) and node.op.beta == 0:
            text = "Sigmoid with beta=0 is a constant; the logistic function has beta=-1"
            yield Lint("unusual-default", node.source, text)
        if isinstance(node.op, unary.Silu) and node.op.beta == 0:
            text = "Silu with beta=0 only scales; Swish has beta=-1"
            yield Lint("unusual-default", node.source, text)

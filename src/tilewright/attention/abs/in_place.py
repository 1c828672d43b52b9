"""Ops that replace their operand when nobody uses their result (ADR 0022)."""

from dataclasses import replace
from typing import NamedTuple

from tilewright.attention.abs.trace import Event, Trace
from tilewright.attention.graph import Node, Output, StateWrite, keep, rebuild_output
from tilewright.errors import OperandError


class ReadAgain(NamedTuple):
    """A read of an operand after a call that returned a new value instead of replacing it."""

    call: Node
    source: str  # line of the read


def resolve_in_place(trace: Trace) -> tuple[ReadAgain, ...]:
    """Let calls whose result is unused replace their operand in all that follows them.

    Rewrites the trace; reads before a call keep the value from before it. Returns the later reads
    of operands whose call had its result used, and so left them alone.
    """
    used = {node for event in trace.events for node in _operands(event)}
    dropped = {call for call in trace.in_place_calls if call not in used}
    for call in dropped:
        _check_replaceable(trace, call)
    found = tuple(
        read
        for call in trace.in_place_calls
        if call not in dropped and (read := _read_again(trace, call)) is not None
    )
    if dropped:
        _replace_operands(trace, dropped)
    return found


def _check_replaceable(trace: Trace, call: Node) -> None:
    """Raise OperandError if the operand is not float32. Fields and inputs are not RAGGED."""
    (operand,) = call.inputs
    if operand.type == call.type:
        return
    found = f"an unused result, and an operand {operand.type} that cannot be replaced"
    expected = "a use of the result, or a float32 operand"
    fix = f"write y = {call.op.name}(...) and use y"
    error = OperandError(call.op.name, found, expected, fix, op=call.op.name, operand="x")
    raise error.located(flow=trace.flow, method=trace.method, source=call.source)


def _read_again(trace: Trace, call: Node) -> ReadAgain | None:
    later = trace.events[trace.events.index(call) + 1 :]
    for event in later:
        if call.inputs[0] in _operands(event):
            return ReadAgain(call, event.source)
    return None


def _replace_operands(trace: Trace, dropped: set[Node]) -> None:
    """Rebuild the events in their order; ``now`` is what each value of the author stands for."""
    now: dict[Node, Node] = {}
    for index, event in enumerate(trace.events):
        if isinstance(event, Node):
            rebuilt = keep(event, tuple(now[item] for item in event.inputs), trace.scope)
            now[event] = rebuilt
            if event in dropped:
                now[event.inputs[0]] = rebuilt
            trace.events[index] = rebuilt
        elif isinstance(event, Output):
            trace.events[index] = trace.output = rebuild_output(event, now)
        else:
            trace.events[index] = replace(event, value=now[event.value])
    writes = [item for item in trace.events if isinstance(item, StateWrite)]
    trace.state_writes = {write.target: write for write in writes}


def _operands(event: Event) -> tuple[Node, ...]:
    """Values that an event reads."""
    if isinstance(event, Node):
        return event.inputs
    return tuple(event.nodes()) if isinstance(event, Output) else (event.value,)

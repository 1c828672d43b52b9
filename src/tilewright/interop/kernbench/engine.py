"""The engine that KernBench programs drive: ``kernbench.sim_engine.engine``.

`GraphEngine` owns a machine with its memories and its clock. Messages that are wrong are refused
when they are submitted. What fails inside the machine is told by the Completion; an error in a
kernel is raised by ``wait``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from tilewright.errors import ProgramError, RequestError, TilewrightError
from tilewright.host import RuntimeContext
from tilewright.interop.kernbench.kernel import send_launch
from tilewright.interop.kernbench.message import (
    KernelLaunchMsg,
    MemoryReadMsg,
    MemoryWriteMsg,
    Message,
    MmuMapMsg,
    MmuUnmapMsg,
    PeDmaMsg,
    check_envelope,
    refuse,
)
from tilewright.interop.kernbench.message_send import (
    Sent,
    send_dma,
    send_map,
    send_read,
    send_unmap,
    send_write,
)
from tilewright.interop.kernbench.names import current_registry
from tilewright.interop.kernbench.topology import Topology
from tilewright.interop.kernbench.topology.keys import CORNERS
from tilewright.interop.kernbench.topology.rules import CUBE_MESH, CUBES, PER_CORNER, SIPS
from tilewright.interop.kernbench.value import Completion, RequestHandle, ValueProgramError
from tilewright.machine.build import Machine
from tilewright.runtime.request import Request
from tilewright.units import PS_PER_NS

SENDERS: Mapping[type[Message], Callable[[RuntimeContext, Any], Sent]] = {
    MemoryWriteMsg: send_write,
    MemoryReadMsg: send_read,
    PeDmaMsg: send_dma,
    MmuMapMsg: send_map,
    MmuUnmapMsg: send_unmap,
}
"""Functions that put messages of a class on their way; a launch knows kernels too."""


@dataclass(eq=False, slots=True)
class _Submitted:
    """A message that was submitted, with the failures that its Completion tells."""

    message: Any
    sent: Sent
    failures: list[TilewrightError] = field(default_factory=list)

    def completion(self) -> Completion:
        if self.failures:
            first = self.failures[0]
            return Completion(False, type(first).__name__, str(first))
        for request in self.sent.requests:
            ours = request.completion  # who asks is told: the host raises it no more
            if not ours.ok:
                return Completion(False, ours.error_code, ours.error_message)
        return Completion(ok=True)

    def trace(self, *, ok: bool) -> dict[str, Any]:
        """Return what is known of a complete message; times in ns of the simulated clock."""
        requests = self.sent.requests
        submitted_ps = min(request.submitted_ps for request in requests)
        completed_ps = max(request.completed_ps or 0 for request in requests)
        names = ("msg_type", "request_id", "correlation_id")
        return {
            **{name: getattr(self.message, name) for name in names},
            "submitted_ns": submitted_ps / PS_PER_NS,
            "completed_ns": completed_ps / PS_PER_NS,
            "total_ns": (completed_ps - submitted_ps) / PS_PER_NS,
            **self.sent.facts,
            **(self.sent.outcome() if ok else {}),
        }


class GraphEngine:
    """A machine with its clock, to which messages are submitted.

    ``graph`` is what ``resolve_topology`` returns. The machine is built as the running program asks
    for (``registry``), and ``kernels``, by which launch messages name functions, are the program's.

    >>> from tilewright.interop.kernbench.message import MemoryReadMsg
    >>> from tilewright.interop.kernbench.topology import resolve_topology
    >>> engine = GraphEngine(resolve_topology({"system": {"sips": {"count": 1}}}))
    >>> handle = engine.submit(MemoryReadMsg("doc", "read", 0, 0, 0, 0, 256))
    >>> engine.wait(handle)
    >>> completion, trace = engine.get_completion(handle)
    >>> completion.ok, trace["nbytes"], trace["total_ns"] > 0
    (True, 256, True)
    """

    host: RuntimeContext  # has the driver, the memories and the virtual space
    kernels: dict[str, Callable[..., Any]]  # by name; the last registration holds

    def __init__(self, graph: Topology) -> None:
        if not isinstance(graph, Topology):
            found, expected = repr(graph), "what resolve_topology(path) returns"
            fix = "write GraphEngine(resolve_topology('topology.yaml'))"
            raise ProgramError("GraphEngine", found, expected, fix)
        registry = current_registry()
        self._begin(registry.build_host(graph.machine), registry.kernels)

    @classmethod
    def of_host(cls, host: RuntimeContext) -> Self:
        """Return an engine on the machine of a context that is there, sanitizer included."""
        engine = cls.__new__(cls)
        engine._begin(host, {})
        return engine

    def _begin(self, host: RuntimeContext, kernels: dict[str, Callable[..., Any]]) -> None:
        self.host = host
        self.kernels = kernels
        self._submitted: dict[RequestHandle, _Submitted] = {}

    def __repr__(self) -> str:
        return f"<GraphEngine with {len(self._submitted)} messages on {self.host!r}>"

    def submit(self, request: Any) -> RequestHandle:
        """Put a message on its way and return its handle; no simulated time passes.

        The handle is unique on this engine, whatever the request_id. Raises RequestError for a
        message that cannot be carried out; nothing of it was sent then.
        """
        sent = self._send(request)
        handle = RequestHandle(f"{request.request_id}#{len(self._submitted)}")
        submitted = self._submitted[handle] = _Submitted(request, sent)
        if sent.fails_quietly:
            for each in sent.requests:
                each.listeners.append(partial(self._take_failures, submitted, each))
        return handle

    def _send(self, message: Any) -> Sent:
        if not isinstance(message, Message):
            expected = "a message such as MemoryWriteMsg or KernelLaunchMsg"
            raise RequestError("submit", repr(message), expected, "build one of the message types")
        check_envelope(message)
        if isinstance(message, KernelLaunchMsg):
            return send_launch(self.host, self.kernels, message)
        for kind, send in SENDERS.items():
            if isinstance(message, kind):
                return send(self.host, message)
        fix = "read the completion of a request: get_completion(handle)"
        raise refuse(message, "msg_type", "a response", "a request to the machine", fix)

    def _take_failures(self, submitted: _Submitted, request: Request) -> None:
        """Keep the failures of a complete request for its Completion: the host does not raise them.

        The first of a message is a note of the run, since programs may not look at completions.
        """
        if request.failures and not submitted.failures:
            self.host.notes.append(f"failed: {request.what}: {request.failures[0]}")
        submitted.failures += request.failures
        request.failures.clear()

    def wait(self, handle: RequestHandle) -> None:
        """Let simulated time pass until the message is complete.

        Raises the error of a kernel, once: a program that has caught it may go on. Any other
        failure is told by ``get_completion``.
        """
        for request in self._find(handle).sent.requests:
            if not (request.is_completed and request.is_told):
                self.host.driver.wait(request)

    def get_completion(self, handle: RequestHandle) -> tuple[Completion, dict[str, Any]]:
        """Return how a message ended, and its trace; refuse one that is under way.

        The trace has msg_type, request_id, correlation_id, times in ns, and what the kind of the
        message adds: ``data`` of a read, ``path`` of a transfer, the parts of a launch's latency.
        """
        submitted = self._find(handle)
        if not all(request.is_completed for request in submitted.sent.requests):
            where = f"get_completion({handle!r})"
            fix = "wait for it first: engine.wait(handle)"
            raise RequestError(where, "a message that is under way", "a complete one", fix)
        completion = submitted.completion()
        return completion, submitted.trace(ok=completion.ok)

    def _find(self, handle: RequestHandle) -> _Submitted:
        submitted = self._submitted.get(handle)
        if submitted is None:
            fix = "use what submit of this engine returned"
            raise RequestError("engine", f"the handle {handle!r}", "a handle of this engine", fix)
        return submitted


COUNTS = (SIPS, CUBES, *CUBE_MESH, PER_CORNER)
"""Keys of counts that a spec and its machine share."""


def spec_of_machine(machine: Machine) -> dict[str, Any]:
    """Return the counts and sizes of a machine under the keys of a KernBench topology."""
    grid, spec = machine.grid, machine.spec
    num_pes = grid.num_pes_per_cube
    corners = list(CORNERS) if num_pes % len(CORNERS) == 0 else [CORNERS[0]]
    mesh = spec.sip
    return {
        "system": {"sips": {"count": grid.num_sips, "cubes_per_sip": grid.num_cubes_per_sip}},
        "sip": {"cube_mesh": {"w": mesh.columns, "h": mesh.rows}},
        "cube": {
            "pe_layout": {"corners": corners, "pe_per_corner": num_pes // len(corners)},
            "memory_map": {
                "hbm_total_gb_per_cube": machine.addresses.slice_bytes * num_pes / (1 << 30),
                "hbm_slices_per_cube": num_pes,
            },
            "pe_template": {
                "components": {
                    "pe_tcm": {"attrs": {"size_mb": spec.pe.tcm.capacity_bytes / (1 << 20)}},
                    "pe_mmu": {"attrs": {"page_size": spec.pe.mmu.page_bytes}},
                }
            },
        },
    }


def check_spec(spec: Mapping[str, Any], machine: Machine) -> None:
    """Refuse the spec of another machine: counts that it says and the engine does not have."""
    there = spec_of_machine(machine)
    for path in COUNTS:
        said = _at(spec, path)
        if said is not None and said != _at(there, path):
            found = f"{'.'.join(path)}={said!r}"
            expected = f"{_at(there, path)!r}, as the engine's machine has"
            raise ValueProgramError("spec", found, expected, "pass spec=graph.spec of its graph")


def _at(spec: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = spec
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value

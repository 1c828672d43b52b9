"""Every exception of tilewright.

TilewrightError           where, found, expected, fix
├── SpecError             a file or value that describes something is wrong
├── UnitError             a time, size or rate that is no exact integer quantity
├── EngineError           wrong use of the event engine
│   ├── DeadlockError     events ran out while someone waits
│   ├── ServerError       a server written in Python raised or returned nonsense
│   └── TimeLimitError    a time of 2^62 picoseconds or more
├── DeviceError           a program asks of the hardware what it cannot do
│   └── AddressError      an access to bytes that a PE does not see
│       └── PageFaultError  an access to an address that no page maps
├── MemoryAccessError     an access outside a memory
├── AllocationError       space that is not there to be taken, or was not taken
│   └── OutOfMemoryError  no hole is large enough
├── KernelError           a kernel says what has no meaning: op, operands
│   ├── KernelTypeError   operands whose dtypes or shapes do not fit the op
│   ├── TileRoomError     a tile or result that a PE's TCM or registers have no room for
│   ├── LaunchEndedError  a launch whose programs an error has ended, theirs or another's
│   └── MessageError      messages between programs that nobody has received
├── LimitError            a run that goes beyond a limit: endless, or larger than was allowed
├── PlacementError        a tensor that cannot lie in the machine as its policy says
├── TensorError           wrong use of a tensor: freed, of another shape, without values
├── RequestError          a request to a machine that failed or cannot be made
├── SanitizerError        accesses to memory that are wrong, though the run went on
├── CollectiveError       a collective that cannot be: group, plan, rings, tensors
├── RecordError           a record that cannot be written, read or trusted
├── AttentionError        wrong use of an attention session
│   ├── PagingError       requests or pages that are not there, or too few of them
│   └── PlanError         a budget or a plan that cannot be kept
├── ModelError            a model that cannot be found, loaded or run
│   └── ModelFileError    a model file that is damaged, foreign or hostile
├── RegistryError         two owners for one name, or no owner at all
│   ├── UnknownAttributeError  a name that a module of a foreign package does not have here
│   └── UnknownImportError     the same in an import statement
├── MissingExtraError     a library of an optional extra is not installed
├── CodeRefusedError      code of a file that --no-code does not let run
├── FlowError             a sparse-attention flow is wrong: flow, method, line, op, operand
│   ├── FlowLoadError     a flow file that cannot be read, imported or found by name
│   ├── FlowInitError     a flow class whose constructor or create_cache does not do
│   ├── OperandError      an op whose attributes or operands do not fit
│   ├── FieldError        a field that nobody declared, or that may not be declared
│   ├── StateError        state that is written twice, or in the wrong place
│   ├── TerminalError     no selection at the end of a flow, or more than one
│   └── ForeignCallError  a value of a flow handed to torch, NumPy or plain Python
├── GraphError            a graph that breaks a rule of graphs, or a text that is no graph
├── CodegenError          a graph with an op or size that cannot be put into kernels
├── BenchError            a program of `run` that cannot be asked for so
│   └── ProgramError      a program of the user's that fails by itself
├── UsageError            a command line that names no known command or option
├── ProcessError          a process of a run that somebody ended
├── HostMemoryError       more memory is needed than this computer has
├── InterruptError        the user stopped the command
└── InternalError         a broken rule of our own, with the state
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Self

__all__ = (
    "AddressError",
    "AllocationError",
    "AttentionError",
    "BenchError",
    "CodeRefusedError",
    "CodegenError",
    "CollectiveError",
    "DeadlockError",
    "DeviceError",
    "EngineError",
    "FieldError",
    "FlowError",
    "FlowInitError",
    "FlowLoadError",
    "ForeignCallError",
    "GraphError",
    "HostMemoryError",
    "InternalError",
    "InterruptError",
    "KernelError",
    "KernelTypeError",
    "LaunchEndedError",
    "LimitError",
    "MemoryAccessError",
    "MessageError",
    "MissingExtraError",
    "ModelError",
    "ModelFileError",
    "OperandError",
    "OutOfMemoryError",
    "PageFaultError",
    "PagingError",
    "PlacementError",
    "PlanError",
    "ProcessError",
    "ProgramError",
    "RecordError",
    "RegistryError",
    "RequestError",
    "SanitizerError",
    "ServerError",
    "SpecError",
    "StateError",
    "TensorError",
    "TerminalError",
    "TileRoomError",
    "TilewrightError",
    "TimeLimitError",
    "UnitError",
    "UnknownAttributeError",
    "UnknownImportError",
    "UsageError",
    "meant",
)


def meant(word: object, known: Iterable[str], otherwise: str, *, most: int = 1) -> str:
    """Ask whether an unknown word means one that it is like, as what to do; else ``otherwise``.

    >>> meant("softmx", ["matmul", "softmax"], "run: tilewright list")
    "did you mean 'softmax'?"
    """
    near = get_close_matches(str(word), known, n=most)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else otherwise


@dataclass(eq=False, repr=False)
class TilewrightError(Exception):
    """Says where, what was found, what was expected and what to do.

    >>> print(TilewrightError("cube.hbm", "0 channels", "at least one", "set pseudo_channels"))
    cube.hbm: found 0 channels, expected at least one; set pseudo_channels
    """

    where: str
    found: str
    expected: str
    fix: str

    def __post_init__(self) -> None:
        super().__init__(*(getattr(self, each.name) for each in fields(self)))  # so it pickles

    def __str__(self) -> str:
        return f"{self.where}: found {self.found}, expected {self.expected}; {self.fix}"

    @property
    def problems(self) -> "tuple[TilewrightError, ...]":
        """The mistakes that this error stands for, one by one: itself, unless it joins several."""
        return (self,)


class SpecError(TilewrightError):
    """A file or value that describes something is wrong."""


class UnitError(TilewrightError):
    """A time, size or rate that is no exact integer quantity."""


class EngineError(TilewrightError):
    """Wrong use of the event engine."""


@dataclass(eq=False, repr=False)
class DeadlockError(EngineError):
    """Events ran out while someone waits."""

    waiters: tuple[str, ...] = ()
    cycle: tuple[str, ...] = ()


class ServerError(EngineError):
    """A server written in Python raised or returned nonsense."""


class TimeLimitError(EngineError):
    """A simulated time of 2^62 picoseconds or more, or a sum of times beyond int64."""


class DeviceError(TilewrightError):
    """A program asks of the hardware what it cannot do."""


@dataclass(eq=False, repr=False)
class AddressError(DeviceError):
    """An access to bytes that a PE does not see. Says also which PE, kernel and line did it."""

    address: int = 0  # the first byte of the access that the PE does not see
    pe: str = ""
    kernel: str = ""
    line: str = ""

    def located(self, *, kernel: str, line: str, address: int | None = None) -> Self:
        """Return the error with the kernel's name and line, which an MMU does not know."""
        at = self.address if address is None else address
        where = f"{line}, kernel {kernel!r} on {self.pe}, address {at:#x}"
        parts = (self.found, self.expected, self.fix)
        return self._with_notes(type(self)(where, *parts, at, self.pe, kernel, line))

    def explained(self, found: str, expected: str, fix: str) -> Self:
        """Return the error in terms of tensors, which a page table does not know."""
        who = (self.address, self.pe, self.kernel, self.line)
        return self._with_notes(type(self)(self.where, found, expected, fix, *who))

    def _with_notes(self, error: Self) -> Self:
        for note in getattr(self, "__notes__", ()):
            error.add_note(note)
        return error


class PageFaultError(AddressError):
    """An access to an address that no page maps."""


@dataclass(eq=False, repr=False)
class MemoryAccessError(TilewrightError):
    """An access outside a memory. Says also where it began, how far it reached, what there is."""

    address: int = 0
    num_bytes: int = 0
    capacity_bytes: int = 0


class AllocationError(TilewrightError):
    """Space that is not there to be taken, or was not taken as it is given back."""


class OutOfMemoryError(AllocationError):
    """No hole is large enough. ``where`` names the memory, ``found`` who asked for how much."""


class KernelError(TilewrightError):
    """A kernel says what has no meaning. ``where`` begins with the op."""


class KernelTypeError(KernelError):
    """Operands whose dtypes or shapes do not fit the op."""


class TileRoomError(KernelError):
    """A tile or result that the TCM or the registers of a PE have no room for."""


class LaunchEndedError(KernelError):
    """A launch whose programs an error has ended: their own, or that of another launch."""


class MessageError(KernelError):
    """Messages that programs of a launch have sent and none has received when all have ended."""


class LimitError(TilewrightError):
    """A run that goes beyond a limit on programs, commands, events or simulated time."""


class PlacementError(TilewrightError):
    """A tensor that cannot lie in the machine as its policy says."""


class TensorError(TilewrightError):
    """Wrong use of a tensor: freed, of another shape or dtype, without values."""


class RequestError(TilewrightError):
    """A request to a machine that failed, or that cannot be made."""


@dataclass(eq=False, repr=False)
class SanitizerError(TilewrightError):
    """Accesses to memory that are wrong, though the run went on. Says also what each one is."""

    findings: tuple[object, ...] = ()  # of memory.sanitizer_finding


class CollectiveError(TilewrightError):
    """A collective that cannot be: its group, plan, rings or tensors."""


class RecordError(TilewrightError):
    """A record that cannot be written, read or trusted."""


class AttentionError(TilewrightError):
    """Wrong use of an attention session."""


class PagingError(AttentionError):
    """Requests or pages that are not there, or too few of them."""


class PlanError(AttentionError):
    """A budget or a plan that cannot be kept."""


class ModelError(TilewrightError):
    """A model that cannot be found, loaded or run."""


class ModelFileError(ModelError):
    """A model file that is damaged, foreign or hostile."""


class RegistryError(TilewrightError):
    """Two owners for one name, or no owner at all."""


class UnknownAttributeError(RegistryError, AttributeError):
    """A name that a module of a foreign package does not have here."""


class UnknownImportError(RegistryError, ModuleNotFoundError):
    """An import of a module or name that a foreign package does not have here."""


class CodeRefusedError(TilewrightError):
    """Code of a file, or a module that a file names, where the user lets none run."""


class MissingExtraError(TilewrightError):
    """A library of an optional extra is not installed; names the extra."""

    def __init__(self, where: str, library: str, extra: str) -> None:
        fix = f"run: pip install --editable '.[{extra}]' in the checkout"
        if extra == "bench":
            fix += ", or make bench"
        super().__init__(where, f"no library {library!r}", f"the extra {extra!r} installed", fix)
        self.args = (where, library, extra)
        self.library = library
        self.extra = extra


@dataclass(eq=False, repr=False)
class FlowError(TilewrightError):
    """A sparse-attention flow is wrong. Says also in which flow, method and line, at which op."""

    flow: str = ""
    method: str = ""
    source: str = ""
    op: str = ""
    operand: str = ""

    def located(self, *, flow: str, method: str, source: str) -> Self:
        """Return the error with flow, method and line in front, or itself if it has them."""
        if self.flow:
            return self
        where = self.where.removeprefix(f"{source}, ")  # an op object knows its line already
        place = ", ".join(filter(None, (f"flow {flow!r}", method, source, where)))
        parts = (self.found, self.expected, self.fix)
        return type(self)(place, *parts, flow, method, source, self.op, self.operand)


class FlowLoadError(FlowError):
    """A flow file that cannot be read, imported or found by name."""


class FlowInitError(FlowError):
    """A flow class whose constructor or ``create_cache`` does not do."""


class OperandError(FlowError):
    """An op whose attributes or operands do not fit."""


class FieldError(FlowError):
    """A field that nobody declared, or that may not be declared."""


class StateError(FlowError):
    """State that is written twice, or in the wrong place."""


class TerminalError(FlowError):
    """No selection at the end of a flow, or more than one."""


class ForeignCallError(FlowError):
    """A value of a flow handed to torch, NumPy or plain Python."""


class GraphError(TilewrightError):
    """A graph that breaks a rule of graphs, or a text that is no graph."""


class CodegenError(TilewrightError):
    """A graph with an op or a size that cannot be put into kernels."""


class BenchError(TilewrightError):
    """A program of `run` that cannot be asked for so: its parameters, its file, the machine."""


class ProgramError(BenchError):
    """A program of the user's that fails by itself, told by his line."""


class UsageError(TilewrightError):
    """A command line that names no known command or option."""


class ProcessError(TilewrightError):
    """A process of a run that somebody ended: the user, or a system without memory."""


class HostMemoryError(TilewrightError):
    """More memory is needed than this computer has."""


class InterruptError(TilewrightError):
    """The user stopped the command."""


class InternalError(TilewrightError):
    """A broken rule of our own. ``found`` carries the state that breaks it."""

"""Statements of one kernel, with the indices and arguments that they turn out to need."""

import builtins
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.source.tree import Statement, code
from tilewright.attention.graph import Node, ValueType

ARGUMENTS: Mapping[str, str] = {
    "at_least": "int32 [rows]: candidates that the plan takes at least",
    "at_most": "int32 [rows]: and at most",
    "block_table": "integers: where the pages of a row lie in the pools",
    "by_mass": "int8 [rows]: whether the plan asks for a share",
    "first_reserved": "pages that every row reads at its beginning",
    "kept_pages": "int32 [requests]: pages whose state the last step wrote",
    "last_reserved": "and at its end",
    "layer": "number of the layer",
    "mass": "float64 [rows]: that share of the softmax over scores",
    "member_pages": "pages of a member, but for the last one of a row",
    "new_blocks": "integers [new pages]: where they lie in the pools",
    "new_pages": "int32 [new pages]: their logical positions",
    "new_tokens": "int32 [new pages]: tokens that are there",
    "num_blocks": "blocks of the pools",
    "num_kv_heads": "rows are requests times KV heads",
    "num_tokens_ptr": "int32 [requests]: tokens of each, the new one included",
    "reads_all": "int8 [rows]: whether the plan makes a row dense",
    "saved_pages": "int32 [rows]: pages from 0 on whose state earlier steps saved",
    "scale": "factor of logits",
    "state_pages": "int32 [rows]: pages from 0 on whose state this step advances",
    "step_ptr": "int32 [requests]: decode steps made before",
    "table_head": "and from a KV head to the next",
    "table_member": "and from a member to the next",
    "table_request": "entries of the table from a request to the next",
    "threshold": "float32 [rows]: between, those that score as much",
}
"""What arguments of a fixed meaning hold; those of a flow are told where they are needed."""


Names: TypeAlias = Mapping[Node, str]
"""Names of values in a kernel, or of their memory."""
Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """A value of the graph under its name in the kernel: a block [pages or 1, r, c], padded."""

    name: str
    type: ValueType

    @property
    def is_float(self) -> bool:
        return self.type.dtype.is_float

    def as_float(self) -> str:
        """Write the value in float32."""
        return self.name if self.is_float else f"{self.name}.to(tl.float32)"


@dataclass(slots=True)
class Body:
    """Grows by statements. ``page_tokens`` names the tokens of pages, if some may be missing."""

    page_tokens: str | None = None
    page_size: int = 1
    query_heads: int = 1
    exact: frozenset[int] = frozenset()  # sizes that need no padding, since no GPU runs the text
    statements: list[Statement] = field(default_factory=list)
    arguments: dict[str, str] = field(default_factory=dict)  # name to what it holds
    _taken: set[str] = field(default_factory=set)
    _indices: set[str] = field(default_factory=set)

    def need(self, argument: str, holds: str | None = None) -> str:
        """Take an argument; one of `ARGUMENTS` need not be told what it holds."""
        self.arguments.setdefault(argument, ARGUMENTS[argument] if holds is None else holds)
        self._taken.add(argument)
        return argument

    def need_all(self, *arguments: str) -> None:
        """Take several of `ARGUMENTS`."""
        for argument in arguments:
            self.need(argument)

    def new_name(self, wanted: str) -> str:
        """Take a free identifier that begins as asked for."""
        base = re.sub(r"\W", "_", wanted).strip("_") or "value"
        if keyword.iskeyword(base) or base in RESERVED:
            base += "_"
        name, number = base, 2
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._taken.add(name)
        return name

    def new_names(self, wanted: str) -> list[str]:
        """Take a free identifier for each word."""
        return [self.new_name(name) for name in wanted.split()]

    def add(self, source: str, *parts: Iterable[Statement], remark: str = "") -> None:
        """Append statements, see `code`."""
        self.statements += code(source, *parts, remark=remark)

    def set_new(self, wanted: str, expression: str) -> str:
        """Set a new variable; return its name."""
        name = self.new_name(wanted)
        self.add(f"{name} = {expression}")
        return name

    def index(self, axis: int, size: int) -> str:
        """Name positions along inner axis 1 or 2, a block that broadcasts."""
        place = "[None, :, None]" if axis == 1 else "[None, None, :]"
        name = f"{'row' if axis == 1 else 'column'}_of_{size}"
        return self.once(name, f"tl.arange(0, {self.extent(size)}){place}")

    def extent(self, size: int) -> int:
        """Return what an inner axis of that size is long in a block."""
        return size if size in self.exact else padded(size)

    def once(self, name: str, expression: str) -> str:
        """Set a value that all statements from here on have under this name."""
        if name not in self._indices:
            self._indices.add(name)
            self._taken.add(name)
            self.add(f"{name} = {expression}")
        return name

    def place(self, base: str, entry: str, shape: Shape, whole: Shape, skip: int = 0) -> str:
        """Return pointers to [r, c] of a ``whole`` entry, behind its first ``skip`` elements.

        Without an entry ``base`` is its beginning.
        """
        rows, columns = shape
        size, stride = whole[0] * whole[1], whole[1]
        parts = [base]
        if entry:
            parts.append(f"{entry} * {size}" if size > 1 else entry)
        if entry == "block" and size > 1:
            parts[-1] = self.once(f"block_of_{size}", parts[-1])  # pools of one width share it
        if skip:
            parts.append(str(skip))
        if rows > 1:
            factor = f" * {stride}" if stride > 1 else ""
            parts.append(f"{self.index(1, rows)}{factor}")
        if columns > 1:
            parts.append(self.index(2, columns))
        if rows == columns == 1 and entry not in ("page", "block"):
            parts.append("tl.zeros((1, 1, 1), tl.int32)")  # a block, as all values are
        return " + ".join(parts)

    def inside(self, shape: Shape) -> list[str]:
        """Return conditions that leave the padding of [r, c] out."""
        return [
            f"({self.index(axis, size)} < {size})"
            for axis, size in zip((1, 2), shape, strict=True)
            if self.extent(size) != size
        ]

    def kept(self, operand: Operand, axis: int, fill: str, text: str = "") -> str:
        """Put ``fill`` where an entry of the operand, or of a text like it, does not count."""
        size, limit = operand.type.shape[axis - 1], self.page_tokens
        if axis not in operand.type.token_axes or limit is None:
            limit = None if self.extent(size) == size else str(size)
        text = text or operand.name
        if limit is None:
            return text
        return f"tl.where({self.index(axis, size)} < {limit}, {text}, {fill})"

    def flat(self, shape: Shape, whole: Shape, skip: int) -> str:
        """Return flat positions of [r, c] in an entry that is ``whole``."""
        rows, columns = shape
        parts = [str(skip)] if skip or rows == columns == 1 else []
        if rows > 1:
            parts.append(f"{self.index(1, rows)} * {whole[1]}")
        if columns > 1:
            parts.append(self.index(2, columns))
        return " + ".join(parts)


def unpadded(*axes: tuple[str, int, int]) -> list[str]:
    """Return conditions that leave padding out, each of a name, its size and the padded one."""
    return [f"({name} < {size})" for name, size, extent in axes if size != extent]


def load_source(place: str, conditions: Sequence[str], other: str = "0") -> str:
    """Write a load; an element that a condition does not hold for is ``other``."""
    mask = f", mask={' & '.join(conditions)}, other={other}" if conditions else ""
    return f"tl.load({place}{mask})"


def store_source(place: str, value: str, conditions: Sequence[str]) -> str:
    """Write a store of the elements that the conditions hold for."""
    mask = f", mask={' & '.join(conditions)}" if conditions else ""
    return f"tl.store({place}, {value}{mask})"


RESERVED = frozenset(dir(builtins)) | {
    "block", "entry", "head", "num_full", "num_pages", "num_tokens", "page", "page_tokens",
    "request", "row", "saved_pages", "saved_stop", "state_pages", "state_stop", "there", "tl",
    "triton",
}  # fmt: skip
"""Names that a kernel has already, or that would hide what Python has."""


_SHORT_NAMES = {"ge_mm": "product", "max": "largest", "min": "smallest", "sum": "total"}


def name_values(nodes: Iterable[Node], body: Body) -> dict[Node, str]:
    """Name each node after its variable or its op, clear of the names that the body has already."""
    found: dict[Node, str] = {}
    for node in nodes:
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.op.name).lower()
        variable = getattr(node.op, "variable", None) or _SHORT_NAMES.get(words, words)
        found[node] = body.new_name(str(variable))
    return found


def remark_of(node: Node) -> str:
    """Return shape, element type and the author's line."""
    sizes = ", ".join([str(node.type.leading), *map(str, node.type.shape)])
    source = f", {node.source}" if node.source else ""
    return f"[{sizes}] {node.type.dtype.computed}{source}"

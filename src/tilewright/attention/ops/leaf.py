"""Where values come from: inputs, fields, state, parameters, constants."""

from dataclasses import dataclass
from typing import ClassVar

from tilewright.attention.graph import FORMAT, DType, Leading, Op, Scope, Side, Types, ValueType
from tilewright.attention.ops.example import Example
from tilewright.attention.ops.rule import settle_choice

INDEXER_ONLY = frozenset({Side.INDEXER})


@dataclass(frozen=True, slots=True)
class _Named(Op):
    """A leaf that stands for a variable of the graph."""

    variable: str

    def infer(self, _inputs: Types, scope: Scope) -> ValueType:
        found = scope.variables.get(self.variable)
        if found is None:
            known = ", ".join(scope.variables)
            raise self.refuse("", repr(self.variable), f"one of {known}", "declare it")
        return found


@dataclass(frozen=True, slots=True)
class Input(_Named):
    """What the model hands over at each step for each row: the query ``q`` [1, H, D], and whatever
    else a flow declares in ``create_inputs``.
    """

    sides: ClassVar[frozenset[Side]] = INDEXER_ONLY


@dataclass(frozen=True, slots=True)
class FieldRead(_Named):
    """A cache field [S, r, c]; on the cache side [1, r, c], the page at hand.

    On the cache side only ``k``, ``v`` or ``latent`` and fields that were written before can be
    read. Tokens that are not there yet read as 0.
    """

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        found = _Named.infer(self, inputs, scope)
        if found.format is FORMAT.SLOTTED:
            return found
        leading = Leading.PAGES if scope.side is Side.INDEXER else Leading.ONE
        tokens = (1,) if self.variable in scope.geometry.reserved_fields else ()
        return ValueType(FORMAT.PAGED, leading, found.shape, found.dtype, tokens)


@dataclass(frozen=True, slots=True)
class StateRead(_Named):
    """State [S, r, c] as the last step left it, wherever the read stands in the program.

    A request cache (SLOTTED) is [1, r, c]: one value for each row, 0 in the first step.
    """

    sides: ClassVar[frozenset[Side]] = INDEXER_ONLY

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        found = _Named.infer(self, inputs, scope)
        if found.format is FORMAT.SLOTTED:
            return found
        return ValueType(FORMAT.PAGED, Leading.PAGES, found.shape, found.dtype)


@dataclass(frozen=True, slots=True)
class ParameterRead(_Named):
    """The table of a learned parameter for the layer that runs."""


@dataclass(frozen=True, slots=True)
class Constant(Op):
    """One number for every row [1, 1, 1]: float32, int32 or bool as ``dtype`` says."""

    value: float
    dtype: DType = DType.FLOAT32

    def __post_init__(self) -> None:
        settle_choice(self, "dtype", DType)
        if self.dtype is not self.dtype.computed:
            raise self.refuse("", self.dtype, "float32, int32 or bool", "Cast the constant")
        if not self.dtype.is_float and self.value != int(self.value):
            raise self.refuse("", self.value, f"a whole number for {self.dtype}", "use float32")

    def infer(self, _inputs: Types, scope: Scope) -> ValueType:
        return scope.per_row((1, 1), self.dtype)


EXAMPLES = (
    Example(Input("q")),
    Example(FieldRead("centroids")),
    Example(FieldRead("k"), side=Side.CACHE),
    Example(StateRead("score")),
    Example(ParameterRead("param.W")),
    Example(Constant(0.5)),
)

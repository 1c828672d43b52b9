"""Where values come from: inputs, fields, state, parameters, constants, attention itself."""

from tilewright.attention.graph import (
    FORMAT,
    DType,
    Graph,
    Leading,
    Op,
    Scope,
    Side,
    Types,
    ValueType,
)
from tilewright.attention.ops.rule import INDEXER_ONLY


class _Named(Op):
    """A leaf that stands for a variable of the graph."""

    variable: str

    def infer(self, _inputs: Types, scope: Scope) -> ValueType:
        found = scope.variables.get(self.variable)
        if found is None:
            known = ", ".join(scope.variables)
            raise self.refuse("", repr(self.variable), f"one of {known}", "declare it")
        return found


class Input(_Named):
    """What the model hands over at each step for each row: the query ``q`` [1, H, D], and whatever
    else a flow declares in ``create_inputs``.
    """

    sides = INDEXER_ONLY


class FieldRead(_Named):
    """A cache field [S, r, c]; on the cache side [1, r, c], the page at hand.

    On the cache side only ``k``, ``v`` or ``latent`` and fields that were written before can be
    read. Tokens that are not there yet read as 0.
    """

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        found = super().infer(inputs, scope)
        if found.format is FORMAT.SLOTTED:
            return found
        leading = Leading.PAGES if scope.side is Side.INDEXER else Leading.ONE
        tokens = (1,) if self.variable in scope.geometry.reserved_fields else ()
        return ValueType(FORMAT.PAGED, leading, found.shape, found.dtype, tokens)


class StateRead(_Named):
    """State [S, r, c] as the last step left it, wherever the read stands in the program.

    A request cache (SLOTTED) is [1, r, c]: one value for each row, 0 in the first step.
    """

    sides = INDEXER_ONLY

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        found = super().infer(inputs, scope)
        if found.format is FORMAT.SLOTTED:
            return found
        return ValueType(FORMAT.PAGED, Leading.PAGES, found.shape, found.dtype)


class ParameterRead(_Named):
    """The table of a learned parameter for the layer that runs."""


class Constant(Op):
    """One number for every row [1, 1, 1]: float32, int32 or bool as ``dtype`` says."""

    value: float
    dtype: DType = DType.FLOAT32

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dtype is not self.dtype.computed:
            raise self.refuse("", self.dtype, "float32, int32 or bool", "Cast the constant")
        if not self.dtype.is_float and self.value != int(self.value):
            raise self.refuse("", self.value, f"a whole number for {self.dtype}", "use float32")

    def infer(self, _inputs: Types, scope: Scope) -> ValueType:
        return scope.per_row((1, 1), self.dtype)


class _Mass(Op):
    sides = INDEXER_ONLY

    def infer(self, _inputs: Types, scope: Scope) -> ValueType:
        return scope.per_page((1, scope.geometry.query_heads), DType.FLOAT32)


class AttentionMass(_Mass):
    """Probability mass that each page got in the attention of the last step, per query head:
    float32 [S, 1, H].

    The masses of one head add up to 1 over the pages that the last step read; a page that it did
    not read, and every page in the first step, has 0. With several branches the masses of each
    branch are added, weighted by nothing. Kept like state: private to the request.
    """


class PromptMass(_Mass):
    """Probability mass of each page summed over the last ``window`` queries of the prompt, each
    attending causally to the whole prompt, per query head: float32 [S, 1, H].

    Set once when the prompt is complete (prefill observation); pages that begin later have 0. A
    prompt shorter than ``window`` is observed whole.
    """

    minima = (("window", 1),)
    window: int


def wants_mass(graph: Graph) -> bool:
    """Return whether the flow reads what the last attention gave each page."""
    return any(isinstance(node.op, AttentionMass) for node in graph.nodes(Side.INDEXER))


def prompt_windows(graph: Graph) -> tuple[int, ...]:
    """Return the windows of prompt queries whose masses the flow reads, ascending."""
    ops = [node.op for node in graph.nodes(Side.INDEXER)]
    return tuple(sorted({op.window for op in ops if isinstance(op, PromptMass)}))


OPS = (Input, FieldRead, StateRead, ParameterRead, Constant)
OPS_OF_ATTENTION = (AttentionMass, PromptMass)

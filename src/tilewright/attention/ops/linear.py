"""Products of values."""

from tilewright.attention.graph import FORMAT, DType, Op, Scope, Side, Types, ValueType
from tilewright.attention.ops.rule import (
    INDEXER_ONLY,
    broadcast,
    lifted,
    need_float,
    need_format,
    need_number,
    need_shape,
    number_type,
)


class GeMM(Op):
    """``out[s, a, b] = sum_k y[s, a, k] * x[s, b, k]``, that is y x^T.

    x [., Nx, K] and y [., Ny, K] give [., Ny, Nx]: mind the order. A value per row meets every
    page of its row. Tokens that are not there are left out of a sum over tokens.

    With a parameter as y: W [Ny, K] gives [., Ny, Nx]; W [H, Ny, K] takes x [., H*Nx, K] head by
    head and gives [., H*Ny, Nx].
    """

    operands = ("x", "y")

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        x, y = inputs
        need_number(self, "x", x)
        if len(y.shape) == 3:
            return self._with_heads(x, y)
        need_number(self, "y", y)
        if x.shape[1] != y.shape[1]:
            fix = "the last axes are contracted; transpose or reduce one operand"
            raise self.refuse("y", y, f"a last axis of {x.shape[1]}, as x {x} has", fix)
        tokens = tuple(axis for axis, part in ((1, y), (2, x)) if 1 in part.token_axes)
        both = (x.with_shape(1, 1), y.with_shape(1, 1))
        result = broadcast(self, both, number_type(inputs))
        return result.with_shape(y.shape[0], x.shape[0], token_axes=tokens)

    def _with_heads(self, x: ValueType, y: ValueType) -> ValueType:
        heads, rows, width = y.shape
        if x.shape[0] % heads or x.shape[1] != width:
            expected = f"[., {heads} * Nx, {width}], rows of {heads} heads"
            raise self.refuse("x", x, expected, "reshape x, or use weights without heads")
        return lifted(x, DType.FLOAT32).with_shape(heads * rows, x.shape[0] // heads)


class Kron(Op):
    """Kronecker product along the axes in ``dim``; the other inner axis broadcasts.

    dim (1,): ``out[s, i*y1+j, d] = x[s, i, d] * y[s, j, d]``; dim (2,): ``out[s, c, k*y2+l] =
    x[s, c, k] * y[s, c, l]``; dim (1, 2): both.
    """

    operands = ("x", "y")
    dim: tuple[int, ...] = (1, 2)

    def __post_init__(self) -> None:
        if not self.dim or set(self.dim) - {1, 2} or len(set(self.dim)) != len(self.dim):
            raise self.refuse("", f"dim={self.dim}", "1, 2 or both, each once", "name an axis")

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        x, y = inputs
        need_number(self, "x", x)
        need_number(self, "y", y)
        kept = inputs
        for axis in self.dim:
            kept = tuple(value.with_shape(*value.sizes_with(axis, 1)) for value in kept)
        result = broadcast(self, kept, number_type(inputs))
        for axis in self.dim:
            size = x.shape[axis - 1] * y.shape[axis - 1]
            result = result.with_shape(*result.sizes_with(axis, size))
        return result


class FactorScore(Op):
    """``out[s] = sum_h max_m <Wq[h]^T q[h], g[s, h*m_count + m]>``: float32 [S, 1, 1].

    q BATCHED [1, heads, d]; weights PARAMETER [heads, d, rank]; descriptors [S, heads *
    descriptors, rank].
    """

    operands = ("q", "weights", "descriptors")
    sides = INDEXER_ONLY
    heads: int
    descriptors: int
    rank: int

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        q, weights, descriptors = inputs
        need_float(self, "q", q)
        need_format(self, "q", q, FORMAT.BATCHED)
        need_format(self, "weights", weights, FORMAT.PARAMETER)
        fix = "heads, descriptors and rank of the op must fit all three"
        width, rows = q.shape[1], self.heads * self.descriptors
        need_shape(self, "q", q, (self.heads, width), fix)
        need_shape(self, "weights", weights, (self.heads, width, self.rank), fix)
        need_shape(self, "descriptors", descriptors, (rows, self.rank), fix)
        return scope.per_page((1, 1), DType.FLOAT32)


class LearnedDescriptor(Op):
    """``g[h*m_count + m, :] = (Wt[h]^T X) Wk[h]`` of a page X.

    float32 [1, heads * descriptors, rank].

    x [1, page size, d]; token_weights PARAMETER [heads, page size, descriptors]; key_weights
    PARAMETER [heads, d, rank].
    """

    operands = ("x", "token_weights", "key_weights")
    sides = frozenset({Side.CACHE})
    heads: int
    descriptors: int
    rank: int

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        x, token_weights, key_weights = inputs
        need_float(self, "x", x)
        fix = "heads, descriptors and rank of the op must fit the weights"
        tokens, width = x.shape
        need_format(self, "token_weights", token_weights, FORMAT.PARAMETER)
        token_shape = (self.heads, tokens, self.descriptors)
        need_shape(self, "token_weights", token_weights, token_shape, fix)
        need_format(self, "key_weights", key_weights, FORMAT.PARAMETER)
        need_shape(self, "key_weights", key_weights, (self.heads, width, self.rank), fix)
        return scope.per_page((self.heads * self.descriptors, self.rank), DType.FLOAT32)


OPS = (GeMM, Kron, FactorScore, LearnedDescriptor)

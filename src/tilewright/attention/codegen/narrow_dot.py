"""Products of queries and pages on a matrix unit, in the type that both are stored in."""

from tilewright.attention.codegen.body import Body, Operand, padded
from tilewright.attention.codegen.side import SideEmitter
from tilewright.attention.codegen.slice_loads import window_of
from tilewright.attention.graph import DType, Leading, Node
from tilewright.attention.ops import binary, layout, linear, reduce, unary

__all__ = ("dot_dtype", "dot_text", "narrow_type")

_NARROW = (DType.FLOAT16, DType.BFLOAT16)
_LEAST_CONTRACTED = 16  # below that a matrix unit has nothing to do


def dot_dtype(*dtypes: DType) -> DType:
    """What operands are multiplied in: a narrow type that holds all of them, else float32."""
    wide = {item for item in dtypes if item.bits > 8}
    if len(wide) == 1 and wide <= set(_NARROW) and all(item.is_float for item in dtypes):
        return wide.pop()
    return DType.FLOAT32


def narrow_type(node: Node) -> DType | None:
    """The narrow type that holds every value of a node exactly; None if there is none."""
    window = window_of(node)
    if window is not None:
        dtype = window.source.type.dtype
        return dtype if dtype in _NARROW else None
    match node.op:
        case unary.Relu(alpha=0.0, beta=0.0) | layout.Transpose() | reduce.Max() | reduce.Min():
            pass
        case unary.Add_Mul(alpha=0.0, beta=factor) | unary.Abs(alpha=0.0, beta=factor):
            if abs(factor) != 1.0:
                return None
        case binary.Maximum() | binary.Minimum():
            pass
        case _:
            return None
    found = {narrow_type(item) for item in node.inputs}
    return found.pop() if len(found) == 1 else None


def is_dot(node: Node) -> bool:
    """Whether a node is a product of one value per page and one per row."""
    if not isinstance(node.op, linear.GeMM):
        return False
    x, y = node.inputs
    leading = {item.type.leading is Leading.PAGES for item in node.inputs}
    floats = x.type.dtype.is_float and y.type.dtype.is_float
    sizes = len(y.type.shape) == 2 and x.type.shape[1] >= _LEAST_CONTRACTED
    return len(leading) == 2 and floats and sizes


def dot_text(node: Node, emitter: SideEmitter, stored: dict[Node, str], tile: int) -> str | None:
    """``out[s, a, b] = sum_k y[s, a, k] x[s, b, k]`` as a product of matrices; None for others.

    ``stored`` has the names of values per page as memory had them.
    """
    if not is_dot(node):
        return None
    x, y = node.inputs
    swapped = x.type.leading is Leading.PAGES
    pages, row = (x, y) if swapped else (y, x)
    operands = {item: emitter.value(item) for item in (x, y)}
    narrow = narrow_type(pages) if narrow_type(pages) is narrow_type(row) else None
    body, contracted = emitter.body, padded(x.type.shape[1])
    rows = padded(pages.type.shape[0])
    left = _operand(pages, operands[pages], narrow, stored, body)
    right = _operand(row, operands[row], narrow, stored, body)
    left = f"tl.reshape({left}, ({tile * rows}, {contracted}))"
    turned = body.new_name(f"{operands[row].name}_turned")  # ahead of the loop over pages
    right = f"tl.reshape({right}, ({padded(row.type.shape[0])}, {contracted}))"
    body.add(f"{turned} = tl.trans({right})")
    precision = "" if narrow else ', input_precision="ieee"'
    product = f"tl.dot({left}, {turned}{precision})"
    shape = (tile, rows, padded(row.type.shape[0]))
    found = f"tl.reshape({product}, {shape})"
    return f"tl.permute({found}, (0, 2, 1))" if swapped else found


def _operand(
    node: Node, operand: Operand, narrow: DType | None, stored: dict[Node, str], body: Body
) -> str:
    """The operand with zeros where its last axis is padding, in the narrow type if there is one."""
    if narrow is not None and node in stored:
        return stored[node]  # padding was loaded as a finite number, and meets zeros of the other
    text = body.kept(operand, 2, "0")
    return text if narrow is None else f"({text}).to(tl.{narrow})"

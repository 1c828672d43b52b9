"""Products of queries and pages on a matrix unit, in the type that both are stored in."""

from collections.abc import Sequence

from tilewright.attention.codegen.expression.elementwise import ELEMENTWISE
from tilewright.attention.codegen.expression.inner import REDUCTIONS
from tilewright.attention.codegen.expression.memory import ROUNDINGS, converted
from tilewright.attention.codegen.expression.side import SideEmitter
from tilewright.attention.codegen.plan.slice_loads import window_of
from tilewright.attention.graph import DType, Leading, Node, walk
from tilewright.attention.ops import binary, layout, linear, reduce, unary

_NARROW = (DType.FLOAT16, DType.BFLOAT16)
_SPLIT = 4  # parts of a float32, the last of them 0: blocks are powers of two
_LEAST_CONTRACTED = 16  # below that a matrix unit has nothing to do


def dot_dtype(*dtypes: DType) -> DType:
    """Return what operands are multiplied in: a narrow type that holds all, else float32."""
    wide = {item for item in dtypes if item.bits > 8}
    if len(wide) == 1 and wide <= set(_NARROW) and all(item.is_float for item in dtypes):
        return wide.pop()
    return DType.FLOAT32


def narrow_type(node: Node) -> DType | None:
    """Return the narrow type that holds every value of a node exactly; None if there is none."""
    window = window_of(node)
    if window is not None:
        dtype = window.source.type.dtype
        if dtype in ROUNDINGS:
            return DType.BFLOAT16  # which has every float of one byte
        return dtype if dtype in _NARROW else None
    match node.op:
        case (
            unary.Relu(alpha=0.0, beta=0.0)
            | unary.Add_Mul(alpha=0.0, beta=1.0 | -1.0)
            | unary.Abs(alpha=0.0, beta=1.0 | -1.0)
            | (layout.Transpose() | reduce.Max() | reduce.Min())
            | (binary.Maximum() | binary.Minimum())
        ):
            found = {narrow_type(item) for item in node.inputs}
            return found.pop() if len(found) == 1 else None
    return None


def is_dot(node: Node) -> bool:
    """Tell whether a node is a product of one value per page and one per row."""
    if not isinstance(node.op, linear.GeMM):
        return False
    x, y = node.inputs
    leading = {item.type.leading is Leading.PAGES for item in node.inputs}
    floats = x.type.dtype.is_float and y.type.dtype.is_float
    sizes = len(y.type.shape) == 2 and x.type.shape[1] >= _LEAST_CONTRACTED
    return len(leading) == 2 and floats and sizes


def dot_source(node: Node, emitter: SideEmitter, stored: dict[Node, str], tile: int) -> str | None:
    """Write ``out[s, a, b] = sum_k y[s, a, k] x[s, b, k]`` as a matrix product; None for others.

    ``stored`` has the names of values per page as memory had them.
    """
    if not is_dot(node):
        return None
    x, y = node.inputs
    swapped = x.type.leading is Leading.PAGES
    pages, row = (x, y) if swapped else (y, x)
    operands = {item: emitter.value(item) for item in (x, y)}
    narrow, body = narrow_type(pages), emitter.body
    contracted, rows, columns = (
        body.extent(size) for size in (x.type.shape[1], pages.type.shape[0], row.type.shape[0])
    )
    name, right, unit = operands[row].name, body.kept(operands[row], 2, "0"), ""
    if narrow is not None and narrow_type(row) is not narrow:
        parts_name, unit = body.new_names(f"{name}_parts {name}_unit")
        body.add(f"{parts_name}, {unit} = {narrow}_parts({right})")
        right = parts_name
    elif narrow is not None:
        right = f"({right}).to(tl.{narrow})"
    parts = _SPLIT if unit else 1
    right = f"tl.trans(tl.reshape({right}, ({parts * columns}, {contracted})))"
    turned = body.set_new(f"{name}_turned", right)  # ahead of the loop over pages
    window = window_of(pages)
    if narrow is not None and window is not None and pages in stored:
        # padding was loaded as a finite number, and meets zeros of the row
        left = converted(stored[pages], window.source.type.dtype, narrow)
    else:
        left = body.kept(operands[pages], 2, "0")
        left = left if narrow is None else f"({left}).to(tl.{narrow})"
    precision = "" if narrow else ', input_precision="ieee"'
    found = f"tl.dot(tl.reshape({left}, ({tile * rows}, {contracted})), {turned}{precision})"
    if unit:
        found = f"tl.sum(tl.reshape({found}, ({tile * rows}, {parts}, {columns})), 1)"
    found = f"tl.reshape({found}, ({tile}, {rows}, {columns}))"
    found = f"{found} * {unit}" if unit else found
    return f"tl.permute({found}, (0, 2, 1))" if swapped else found


def exact_widths(wanted: Sequence[Node]) -> frozenset[int]:
    """Find sizes that products with queries contract, and that all values on the way can have.

    A latent has 576 channels: padded to 1024 it would take twice the room, and a product twice the
    time.
    """
    nodes = list(walk(wanted))
    widths = {node.inputs[0].type.shape[1] for node in nodes if is_dot(node)}
    padded_widths = {width for node in nodes if not _keeps(node) for width in node.type.shape}
    return frozenset(width for width in widths - padded_widths if width & (width - 1))


def _keeps(node: Node) -> bool:
    """Tell whether the source of a node takes any extent of its axes."""
    window = window_of(node)
    if window is not None:
        return window.source.type.dtype is not DType.INT4
    return type(node.op) in ELEMENTWISE or type(node.op) in REDUCTIONS or is_dot(node)

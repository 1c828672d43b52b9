"""What ``create_cache`` and ``create_request_cache`` may say about a field."""

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.attention.graph import FORMAT, DType, Geometry, Inherit, Leading, ValueType
from tilewright.attention.utils import resolve_dtype
from tilewright.errors import FieldError, FlowInitError, SpecError

RESERVED_NAMES = frozenset({"k", "v", "kv_c", "k_pe", "latent", "q"})


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A field with more than a shape: element type, value before the first write, inheritance.

    ``dtype`` None is the intermediate dtype of the flow. ``inherit`` matters for state: whether a
    request finds the initial value in pages that it shares, or a copy of what was there.
    """

    shape: tuple[int, int]
    dtype: object = None
    initial: float = 0.0
    inherit: str = Inherit.INITIAL

    def value_type(self, geometry: Geometry, *, of_request: bool = False) -> ValueType:
        """Return the type per page, or SLOTTED of what a request in flight has once."""
        dtype = geometry.field_dtype if self.dtype is None else resolve_dtype(self.dtype)
        if of_request:
            return ValueType(FORMAT.SLOTTED, Leading.ONE, self.shape, dtype)
        return ValueType(FORMAT.PAGED, Leading.PAGES, self.shape, dtype)


def parse_fields(declared: object, method: str = "create_cache") -> dict[str, FieldSpec]:
    """Check the result of ``create_cache`` or ``create_request_cache``.

    A field is a shape ``(rows, columns)``, a shape and an element type ``((rows, columns),
    torch.bfloat16)``, or a `FieldSpec`. Raises errors without a place.
    """
    if not isinstance(declared, Mapping):
        found = f"a {type(declared).__name__}"
        fix = 'return {"centroids": (1, head_dim)}, or {} for no fields'
        raise FlowInitError(method, found, "a dict of names and shapes", fix)
    return {name: _parse_field(method, name, value) for name, value in declared.items()}


def check_disjoint(fields: Mapping[str, FieldSpec], requested: Mapping[str, FieldSpec]) -> None:
    """Refuse a name that both methods declare."""
    for name in requested:
        if name in fields:
            found = f"a field {name!r}, which create_cache declares too"
            raise FieldError("create_request_cache", found, "a new name", "rename one of them")


def _parse_field(method: str, name: object, value: object) -> FieldSpec:
    if not isinstance(name, str) or not name.isidentifier():
        raise FieldError(method, f"the name {name!r}", "an identifier", "rename it")
    if name in RESERVED_NAMES:
        found, expected = f"a field {name!r}", "a name of your own"
        raise FieldError(method, found, expected, "keys and values are there already")
    where = f"{method}, field {name!r}"
    spec = value if isinstance(value, FieldSpec) else _typed(where, value)
    return FieldSpec(_shape(where, spec.shape), spec.dtype, float(spec.initial), _inherit(spec))


def _typed(where: str, value: object) -> FieldSpec:
    """Read ``(rows, columns)`` or ``((rows, columns), dtype)``."""
    pair = isinstance(value, tuple | list) and len(value) == 2
    if not pair or not isinstance(value[0], tuple | list):  # type: ignore[index]
        return FieldSpec(value)  # type: ignore[arg-type]  # the shape is checked next
    try:
        return FieldSpec(value[0], resolve_dtype(value[1]))  # type: ignore[index,arg-type]
    except SpecError as error:
        raise FieldError(
            where, f"the element type {error.found}", error.expected, error.fix
        ) from None


def _shape(where: str, value: object) -> tuple[int, int]:
    whole = isinstance(value, tuple | list) and all(
        isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in value
    )
    if not whole or len(value) != 2:  # type: ignore[arg-type]
        expected, fix = (
            "two sizes of at least 1",
            "return (rows, columns), or ((rows, columns), dtype)",
        )
        raise FieldError(where, repr(value), expected, fix)
    return (value[0], value[1])  # type: ignore[index]


def _inherit(spec: FieldSpec) -> Inherit:
    if spec.inherit not in list(Inherit):
        expected = f"one of {', '.join(Inherit)}"
        raise FieldError("FieldSpec", f"inherit={spec.inherit!r}", expected, "change it")
    return Inherit(spec.inherit)


def num_bytes(spec: FieldSpec, dtype: DType) -> int:
    rows, columns = spec.shape
    return -(-rows * columns * dtype.bits // 8)

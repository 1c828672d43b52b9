"""What ``create_cache`` may say about a field."""

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.attention.graph import FORMAT, DType, Geometry, Inherit, Leading, ValueType
from tilewright.attention.utils import resolve_dtype
from tilewright.errors import FieldError, FlowInitError

__all__ = ("FieldSpec", "parse_fields")

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

    def value_type(self, geometry: Geometry) -> ValueType:
        dtype = geometry.field_dtype if self.dtype is None else resolve_dtype(self.dtype)
        return ValueType(FORMAT.PAGED, Leading.PAGES, self.shape, dtype)


def parse_fields(declared: object) -> dict[str, FieldSpec]:
    """The result of ``create_cache``, checked. Raises errors without a place."""
    if not isinstance(declared, Mapping):
        found = f"a {type(declared).__name__}"
        fix = 'return {"centroids": (1, head_dim)}, or {} for no fields'
        raise FlowInitError("create_cache", found, "a dict of names and shapes", fix)
    return {name: _parse_field(name, value) for name, value in declared.items()}


def _parse_field(name: object, value: object) -> FieldSpec:
    if not isinstance(name, str) or not name.isidentifier():
        raise FieldError("create_cache", f"the name {name!r}", "an identifier", "rename it")
    if name in RESERVED_NAMES:
        found, expected = f"a field {name!r}", "a name of your own"
        raise FieldError("create_cache", found, expected, "keys and values are there already")
    spec = value if isinstance(value, FieldSpec) else FieldSpec(_shape(name, value))
    return FieldSpec(_shape(name, spec.shape), spec.dtype, float(spec.initial), _inherit(spec))


def _shape(name: str, value: object) -> tuple[int, int]:
    whole = isinstance(value, tuple | list) and all(
        isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in value
    )
    if not whole or len(value) != 2:  # type: ignore[arg-type]
        where, found = f"create_cache, field {name!r}", repr(value)
        raise FieldError(where, found, "two sizes of at least 1", "return (rows, columns)")
    return (value[0], value[1])  # type: ignore[index]


def _inherit(spec: FieldSpec) -> Inherit:
    if spec.inherit not in list(Inherit):
        expected = f"one of {', '.join(Inherit)}"
        raise FieldError("FieldSpec", f"inherit={spec.inherit!r}", expected, "change it")
    return Inherit(spec.inherit)


def num_bytes(spec: FieldSpec, dtype: DType) -> int:
    rows, columns = spec.shape
    return -(-rows * columns * dtype.bits // 8)

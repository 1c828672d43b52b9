"""What an author of a flow derives from: `vFlow`, `vFlowMLA`, and the fields that they declare."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright.attention.graph import (
    FORMAT,
    DType,
    FlowKind,
    Geometry,
    Inherit,
    Leading,
    ValueType,
)
from tilewright.attention.utils import resolve_dtype
from tilewright.errors import FieldError, FlowInitError, SpecError

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

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


def _parse_field(method: str, name: object, value: object) -> FieldSpec:
    if not isinstance(name, str) or not name.isidentifier():
        raise FieldError(method, f"the name {name!r}", "an identifier", "rename it")
    if name in RESERVED_NAMES:
        found, expected = f"a field {name!r}", "a name of your own"
        raise FieldError(method, found, expected, "keys and values are there already")
    where = f"{method}, field {name!r}"
    spec = value if isinstance(value, FieldSpec) else _typed(where, value)
    shape = _shape(where, spec.shape)
    if spec.inherit not in list(Inherit):
        expected = f"one of {', '.join(Inherit)}"
        raise FieldError("FieldSpec", f"inherit={spec.inherit!r}", expected, "change it")
    return FieldSpec(shape, spec.dtype, float(spec.initial), Inherit(spec.inherit))


def _typed(where: str, value: object) -> FieldSpec:
    """Read ``(rows, columns)`` or ``((rows, columns), dtype)``."""
    pair = isinstance(value, tuple | list) and len(value) == 2
    if not pair or not isinstance(value[0], tuple | list):  # type: ignore[index]
        return FieldSpec(value)  # type: ignore[arg-type]  # the shape is checked next
    try:
        return FieldSpec(value[0], resolve_dtype(value[1]))  # type: ignore[index,arg-type]
    except SpecError as error:
        found = f"the element type {error.found}"
        raise FieldError(where, found, error.expected, error.fix) from None


def _shape(where: str, value: object) -> tuple[int, int]:
    whole = isinstance(value, tuple | list) and all(
        isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in value
    )
    if not whole or len(value) != 2:  # type: ignore[arg-type]
        fix = "return (rows, columns), or ((rows, columns), dtype)"
        raise FieldError(where, repr(value), "two sizes of at least 1", fix)
    return (value[0], value[1])  # type: ignore[index]


MetaInfo = dict[str, tuple[tuple[int, int], DType]]


class FlowBase(ABC):
    """What flows of both kinds have. Attributes are None until ``initialize``."""

    kind: ClassVar[FlowKind]
    partial_pages: bool = False
    """True asks for summaries of the unfinished last page too, kept up to date token by token."""

    block_size: int | None = None
    kv_cache_dtype: DType | None = None
    q_data_type: DType | None = None
    intermediate_dtype: DType | None = None
    cache_meta_info: MetaInfo | None = None
    token_ratio: float | None = None
    field_specs: dict[str, FieldSpec] | None = None
    request_specs: dict[str, FieldSpec] | None = None
    request_cache_meta_info: MetaInfo | None = None

    def create_inputs(self) -> dict[str, tuple[int, int]]:
        """Names and shapes of what the model hands over at each step, beside ``q``."""
        return {}

    def forward_cache(self, cache: Any, loc: Any, ctx: Any) -> None:
        """Fill the fields of the page that is complete. A flow without fields needs none."""
        del cache, loc, ctx

    @abstractmethod
    def forward_indexer(self, q: Any, o: Any, cache: Any, ctx: Any) -> None:
        """Score pages, and end in exactly one selection."""

    initialize: Callable[..., None]

    def initialize_for(self, geometry: Geometry) -> None:
        """Call ``initialize`` with the sizes of a geometry."""
        latent = (geometry.value_dim, geometry.rope_dim)
        widths = latent if self.kind is FlowKind.MLA else (geometry.key_dim,)
        dtypes = (geometry.kv_dtype, geometry.query_dtype, geometry.field_dtype)
        self.initialize(geometry.page_size, *widths, *dtypes)

    def get_cache_meta_info(self) -> MetaInfo:
        """Every field with its inner shape and element type, k and v (or latent) included."""
        return dict(self.cache_meta_info or {})

    def get_request_cache_meta_info(self) -> MetaInfo:
        """Return what a request in flight has once: inner shapes and element types by name."""
        return dict(self.request_cache_meta_info or {})

    def get_token_ratio(self) -> float:
        """Bytes of all fields of a page, over those of its keys (GQA) or latents (MLA).

        Request caches do not count: they grow with requests, not with tokens.
        """
        return float(self.token_ratio or 0.0)

    def _settle(
        self,
        declared: object,
        reserved: dict[str, tuple[int, int]],
        *,
        requested: object,
        block_size: int,
        dtypes: tuple[object, object, object],
    ) -> None:
        """Keep the sizes, and derive what follows from them."""
        self.block_size = block_size
        self.kv_cache_dtype, self.q_data_type, self.intermediate_dtype = map(resolve_dtype, dtypes)
        self.field_specs = parse_fields(declared)
        self.request_specs = parse_fields(requested, "create_request_cache")
        for name in self.request_specs:
            if name in self.field_specs:
                found = f"a field {name!r}, which create_cache declares too"
                raise FieldError("create_request_cache", found, "a new name", "rename one of them")
        own = self._meta_info(self.field_specs)
        self.request_cache_meta_info = self._meta_info(self.request_specs)
        kept = {name: (shape, self.kv_cache_dtype) for name, shape in reserved.items()}
        self.cache_meta_info = kept | own
        bits = [rows * columns * dtype.bits for (rows, columns), dtype in (kept | own).values()]
        self.token_ratio = sum(bits) / bits[0]

    def _meta_info(self, specs: dict[str, FieldSpec]) -> MetaInfo:
        default = self.intermediate_dtype
        return {
            name: (spec.shape, resolve_dtype(default if spec.dtype is None else spec.dtype))
            for name, spec in specs.items()
        }


class vFlow(FlowBase):
    """A flow for one sequence and one KV head; the runtime replays it over all.

    ``q`` is [1, H, D]; a field of shape (r, c) is [S, r, c] in ``forward_indexer`` and [1, r, c] in
    ``forward_cache``.
    """

    kind = FlowKind.GQA
    head_dim: int | None = None

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, Any]:
        """Names and inner shapes (or `FieldSpec`) of the fields kept for each page."""
        return {}

    def create_request_cache(self, block_size: int, head_dim: int) -> dict[str, Any]:
        """Names and inner shapes of what each request in flight has once, SLOTTED."""
        return {}

    def initialize(
        self,
        block_size: int,
        head_dim: int,
        kv_cache_dtype: object,
        q_data_type: object,
        intermediate_dtype: object = DType.BFLOAT16,
    ) -> None:
        self.head_dim = head_dim
        reserved = {"k": (block_size, head_dim), "v": (block_size, head_dim)}
        dtypes = (kv_cache_dtype, q_data_type, intermediate_dtype)
        declared = self.create_cache(block_size, head_dim)
        requested = self.create_request_cache(block_size, head_dim)
        self._settle(declared, reserved, requested=requested, block_size=block_size, dtypes=dtypes)


class vFlowMLA(FlowBase):
    """One latent head for all query heads.

    ``cache["latent"]`` is [., block_size, kv_lora_rank + qk_rope_head_dim], laid out [kv_c | k_pe];
    ``q`` is the absorbed query [1, H, latent_dim], so that a dot product is the whole logit.
    """

    kind = FlowKind.MLA
    kv_lora_rank: int | None = None
    qk_rope_head_dim: int | None = None
    latent_dim: int | None = None

    def create_cache(
        self, block_size: int, kv_lora_rank: int, qk_rope_head_dim: int
    ) -> dict[str, Any]:
        """Names and inner shapes (or `FieldSpec`) of the fields kept for each page."""
        return {}

    def create_request_cache(
        self, block_size: int, kv_lora_rank: int, qk_rope_head_dim: int
    ) -> dict[str, Any]:
        """Names and inner shapes of what each request in flight has once, SLOTTED."""
        return {}

    def initialize(
        self,
        block_size: int,
        kv_lora_rank: int,
        qk_rope_head_dim: int,
        kv_cache_dtype: object,
        q_data_type: object,
        intermediate_dtype: object = DType.BFLOAT16,
    ) -> None:
        self.kv_lora_rank = kv_lora_rank
        self.qk_rope_head_dim = qk_rope_head_dim
        self.latent_dim = kv_lora_rank + qk_rope_head_dim
        dtypes = (kv_cache_dtype, q_data_type, intermediate_dtype)
        declared = self.create_cache(block_size, kv_lora_rank, qk_rope_head_dim)
        reserved = {"latent": (block_size, self.latent_dim)}
        requested = self.create_request_cache(block_size, kv_lora_rank, qk_rope_head_dim)
        self._settle(declared, reserved, requested=requested, block_size=block_size, dtypes=dtypes)

"""`vFlow`: the class that an author of grouped-query attention derives from."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from tilewright.attention.flow.field_spec import FieldSpec, check_disjoint, parse_fields
from tilewright.attention.graph import DType, FlowKind, Geometry
from tilewright.attention.utils import resolve_dtype

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

    @abstractmethod
    def initialize_for(self, geometry: Geometry) -> None:
        """Call ``initialize`` with the sizes of a geometry."""

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
        check_disjoint(self.field_specs, self.request_specs)
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
        del block_size, head_dim
        return {}

    def create_request_cache(self, block_size: int, head_dim: int) -> dict[str, Any]:
        """Names and inner shapes of what each request in flight has once, SLOTTED."""
        del block_size, head_dim
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

    def initialize_for(self, geometry: Geometry) -> None:
        dtypes = (geometry.kv_dtype, geometry.query_dtype, geometry.field_dtype)
        self.initialize(geometry.page_size, geometry.key_dim, *dtypes)


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
        del block_size, kv_lora_rank, qk_rope_head_dim
        return {}

    def create_request_cache(
        self, block_size: int, kv_lora_rank: int, qk_rope_head_dim: int
    ) -> dict[str, Any]:
        """Names and inner shapes of what each request in flight has once, SLOTTED."""
        del block_size, kv_lora_rank, qk_rope_head_dim
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

    def initialize_for(self, geometry: Geometry) -> None:
        dtypes = (geometry.kv_dtype, geometry.query_dtype, geometry.field_dtype)
        self.initialize(geometry.page_size, geometry.value_dim, geometry.rope_dim, *dtypes)

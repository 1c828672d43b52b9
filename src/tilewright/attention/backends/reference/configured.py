"""A session for a model, from the configuration of a serving engine."""

from contextlib import nullcontext

from tilewright.attention.backends.reference.session import Session
from tilewright.attention.backends.reference.spec import SessionSpec
from tilewright.attention.flow import ImportNames, build_vflow, trace_flow
from tilewright.attention.flow.config import VortexConfig, check_layers_skip
from tilewright.attention.graph import DType, Geometry
from tilewright.attention.passes import optimize_graph
from tilewright.attention.planner import plan_spec_of
from tilewright.attention.utils import resolve_dtype
from tilewright.errors import SpecError
from tilewright.models import MlaShape, ModelShape


def session_of_config(
    config: VortexConfig,
    shape: ModelShape,
    *,
    num_requests: int = 1,
    kv_dtype: DType = DType.BFLOAT16,
    namespace: str = "numpy",
    names: ImportNames = nullcontext,
) -> Session:
    """Build what a config asks for: its flow, traced for a model, with its plan and its pool.

    The pool has room for ``num_requests`` sequences of ``max_seq_lens`` tokens, by default of the
    model's context. Fields of the config that change nothing are in ``config.without_effect``.
    ``names`` are for the file ``module_path``, as in `load_flows`.
    """
    check_layers_skip(config, shape.layers)
    flow = build_vflow(config.module_name or "", None, config.module_path, names=names)
    geometry = _geometry(config, shape, kv_dtype)
    if flow.kind is not geometry.kind:
        where, found = "vortex config.module_name", f"the {flow.kind} flow {config.module_name!r}"
        fix = "choose another flow or model"
        raise SpecError(where, found, f"a flow of kind {geometry.kind}, as {shape.name} has", fix)
    page_size = config.page_size or config.block_size
    tokens = shape.context if config.max_seq_lens == -1 else config.max_seq_lens
    spec = SessionSpec(
        num_kv_heads=1 if isinstance(shape, MlaShape) else shape.kv_heads,
        num_pages=num_requests * -(-tokens // page_size),
        num_layers=shape.layers,
        blocks_per_page=page_size // config.block_size,
        scale=shape.attention_scale,
        plan=plan_spec_of(config),
        update_interval=config.update_interval,
    )
    return Session(
        optimize_graph(trace_flow(flow, geometry, name=config.module_name)),
        spec,
        namespace=namespace,
    )


def _geometry(config: VortexConfig, shape: ModelShape, kv_dtype: DType) -> Geometry:
    if isinstance(shape, MlaShape):
        return Geometry.mla(
            page_size=config.block_size,
            kv_lora_rank=shape.kv_lora_rank,
            qk_rope_head_dim=shape.qk_rope_head_dim,
            query_heads=shape.query_heads,
            kv_dtype=kv_dtype,
            field_dtype=resolve_dtype(config.dtype),
        )
    return Geometry.gqa(
        page_size=config.block_size,
        head_dim=shape.head_dim,
        query_heads=shape.group,
        kv_dtype=kv_dtype,
        field_dtype=resolve_dtype(config.dtype),
    )

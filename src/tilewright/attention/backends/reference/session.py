"""A session: requests that share a paged cache and are decoded under one flow."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext

from tilewright.attention.backends.reference.namespace import Array, load_namespace
from tilewright.attention.backends.reference.op import EVALUATORS
from tilewright.attention.backends.reference.op.frame import Counters, Evaluator
from tilewright.attention.backends.reference.shared import (
    RequestProgress,
    SessionSnapshot,
    SessionSpec,
    Shared,
    Suspended,
    request_error,
)
from tilewright.attention.backends.reference.step import Step
from tilewright.attention.backends.reference.store import PoolStore, kept_fields
from tilewright.attention.backends.reference.view import RowView
from tilewright.attention.flow import ImportNames, build_vflow, trace_flow
from tilewright.attention.flow.config import VortexConfig, check_layers_skip
from tilewright.attention.graph import DType, Geometry, Graph, Op
from tilewright.attention.paging import Admission, ExtendPlan, Pager, StateStore
from tilewright.attention.passes import optimize_graph
from tilewright.attention.planner import plan_spec_of
from tilewright.attention.utils import resolve_dtype
from tilewright.errors import SpecError, TilewrightError
from tilewright.models import MlaShape, ModelShape


class Session:
    """Executes a flow's graph on NumPy or torch. Results define what the flow means.

    A row's result depends on that row alone: not on batch mates, their order, physical pages, how a
    prompt was cut, or whether its prefix was found.
    """

    def __init__(
        self,
        graph: Graph,
        spec: SessionSpec,
        *,
        namespace: str = "numpy",
        page_order: Sequence[int] | None = None,
        evaluators: Mapping[type[Op], Evaluator] = EVALUATORS,
    ) -> None:
        paging = spec.paging(graph.geometry)
        arrays = load_namespace(namespace)
        self._shared = Shared(
            graph=graph,
            spec=spec,
            namespace=arrays,
            pager=Pager(paging, order=page_order),
            store=PoolStore(graph, paging, arrays, (spec.num_layers, spec.num_kv_heads)),
            state=StateStore(kept_fields(graph, arrays), namespace=arrays.xp),
            counters=Counters(),
            scale=spec.scale_for(graph.geometry),
            evaluators=evaluators,
        )

    @property
    def graph(self) -> Graph:
        """The flow that it executes."""
        return self._shared.graph

    @property
    def counters(self) -> Counters:
        return self._shared.counters

    @property
    def pager(self) -> Pager:
        """For reading: tables, free pages, integrity."""
        return self._shared.pager

    @property
    def store(self) -> PoolStore:
        """The arrays behind the pages."""
        return self._shared.store

    @property
    def state_bytes(self) -> int:
        """Bytes that are private to requests."""
        return self._shared.state.num_bytes

    def admit(self, request: str, tokens: Iterable[int]) -> Admission:
        """Open a request on its prompt. Tokens beyond ``hit_tokens`` go through `begin`."""
        admission = self._shared.pager.admit(request, tokens)
        self._shared.progress[request] = RequestProgress(0, admission.hit_tokens)
        return admission

    def begin(self, tokens: Mapping[str, Sequence[int]], *, prompt: bool = False) -> Step:
        """Start a step with new tokens of some requests: a piece of prompt, or decode."""
        shared = self._shared
        for request, added in tokens.items():
            shared.check_at_rest(request)
            if len(added) == 0:
                fix = "leave the request out"
                raise request_error(request, "no tokens", "one or more", fix)
        plans = self._extend_all(tokens)
        for plan in plans.values():
            if prompt:
                self._forget_running_state(plan)
            shared.store.make_ready(plan)
        return Step(shared, plans, prompt=prompt)

    def _extend_all(self, tokens: Mapping[str, Sequence[int]]) -> dict[str, ExtendPlan]:
        """Places for all new tokens; if one request finds no room, none of them has grown."""
        plans: dict[str, ExtendPlan] = {}
        try:
            for request, added in tokens.items():
                plans[request] = self._shared.pager.extend(request, added)
        except TilewrightError:
            for request, plan in plans.items():
                self._shared.store.make_ready(plan)  # a copied page is the request's from now on
                self._shared.pager.truncate(request, plan.first_token)
            raise
        return plans

    def fork(self, parent: str, child: str) -> None:
        """A second request with the parent's past: pages are shared, state is its own."""
        self._shared.check_at_rest(parent)
        self._shared.pager.fork(parent, child)
        self._shared.copy_request(parent, child)

    def rewind(self, request: str, num_tokens: int) -> None:
        """Take back the decode tokens from ``num_tokens`` on, with all that they changed."""
        self._shared.check_at_rest(request)
        table, progress = self._shared.pager.table(request), self._shared.progress[request]
        if not progress.first_decode <= num_tokens <= table.num_tokens:
            found = f"a rewind to token {num_tokens}"
            expected = f"{progress.first_decode}..{table.num_tokens}, the decoded ones"
            raise request_error(request, found, expected, "release it and admit it again")
        taken = table.num_tokens - num_tokens
        self._shared.rewind(request, num_tokens)
        self._shared.pager.truncate(request, num_tokens)
        self._shared.progress[request] = RequestProgress(
            progress.steps - taken, progress.first_decode
        )

    def release(self, request: str) -> None:
        """Close a request; its complete pages stay findable."""
        self._shared.pager.release(request)
        self._shared.forget(request)

    def suspend(self, request: str) -> Suspended:
        """Give back the pages of a request and return what it needs to come back."""
        self._shared.check_at_rest(request)
        progress = self._shared.progress[request]
        tokens = tuple(self._shared.pager.table(request).tokens)
        layers = dict(self._shared.state.take_request(request))
        self.release(request)
        return Suspended(tokens, layers, progress)

    def resume(self, request: str, suspended: Suspended) -> Admission:
        """Admit a suspended request again.

        The keys of the tokens beyond ``hit_tokens`` are written once more, as a prompt; then the
        request goes on with the state that it had.
        """
        admission = self.admit(request, suspended.tokens)
        self._shared.waiting[request] = suspended
        return admission

    def field(self, request: str, layer: int, name: str) -> Array:
        """A field of all pages of a request, computed: [heads, pages, r, c]."""
        return self._view(request, layer).field(name).whole()

    def state(self, request: str, layer: int, name: str) -> Array:
        """A state variable of all pages of a request: [heads, pages, r, c]."""
        return self._view(request, layer).state(name)

    def snapshot(self) -> SessionSnapshot:
        """Everything but the counters, between steps."""
        self._shared.check_at_rest()
        return self._shared.snapshot()

    def restore(self, snapshot: SessionSnapshot) -> None:
        """Go back to a snapshot of this session; the snapshot stays usable."""
        self._shared.restore(snapshot)

    def check_integrity(self) -> None:
        self._shared.pager.check_integrity()

    def _view(self, request: str, layer: int) -> RowView:
        table = self._shared.pager.table(request)
        blocks = self._shared.namespace.xp.asarray(table.block_ids())
        return RowView(self._shared, request, layer, blocks, table.num_tokens)

    def _forget_running_state(self, plan: ExtendPlan) -> None:
        """A piece of prompt completes pages without a step: their state starts afresh."""
        written = {write.target for write in self._shared.graph.field_writes}
        self._shared.state.truncate(plan.request, plan.first_full, frozenset(written))


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
    field_dtype = resolve_dtype(config.dtype)
    geometry = model_geometry(shape, config.block_size, kv_dtype=kv_dtype, field_dtype=field_dtype)
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
    graph = optimize_graph(trace_flow(flow, geometry, name=config.module_name))
    return Session(graph, spec, namespace=namespace)


def model_geometry(shape: ModelShape, page_size: int, **dtypes: DType) -> Geometry:
    """Return what a flow is traced for; ``dtypes`` are those of `Geometry`."""
    if isinstance(shape, MlaShape):
        return Geometry.mla(
            page_size=page_size,
            kv_lora_rank=shape.kv_lora_rank,
            qk_rope_head_dim=shape.qk_rope_head_dim,
            query_heads=shape.query_heads,
            **dtypes,
        )
    return Geometry.gqa(
        page_size=page_size, head_dim=shape.head_dim, query_heads=shape.group, **dtypes
    )

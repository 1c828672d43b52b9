"""A session: requests that share a paged cache and are decoded under one flow."""

from collections import deque
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
from tilewright.attention.paging import Admission, ExtendPlan, Pager, PagingSpec, StateStore
from tilewright.attention.passes import optimize_graph
from tilewright.attention.planner import plan_spec_of
from tilewright.attention.utils import resolve_dtype
from tilewright.errors import SpecError, TilewrightError
from tilewright.models import MlaShape, ModelShape


class Session(Shared):
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
        block_size = graph.geometry.page_size  # of the graph; pages of the pool have several
        paging = PagingSpec(
            num_pages=spec.num_pages,
            page_size=block_size * spec.blocks_per_page,
            block_size=block_size,
        )
        arrays = load_namespace(namespace)
        super().__init__(
            graph=graph,
            spec=spec,
            namespace=arrays,
            pager=Pager(paging, order=page_order),
            store=PoolStore(graph, paging, arrays, (spec.num_layers, spec.num_kv_heads)),
            kept=StateStore(kept_fields(graph, arrays), namespace=arrays.xp),
            counters=Counters(),
            scale=spec.scale_for(graph.geometry),
            evaluators=evaluators,
        )

    @property
    def state_bytes(self) -> int:
        """Bytes that are private to requests."""
        return self.kept.num_bytes

    def admit(self, request: str, tokens: Iterable[int]) -> Admission:
        """Open a request on its prompt. Tokens beyond ``hit_tokens`` go through `begin`."""
        admission = self.pager.admit(request, tokens)
        self.progress[request] = RequestProgress(0, admission.hit_tokens)
        return admission

    def begin(self, tokens: Mapping[str, Sequence[int]], *, prompt: bool = False) -> Step:
        """Start a step with new tokens of some requests: a piece of prompt, or decode."""
        for request, added in tokens.items():
            self.check_at_rest(request)
            if len(added) == 0:
                fix = "leave the request out"
                raise request_error(request, "no tokens", "one or more", fix)
        plans = self._extend_all(tokens)
        written = frozenset(write.target for write in self.graph.field_writes)
        for plan in plans.values():
            if prompt:  # completes pages without a step: their state starts afresh
                self.kept.truncate(plan.request, plan.first_full, written)
            self.store.make_ready(plan)
        return Step(self, plans, prompt=prompt)

    def _extend_all(self, tokens: Mapping[str, Sequence[int]]) -> dict[str, ExtendPlan]:
        """Places for all new tokens; if one request finds no room, none of them has grown."""
        plans: dict[str, ExtendPlan] = {}
        try:
            for request, added in tokens.items():
                plans[request] = self.pager.extend(request, added)
        except TilewrightError:
            for request, plan in plans.items():
                self.store.make_ready(plan)  # a copied page is the request's from now on
                self.pager.truncate(request, plan.first_token)
            raise
        return plans

    def fork(self, parent: str, child: str) -> None:
        """A second request with the parent's past: pages are shared, state is its own."""
        self.check_at_rest(parent)
        self.pager.fork(parent, child)
        self.kept.copy_request(parent, child)
        self.progress[child] = self.progress[parent]
        for name, layer in [key for key in self.journal if key[0] == parent]:
            entries = self.journal[name, layer]
            self.journal[child, layer] = deque(entries, maxlen=self.spec.rewind_window)

    def rewind(self, request: str, num_tokens: int) -> None:
        """Take back the decode tokens from ``num_tokens`` on, with all that they changed."""
        self.check_at_rest(request)
        table, progress = self.pager.table(request), self.progress[request]
        if not progress.first_decode <= num_tokens <= table.num_tokens:
            found = f"a rewind to token {num_tokens}"
            expected = f"{progress.first_decode}..{table.num_tokens}, the decoded ones"
            raise request_error(request, found, expected, "release it and admit it again")
        taken = table.num_tokens - num_tokens
        self.take_back(request, num_tokens)
        self.progress[request] = RequestProgress(progress.steps - taken, progress.first_decode)

    def release(self, request: str) -> None:
        """Close a request; its complete pages stay findable."""
        self.pager.release(request)
        self.kept.take_request(request)
        for by_request in (self.progress, self.waiting, self.open_steps):
            by_request.pop(request, None)
        for key in [key for key in self.journal if key[0] == request]:
            del self.journal[key]

    def suspend(self, request: str) -> Suspended:
        """Give back the pages of a request and return what it needs to come back."""
        self.check_at_rest(request)
        progress = self.progress[request]
        tokens = tuple(self.pager.table(request).tokens)
        layers = dict(self.kept.take_request(request))
        self.release(request)
        return Suspended(tokens, layers, progress)

    def resume(self, request: str, suspended: Suspended) -> Admission:
        """Admit a suspended request again.

        The keys of the tokens beyond ``hit_tokens`` are written once more, as a prompt; then the
        request goes on with the state that it had.
        """
        admission = self.admit(request, suspended.tokens)
        self.waiting[request] = suspended
        return admission

    def field(self, request: str, layer: int, name: str) -> Array:
        """A field of all pages of a request, computed: [heads, pages, r, c]."""
        return self._view(request, layer).field(name).whole()

    def state(self, request: str, layer: int, name: str) -> Array:
        """A state variable of all pages of a request: [heads, pages, r, c]."""
        return self._view(request, layer).state(name)

    def snapshot(self) -> SessionSnapshot:
        """Everything but the counters, between steps."""
        self.check_at_rest()
        return SessionSnapshot(
            self.pager.snapshot(),
            self.store.snapshot(),
            self.kept.snapshot(),
            dict(self.progress),
            {key: tuple(entries) for key, entries in self.journal.items()},
            dict(self.waiting),
        )

    def restore(self, snapshot: SessionSnapshot) -> None:
        """Go back to a snapshot of this session; the snapshot stays usable."""
        self.pager.restore(snapshot.pager)
        self.store.restore(snapshot.store)
        self.kept.restore(snapshot.state)
        for changing in (self.progress, self.waiting, self.open_steps, self.journal):
            changing.clear()
        self.progress.update(snapshot.progress)
        self.waiting.update(snapshot.waiting)
        for key, entries in snapshot.journal.items():
            self.journal[key] = deque(entries, maxlen=self.spec.rewind_window)

    def check_integrity(self) -> None:
        self.pager.check_integrity()

    def _view(self, request: str, layer: int) -> RowView:
        table = self.pager.table(request)
        blocks = self.namespace.xp.asarray(table.block_ids())
        return RowView(self, request, layer, blocks, table.num_tokens)


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
        num_kv_heads=shape.kv_heads,
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

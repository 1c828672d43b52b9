"""`check_engine_config`: everything that can be known about a config before an engine starts."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

from tilewright.attention.flow import FlowBase, ImportNames, build_vflow, trace_flow
from tilewright.attention.flow.config import (
    VortexConfig,
    check_layers_skip,
    normalize_vortex_config,
)
from tilewright.attention.graph import FORMAT, FlowKind, Geometry, Graph
from tilewright.attention.passes import optimize_graph
from tilewright.attention.utils import resolve_dtype
from tilewright.errors import SpecError, TilewrightError


class ConfigCheck(NamedTuple):
    """One check: its name, whether it holds, and what to do if not."""

    name: str
    ok: bool
    detail: str


class _Facts(NamedTuple):
    config: VortexConfig
    model: Mapping[str, Any]
    names: ImportNames

    def flow(self) -> FlowBase:
        name, file = self.config.module_name or "", self.config.module_path
        return build_vflow(name, None, file, names=self.names)

    def graph(self) -> Graph:
        flow, config, model = self.flow(), self.config, self.model
        is_mla = flow.kind is FlowKind.MLA
        value_dim = int(model.get("kv_lora_rank", 512) if is_mla else model.get("head_dim", 128))
        rope_dim = int(model.get("qk_rope_head_dim", 64)) if is_mla else 0
        geometry = Geometry(
            kind=flow.kind,
            page_size=config.block_size,
            query_heads=int(model.get("group_size", 4)),
            key_dim=value_dim + rope_dim,
            value_dim=value_dim,
            field_dtype=resolve_dtype(config.dtype),
        )
        return trace_flow(flow, geometry)


def check_engine_config(
    config: VortexConfig | Mapping[str, Any] | str,
    *,
    names: ImportNames = nullcontext,
    **model: Any,
) -> tuple[ConfigCheck, ...]:
    """All checks in order. The first one reads the config; if it fails, no other is made.

    ``model`` may say ``num_layers``, ``head_dim``, ``group_size``, ``max_seq_len``, and for MLA
    ``kv_lora_rank``, ``qk_rope_head_dim``; a check that needs what is not said uses common sizes.
    ``names`` are for the file ``module_path``, as in `load_flows`.
    """
    try:
        parsed = normalize_vortex_config(config)
    except TilewrightError as error:
        return (ConfigCheck("config", False, str(error)),)
    if parsed is None:
        return (ConfigCheck("config", True, "sparsity is switched off"),)
    facts = _Facts(parsed, model, names)
    read = ConfigCheck("config", True, f"hash {parsed.content_hash}")
    return (read, *(_made(name, check, facts) for name, check in _CHECKS))


def _made(name: str, check: "_Check", facts: _Facts) -> ConfigCheck:
    try:
        return ConfigCheck(name, True, check(facts))
    except TilewrightError as error:
        return ConfigCheck(name, False, str(error))


def _powers_of_two(facts: _Facts) -> str:
    """Kernels of Vortex's backends need them; the reference backend does not."""
    config = facts.config
    if "reference" in (config.attention_backend, config.impl_backend):
        return "any size does on the reference backend"
    sizes = {"block_size": config.block_size, "workload_chunk_size": config.workload_chunk_size}
    for name, size in sizes.items():
        if size & (size - 1):
            where, fix = f"vortex config.{name}", "use a power of two, or impl_backend reference"
            raise SpecError(where, str(size), "a power of two", fix)
    return "block_size and workload_chunk_size are powers of two"


def _page_size(facts: _Facts) -> str:
    config = facts.config
    ratio = (config.page_size or config.block_size) // config.block_size
    if config.workload_chunk_size % ratio:
        found, expected = str(config.workload_chunk_size), f"a multiple of {ratio} blocks of a page"
        raise SpecError("vortex config.workload_chunk_size", found, expected, "change one")
    return f"{ratio} blocks in a page"


def _reserved(facts: _Facts) -> str:
    config = facts.config
    return f"{config.block_reserved_bos} first and {config.block_reserved_eos} last pages"


def _budget(facts: _Facts) -> str:
    config = facts.config
    wanted = config.topk_val
    if config.max_topk_val is not None and config.max_topk_val < wanted:
        found, expected = str(config.max_topk_val), f"at least topk_val {wanted}"
        raise SpecError("vortex config.max_topk_val", found, expected, "raise it, or leave it out")
    total = wanted + config.block_reserved_bos + config.block_reserved_eos
    return f"{total} pages, {total * config.block_size} tokens"


def _layers(facts: _Facts) -> str:
    skipped = facts.config.layers_skip or ()
    num_layers = facts.model.get("num_layers")
    if num_layers is not None:
        check_layers_skip(facts.config, num_layers)
    if len(set(skipped)) == num_layers:
        found, fix = "every layer of the model", "skip fewer, or switch sparsity off"
        raise SpecError("vortex config.layers_skip", found, "a layer that is sparse", fix)
    return f"{len(set(skipped))} dense layers"


def _module(facts: _Facts) -> str:
    if facts.config.module_name is None:
        fix = "name a registered flow"
        raise SpecError("vortex config.module_name", "none", "the name of a flow", fix)
    return f"{facts.config.module_name} is a {facts.flow().kind} flow"


def _compiles(facts: _Facts) -> str:
    graph = optimize_graph(facts.graph())
    return f"{len(graph.fields)} fields, {len(graph.states)} states"


def _state(facts: _Facts) -> str:
    """Prefix reuse stays on for every flow; the graph says what is private."""
    kinds = [item.type for item in facts.graph().states]
    private = sum(kind.num_bytes for kind in kinds if kind.format is not FORMAT.SLOTTED)
    return f"prefix cache stays on; {private} bytes of state for each page and KV head of a request"


def _backend(facts: _Facts) -> str:
    config = facts.config
    mla = facts.flow().kind is FlowKind.MLA
    if config.attention_backend == "cuda_mla" and not mla:
        fix = "use flashinfer or trtllm"
        raise SpecError("vortex config.attention_backend", "cuda_mla", "one for GQA", fix)
    if config.attention_backend == "flashinfer" and mla:
        fix = "use cuda_mla, triton, trtllm or reference"
        raise SpecError("vortex config.attention_backend", "flashinfer", "one for MLA", fix)
    return config.attention_backend


def _without_effect(facts: _Facts) -> str:
    """Name what is accepted and changes nothing."""
    return ", ".join(facts.config.without_effect) or "none of the fields that are set"


_Check = Callable[[_Facts], str]
_CHECKS: tuple[tuple[str, _Check], ...] = (
    ("powers of two", _powers_of_two),
    ("page size", _page_size),
    ("reserved pages", _reserved),
    ("budget", _budget),
    ("dense layers", _layers),
    ("flow", _module),
    ("compiles", _compiles),
    ("state and prefix cache", _state),
    ("backend", _backend),
    ("without effect", _without_effect),
)

"""Which module and name of ours each module path and name of Vortex stands for."""

from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Never

import tilewright.attention.abs as our_abs
import tilewright.attention.cache as our_cache
import tilewright.attention.flow as our_flow
import tilewright.attention.flows as our_flows
import tilewright.attention.indexer as our_indexer
import tilewright.attention.utils as our_utils
import tilewright.attention.verify as our_verify
from tilewright.attention.abs import context_base, op, parameter, tensor
from tilewright.attention.cache import context as cache_context
from tilewright.attention.cache import (
    elementwise as cache_elementwise,
)
from tilewright.attention.cache import (
    elementwise_binary as cache_elementwise_binary,
)
from tilewright.attention.cache import (
    fill,
    learned_descriptor,
    reduce_interleave,
)
from tilewright.attention.cache import mask as cache_mask
from tilewright.attention.cache import matmul as cache_matmul
from tilewright.attention.cache import reduce as cache_reduce
from tilewright.attention.cache import reshape as cache_reshape
from tilewright.attention.flow import config, flow, flow_mla, loader, registry
from tilewright.attention.indexer import (
    context,
    elementwise,
    elementwise_binary,
    factor_score,
    kron,
    mask,
    matmul,
    metadata,
    output_func,
    reduce,
    reshape,
    save_load,
    scan,
    select,
    transpose,
)
from tilewright.errors import FlowLoadError
from tilewright.records import installed_version

__all__ = ("PACKAGE", "SUBMODULES", "package_names")

PACKAGE = "vortex_torch"

SUBMODULES: Mapping[str, ModuleType] = MappingProxyType(
    {
        "abs.context_base": context_base,
        "abs.op": op,
        "abs.tensor": tensor,
        "abs.parameter": parameter,
        "flow.flow": flow,
        "flow.flow_mla": flow_mla,
        "flow.registry": registry,
        "flow.loader": loader,
        "flow.verify": our_verify,
        "indexer.matmul": matmul,
        "indexer.reduce": reduce,
        "indexer.scan": scan,
        "indexer.transpose": transpose,
        "indexer.elementwise": elementwise,
        "indexer.elementwise_binary": elementwise_binary,
        "indexer.save_load": save_load,
        "indexer.mask": mask,
        "indexer.kron": kron,
        "indexer.reshape": reshape,
        "indexer.output_func": output_func,
        "indexer.select": select,
        "indexer.factor_score": factor_score,
        "indexer.context": context,
        "indexer.metadata": metadata,
        "cache.reduce": cache_reduce,
        "cache.reduce_interleave": reduce_interleave,
        "cache.matmul": cache_matmul,
        "cache.elementwise": cache_elementwise,
        "cache.elementwise_binary": cache_elementwise_binary,
        "cache.fill": fill,
        "cache.mask": cache_mask,
        "cache.reshape": cache_reshape,
        "cache.learned_descriptor": learned_descriptor,
        "cache.context": cache_context,
        "engine.sgl.config": config,
    }
)
"""Paths below the package that are modules of ours, the very same objects."""


def package_names() -> dict[str, dict[str, object]]:
    """Paths that are packages in Vortex, with the names that they have there, and ours."""
    verify = _public(our_verify)
    return {
        "": {
            "Parameter": our_abs.Parameter,
            "is_hopper": our_utils.is_hopper,
            "is_hopper_or_newer": our_utils.is_hopper_or_newer,
            "warmup_jit": warmup_jit,
            "clear_stale_jit_locks": clear_stale_jit_locks,
            "__version__": installed_version(),
        },
        "abs": _public(our_abs),
        "flow": _public(our_flow) | verify,
        "flow.algorithms": _public(our_flows),
        "flow.algorithms_mla": _public(our_flows),
        "flow.algorithms_learned_mla": _public(our_flows),
        "indexer": _public(our_indexer),
        "indexer.compiler": _absent("indexer.compiler"),
        "indexer.utils_sglang": _absent("indexer.utils_sglang"),
        "cache": _public(our_cache),
        "cache.compiler": _absent("cache.compiler"),
        "utils": _public(our_utils),
        "engine": {},
        "engine.sgl": {},
        "integration": _absent("integration"),
    }


def warmup_jit(*_args: object, **_kwargs: object) -> None:
    """Nothing to warm up: no kernel is compiled when a flow is loaded."""


def clear_stale_jit_locks(*_args: object, **_kwargs: object) -> None:
    """No locks: no kernel is compiled when a flow is loaded."""


def _public(module: ModuleType) -> dict[str, object]:
    return {name: getattr(module, name) for name in module.__all__}


def _absent(path: str) -> dict[str, object]:
    """A module that can be imported, and says why it has nothing."""

    def refuse(name: str) -> Never:
        if name.startswith("__"):
            raise AttributeError(name)
        where, found = f"{PACKAGE}.{path}", f"a use of {name!r}"
        fix = "flows need no code generator or engine; run them with tilewright attention"
        raise FlowLoadError(where, found, "only names that flows use", fix)

    return {"__getattr__": refuse}

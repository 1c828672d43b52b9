"""The table from module paths and names of Vortex to modules and names of ours."""

from collections.abc import Callable, Mapping
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
from tilewright.interop.foreign_names import public_names
from tilewright.records import installed_version

__all__ = ("PACKAGE", "vortex_table")

PACKAGE = "vortex_torch"

_SUBMODULES: Mapping[str, ModuleType] = MappingProxyType(
    {
        "abs.context_base": context_base,
        "abs.op": op,
        "abs.tensor": tensor,
        "abs.parameter": parameter,
        "flow.flow": flow,
        "flow.flow_mla": flow_mla,
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
"""Paths that have the public names of a module of ours."""


def vortex_table(
    build_vflow: Callable[..., object],
) -> dict[str, Mapping[str, object] | ModuleType]:
    """Return the names of each path below the package. ``build_vflow`` loads files of Vortex."""
    own = {"build_vflow": build_vflow}
    return {
        "": {
            "Parameter": our_abs.Parameter,
            "is_hopper": our_utils.is_hopper,
            "is_hopper_or_newer": our_utils.is_hopper_or_newer,
            "warmup_jit": warmup_jit,
            "clear_stale_jit_locks": clear_stale_jit_locks,
            "__version__": installed_version(),
        },
        "abs": our_abs,
        "flow": public_names(our_flow) | public_names(our_verify) | own,
        "flow.algorithms": our_flows,
        "flow.algorithms_mla": our_flows,
        "flow.algorithms_learned_mla": our_flows,
        "flow.loader": public_names(loader) | own,
        "flow.registry": public_names(registry) | {"_REGISTRY": registry._REGISTRY},
        "indexer": our_indexer,
        "indexer.compiler": _absent("indexer.compiler"),
        "indexer.utils_sglang": _absent("indexer.utils_sglang"),
        "cache": our_cache,
        "cache.compiler": _absent("cache.compiler"),
        "utils": our_utils,
        "integration": _absent("integration"),
        **_SUBMODULES,
    }


def warmup_jit(*_args: object, **_kwargs: object) -> None:
    """Do nothing: no kernel is compiled when a flow is loaded."""


def clear_stale_jit_locks(*_args: object, **_kwargs: object) -> None:
    """Do nothing: there are no locks, since no kernel is compiled when a flow is loaded."""


def _absent(path: str) -> dict[str, object]:
    """Return the names of a module that can be imported and says why it has nothing."""

    def refuse(name: str) -> Never:
        if name.startswith("__"):
            raise AttributeError(name)
        where, found = f"{PACKAGE}.{path}", f"a use of {name!r}"
        fix = "flows need no code generator or engine; run them with tilewright attention"
        raise FlowLoadError(where, found, "only names that flows use", fix)

    return {"__getattr__": refuse}

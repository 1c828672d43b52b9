"""The table from module paths and names of Vortex to modules and names of ours."""

from collections.abc import Callable, Iterable, Mapping
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
from tilewright.attention.flow import config, flow, flow_mla, loader, registry
from tilewright.attention.ops import binary, compare, page_axis, reduce, unary
from tilewright.attention.ops.example import Example
from tilewright.attention.ops.table import ops_of
from tilewright.errors import FlowLoadError
from tilewright.interop.foreign_names import public_names
from tilewright.records import installed_version

PACKAGE = "vortex_torch"

_MODULES: Mapping[str, ModuleType] = MappingProxyType(
    {
        "abs.context_base": context_base,
        "abs.op": op,
        "abs.tensor": tensor,
        "abs.parameter": parameter,
        "flow.flow": flow,
        "flow.flow_mla": flow_mla,
        "flow.verify": our_verify,
        "engine.sgl.config": config,
    }
)
"""Paths that have the public names of a module of ours."""


def _names(examples: Iterable[Example]) -> tuple[str, ...]:
    """Return the names of the ops of some examples."""
    return tuple(op.__name__ for op in ops_of(examples))


_MASKS = tuple(name for name in _names(compare.EXAMPLES) if name.startswith("Where"))
_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "indexer.matmul": ("GeMM", "GeMV"),
        "indexer.reduce": _names(reduce.EXAMPLES),
        "indexer.scan": _names(page_axis.EXAMPLES),
        "indexer.transpose": ("Transpose",),
        "indexer.elementwise": _names(unary.EXAMPLES),
        "indexer.elementwise_binary": (*_names(binary.EXAMPLES), *_MASKS),
        "indexer.save_load": ("Load", "Save"),
        "indexer.mask": ("MaskSlice",),
        "indexer.kron": ("Kron",),
        "indexer.reshape": ("Reshape",),
        "indexer.output_func": ("approxTopK", "topK"),
        "indexer.select": (
            *("Complement", "Intersection", "TopK", "Union"),
            *("every", "pages", "recent", "sink", "threshold", "topP"),
        ),
        "indexer.factor_score": ("FactorScore",),
        "indexer.context": ("Context", "get_ctx"),
        "indexer.metadata": ("MetaData",),
        "cache.reduce": _names(reduce.EXAMPLES),
        "cache.reduce_interleave": _names(reduce.EXAMPLES_OF_NEIGHBOURS),
        "cache.matmul": ("GeMM", "Kron"),
        "cache.elementwise": _names(unary.EXAMPLES),
        "cache.elementwise_binary": (*_names(binary.EXAMPLES), *_MASKS),
        "cache.fill": ("Fill",),
        "cache.mask": ("MaskSlice",),
        "cache.reshape": ("Reshape",),
        "cache.learned_descriptor": ("LearnedDescriptor",),
        "cache.context": ("Context", "ctx", "get_ctx"),
    }
)
"""Paths that have some names of one side."""


def vortex_table(
    build_vflow: Callable[..., object],
) -> dict[str, Mapping[str, object] | ModuleType]:
    """Return the names of each path below the package. ``build_vflow`` loads files of Vortex."""
    own = {"build_vflow": build_vflow}
    sides = {
        "indexer": {**public_names(our_indexer), "Context": our_indexer.IndexerContext},
        "cache": {**public_names(our_cache), "Context": our_cache.CacheContext},
    }
    parts = {
        path: {name: sides[path.partition(".")[0]][name] for name in names}
        for path, names in _NAMES.items()
    }
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
        "indexer.compiler": _absent("indexer.compiler"),
        "indexer.utils_sglang": _absent("indexer.utils_sglang"),
        "cache.compiler": _absent("cache.compiler"),
        "utils": our_utils,
        "integration": _absent("integration"),
        **sides,
        **_MODULES,
        **parts,
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

"""``vortex_torch`` as names of ours: for a file, for a block, for a session or a whole process.

Names of torch stand in for it only while a flow file runs, and only where torch is not installed.
"""

import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType, ModuleType
from typing import Never

import tilewright.attention.abs as our_abs
import tilewright.attention.cache as our_cache
import tilewright.attention.flow as our_flow
import tilewright.attention.flows as our_flows
import tilewright.attention.indexer as our_indexer
import tilewright.attention.utils as our_utils
import tilewright.attention.verify as our_verify
from tilewright.attention.abs import context_base, op, tensor
from tilewright.attention.backends import reference
from tilewright.attention.flow import config, flow, loader, registry
from tilewright.attention.graph import DType, Op
from tilewright.attention.ops import binary, compare, page_axis, reduce, unary
from tilewright.errors import FlowLoadError, MissingExtraError
from tilewright.interop.foreign_names import ForeignNames, public_names
from tilewright.records import installed_version

_DTYPES = (
    "float32", "float", "float16", "half", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int32",
    "int", "int8", "bool",
)  # fmt: skip


class Tensor:
    """For annotations. There are no tensors without torch."""

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        _missing("torch.Tensor(...)")


class device:  # noqa: N801  # the name that torch has
    """For annotations and for ``device=`` arguments, which flows may pass and nobody reads."""

    def __init__(self, *names: object) -> None:
        self.names = names


def torch_is_installed() -> bool:
    """Return whether torch itself can be imported, also while the stand-in has its name."""
    loaded = sys.modules.get("torch")
    if loaded is not None:
        return loaded.__spec__ is not None  # the stand-in has none
    return importlib.util.find_spec("torch") is not None


def build_torch_names() -> ModuleType:
    """Return a module called torch that has types and element types, and refuses all else."""
    module = ModuleType("torch", "Names of torch, without torch.")
    module.__dict__.update({name: our_utils.DTYPE_STR_TO_TORCH[name] for name in _DTYPES})
    module.__dict__.update(Tensor=Tensor, dtype=DType, device=device, __getattr__=_refuse)
    return module


def _refuse(name: str) -> Never:
    if name.startswith("__"):
        raise AttributeError(name)
    _missing(f"torch.{name}")


def _missing(name: str) -> Never:
    raise MissingExtraError(f"a flow file that needs {name}", "torch", "bench")


PACKAGE = "vortex_torch"

_PARTS: Mapping[str, tuple[ModuleType, str]] = MappingProxyType(
    {
        "abs.context_base": (context_base, "ContextBase TraceList"),
        "abs.op": (op, "schedule_of split_context trace_of vOp"),
        "abs.tensor": (tensor, "FORMAT as_vtensor vTensor"),
        "abs.parameter": (tensor, "Parameter"),
        "flow.flow": (flow, "FlowBase MetaInfo vFlow"),
        "flow.flow_mla": (flow, "vFlowMLA"),
        "flow.loader": (
            loader,
            "FlowInitError FlowLoadError find_flow fix_of load_flows make_flow raising_line",
        ),
        "flow.registry": (
            registry,
            "RegistryError _REGISTRY collect_flows get has list_keys register",
        ),
        "engine.sgl.config": (
            config,
            "ALIASES REFUSED WITHOUT_EFFECT VortexConfig check_layers_skip normalize_vortex_config",
        ),
    }
)
"""Paths that have some names of a module of ours."""


def _names(ops: Iterable[type[Op]]) -> tuple[str, ...]:
    return tuple(op.__name__ for op in ops)


_MASKS = tuple(name for name in _names(compare.OPS) if name.startswith("Where"))
_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "indexer.matmul": ("GeMM", "GeMV"),
        "indexer.reduce": _names(reduce.OPS),
        "indexer.scan": _names(page_axis.OPS),
        "indexer.transpose": ("Transpose",),
        "indexer.elementwise": _names(unary.OPS),
        "indexer.elementwise_binary": (*_names(binary.OPS), *_MASKS),
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
        "cache.reduce": _names(reduce.OPS),
        "cache.reduce_interleave": _names(reduce.OPS_OF_NEIGHBOURS),
        "cache.matmul": ("GeMM", "Kron"),
        "cache.elementwise": _names(unary.OPS),
        "cache.elementwise_binary": (*_names(binary.OPS), *_MASKS),
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
    parts: dict[str, dict[str, object]] = {
        path: {name: sides[path.partition(".")[0]][name] for name in names}
        for path, names in _NAMES.items()
    }
    for path, (module, names) in _PARTS.items():
        parts[path] = {name: getattr(module, name) for name in names.split()}
    parts["flow.loader"] |= own
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
        "flow.verify": our_verify,
        "indexer.compiler": _absent("indexer.compiler"),
        "indexer.utils_sglang": _absent("indexer.utils_sglang"),
        "cache.compiler": _absent("cache.compiler"),
        "utils": our_utils,
        "integration": _absent("integration"),
        **sides,
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


@contextmanager
def vortex_names(*, stand_in_for_torch: bool | None = None) -> Iterator[None]:
    """Make ``vortex_torch`` importable while the block runs, and ``torch`` if it is not installed.

    The latter has names for annotations and element types. ``stand_in_for_torch`` None looks
    whether torch is there. Raises RegistryError if a real ``vortex_torch`` has been imported.
    """
    wanted = not torch_is_installed() if stand_in_for_torch is None else stand_in_for_torch
    with _VORTEX.installed():
        real = sys.modules.get("torch")
        if wanted:
            sys.modules["torch"] = build_torch_names()
        try:
            yield
        finally:
            if wanted:
                del sys.modules["torch"]
                if real is not None:
                    sys.modules["torch"] = real


def install_vortex_alias() -> None:
    """Make ``vortex_torch`` importable in this process until `remove_vortex_alias`.

    A second call changes nothing. Raises RegistryError if a real ``vortex_torch`` has been
    imported: one name would have two meanings.
    """
    _VORTEX.install()


def remove_vortex_alias() -> None:
    """Undo `install_vortex_alias`. Without it nothing happens; a real Vortex is left alone."""
    _VORTEX.remove()


build_vflow = partial(our_flow.build_vflow, names=vortex_names)
"""Build the flow registered under a name: by the file if one is given, else by an import.

The file may import tilewright's names or Vortex's.
"""
load_flows = partial(our_flow.load_flows, names=vortex_names)
"""Run a flow file and return the flows that it registers, at least one.

The file may import tilewright's names or Vortex's, also inside its functions.
"""
find_flow = partial(our_flow.find_flow, names=vortex_names)
"""Return a ready flow by name, or the flow of a file (``name`` picks one of several).

Whatever ends in ``.py`` or has a path separator is a file, as in `load_flows`.
"""
session_of_config = partial(reference.session_of_config, names=vortex_names)
"""Build what a config asks for on the reference backend; ``module_path`` as in `load_flows`."""
check_engine_config = partial(our_verify.check_engine_config, names=vortex_names)
"""Make all checks of a config ahead of an engine; ``module_path`` as in `load_flows`."""


_VORTEX = ForeignNames(PACKAGE, vortex_table(build_vflow))

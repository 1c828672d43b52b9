"""`VortexConfig`: what a serving engine is told about a flow."""

import json
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    model_validator,
)

from tilewright.attention.utils import resolve_dtype
from tilewright.canonical import content_hash
from tilewright.errors import SpecError, meant

Ratio = Annotated[float, Field(ge=0.0, le=1.0)]

ALIASES = MappingProxyType(
    {
        "sink": "block_reserved_bos",
        "recent": "block_reserved_eos",
        "skip_layers": "layers_skip",
    }
)
"""Other names that users know, each with the field that it sets."""

WITHOUT_EFFECT = MappingProxyType(
    {
        "workload_chunk_size": "cuts the work of a GPU; generated kernels have tiles of their own",
        "compilation_cache_dir": "generated kernels are kept in memory",
        "attention_backend": "chooses a GPU library; backends here are called by name",
        "impl_backend": "chooses how a GPU's kernels are made",
        "use_tensor_core": "products are in the types that fields are stored in",
    }
)
"""Fields that are accepted for the sake of a config as it is, with what they are for there."""

_HOST = ("no keys and values in the memory of a host", "leave it out: all pages are on the device")
_FROZEN = ("no field of a development branch",)
REFUSED = MappingProxyType(
    {
        "host_kv_gb": _HOST,
        "host_kv_pool_blocks": _HOST,
        "host_kv_policy": _HOST,
        "frozen_model_name": (*_FROZEN, "set module_name to 'frozen_dynamic_top_p'"),
        "frozen_temperature": (
            *_FROZEN,
            "use build_vflow('frozen_dynamic_top_p', {'temperature': ...})",
        ),
    }
)
"""Fields that only their default is taken for: what is expected, and what to use instead."""

_SWITCH = "enable_vortex_sparsity"
_PREFIX = "vortex_"


class VortexConfig(BaseModel):
    """Every field with its only default. Frozen; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    module_path: str | None = None  # a flow file; None: ready flows
    module_name: str | None = None  # the registered name
    topk_val: PositiveInt = 30  # scored pages per row, without reserved ones
    topk_ratio: Ratio = 0.0  # of the pages of a row; the larger rule wins
    max_topk_val: PositiveInt | None = None
    layers_skip: tuple[NonNegativeInt, ...] | None = None  # layers that stay dense
    block_reserved_bos: NonNegativeInt = 1
    block_reserved_eos: PositiveInt = 1
    max_seq_lens: int = -1  # -1: from the model
    block_size: PositiveInt = 16
    page_size: PositiveInt | None = None  # of allocation, a multiple of block_size; None: equal
    workload_chunk_size: PositiveInt = 32
    dtype: str = "bfloat16"
    compilation_cache_dir: str | None = None
    schedule_policy: str | None = None
    attention_backend: Literal["flashinfer", "trtllm", "cuda_mla", "triton", "reference"] = (
        "flashinfer"
    )
    impl_backend: Literal["triton", "cuda", "reference"] = "triton"
    use_tensor_core: bool = False
    host_kv_gb: Annotated[float, Field(ge=0.0)] = 0.0
    host_kv_pool_blocks: NonNegativeInt = 0
    host_kv_policy: Literal["lru", "fifo", "full"] = "lru"
    frozen_model_name: str | None = None
    frozen_temperature: float | None = None
    min_ctx: NonNegativeInt = 0  # rows of fewer tokens are dense
    update_interval: PositiveInt = 1  # steps between selections
    state_advance: Literal["vortex", "every_block"] = "vortex"  # which blocks Save writes

    @model_validator(mode="after")
    def _check_offered(self) -> Self:
        """Refuse by name what nothing here can do."""
        for name, (expected, fix) in REFUSED.items():
            value = getattr(self, name)
            if value != type(self).model_fields[name].default:
                raise SpecError(f"vortex config.{name}", repr(value), expected, fix)
        return self

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Fields that differ from their defaults, and that no backend here reads."""
        fields = type(self).model_fields
        return tuple(name for name in WITHOUT_EFFECT if getattr(self, name) != fields[name].default)

    @property
    def content_hash(self) -> str:
        """SHA-256 of all values; stands in every result."""
        return content_hash(self)


def normalize_vortex_config(
    config: "VortexConfig | Mapping[str, Any] | str | None" = None, **flat: Any
) -> VortexConfig | None:
    """A config from an object, a dict, JSON text or flat ``vortex_`` keywords.

    None if ``enable_vortex_sparsity`` is false. Keywords win over the first argument.
    """
    if not flat.pop(_SWITCH, True):
        return None
    values = _as_dict(config)
    for key, value in flat.items():
        if not key.startswith(_PREFIX):
            fix = f"write {_PREFIX}{key}"
            raise SpecError("vortex config", f"keyword {key!r}", f"the prefix {_PREFIX!r}", fix)
        values[key.removeprefix(_PREFIX)] = value
    values = _without_aliases(values)
    _check_keys(values)
    return _parse(values)


def check_layers_skip(config: VortexConfig, num_layers: int) -> None:
    """Raise SpecError if the config skips a layer that a model of ``num_layers`` does not have."""
    beyond = [layer for layer in config.layers_skip or () if layer >= num_layers]
    if beyond:
        found, expected = f"layers {beyond}", f"layers below {num_layers}"
        raise SpecError("vortex config.layers_skip", found, expected, "name layers of the model")


def _as_dict(config: "VortexConfig | Mapping[str, Any] | str | None") -> dict[str, Any]:
    if isinstance(config, VortexConfig):
        return config.model_dump()
    if config is None:
        return {}
    if isinstance(config, Mapping):
        return dict(config)
    try:
        parsed = json.loads(config)
    except (TypeError, json.JSONDecodeError) as error:
        fix = 'pass an object such as {"topk_val": 30}'
        raise SpecError("vortex config", f"no JSON ({error})", "JSON text", fix) from error
    if not isinstance(parsed, dict):
        found = f"a JSON {type(parsed).__name__}"
        raise SpecError("vortex config", found, "a JSON object", "write {...}")
    return parsed


def _without_aliases(values: dict[str, Any]) -> dict[str, Any]:
    """Fields under their own names; a field given twice is refused."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        field = ALIASES.get(key, key)
        if field in result:
            raise SpecError("vortex config", f"{key!r} and {field!r}", "one of them", "drop one")
        result[field] = value
    if "token_budget" not in result:
        return result
    if "topk_val" in result:
        found = "'token_budget' and 'topk_val'"
        raise SpecError("vortex config", found, "one of them", "drop one")
    return _pages_of_budget(result)


def _pages_of_budget(values: dict[str, Any]) -> dict[str, Any]:
    """A budget in tokens counts the reserved pages too."""
    budget = values.pop("token_budget")
    size = values.get("block_size", 16)
    reserved = values.get("block_reserved_bos", 1) + values.get("block_reserved_eos", 1)
    least = (reserved + 1) * size
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < least:
        expected = f"at least {least} tokens: {reserved} reserved pages and one more"
        raise SpecError("vortex config.token_budget", repr(budget), expected, "raise the budget")
    return values | {"topk_val": budget // size - reserved}


def _check_keys(values: Mapping[str, Any]) -> None:
    known = [*VortexConfig.model_fields, *ALIASES, "token_budget"]
    for key in values:
        if key not in known:
            fix = meant(key, known, f"known keys are {', '.join(known)}")
            raise SpecError("vortex config", f"unknown key {key!r}", "a known key", fix)


def _parse(values: dict[str, Any]) -> VortexConfig:
    try:
        config = VortexConfig(**values)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(map(str, first["loc"]))
        found = f"{first['input']!r}"
        fix = "see VortexConfig"
        raise SpecError(f"vortex config.{path}", found, first["msg"], fix) from error
    resolve_dtype(config.dtype)
    if config.max_seq_lens != -1 and config.max_seq_lens < 1:
        where, expected = "vortex config.max_seq_lens", "1 or more, or -1 for the model's"
        raise SpecError(where, str(config.max_seq_lens), expected, "correct it")
    if config.page_size is not None and config.page_size % config.block_size:
        found, expected = f"{config.page_size}", f"a multiple of block_size {config.block_size}"
        raise SpecError("vortex config.page_size", found, expected, "change one of them")
    if config.module_path is not None and not os.path.isfile(config.module_path):
        where, found = "vortex config.module_path", f"no file {config.module_path!r}"
        raise SpecError(where, found, "a flow file", "correct the path")
    return config

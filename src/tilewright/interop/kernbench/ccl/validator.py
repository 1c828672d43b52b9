"""Checks of a collective call before it is submitted: functions by name, a user's own included."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tilewright.errors import CollectiveError, RegistryError
from tilewright.interop.kernbench.tensor import Tensor

Validator = Callable[[Tensor, int, Mapping[str, Any]], None]
"""``fn(tensor, world_size, config)``: raises to refuse the call.

``config`` is the merged entry of ``ccl.yaml``, with ``ranks``: "sip" or "pe", what a rank is.
"""


class ValidatorRegistry:
    """Validators by name, in the order of registration; ``check`` runs all of them.

    A registry begins with the built-in ones, which can be removed like any other.
    """

    def __init__(self) -> None:
        self._validators: dict[str, Validator] = dict(BUILT_IN)

    def register_validator(self, name: str, fn: Validator) -> None:
        """Add a validator; a name that is taken is refused."""
        if name in self._validators:
            found, fix = f"two validators {name!r}", "rename it, or unregister_validator first"
            raise RegistryError("register_validator", found, "one of each name", fix)
        if not callable(fn):
            fix = "pass a function of (tensor, world_size, config)"
            raise RegistryError("register_validator", repr(fn), "a function", fix)
        self._validators[name] = fn

    def unregister_validator(self, name: str) -> None:
        """Remove a validator; a name that is not there is refused."""
        if name not in self._validators:
            expected = f"one of {', '.join(self._validators)}"
            raise RegistryError("unregister_validator", repr(name), expected, "name one of these")
        del self._validators[name]

    def check(self, tensor: Tensor, world_size: int, config: Mapping[str, Any]) -> None:
        """Run all validators; the first that raises refuses the call."""
        for validator in tuple(self._validators.values()):
            validator(tensor, world_size, config)


def _check_shard_size(tensor: Tensor, _world_size: int, _config: Mapping[str, Any]) -> None:
    """Refuse a tensor whose shards have different sizes, or that has none."""
    sizes = sorted({shard.nbytes for shard in tensor.shards})
    if len(sizes) != 1 or not sizes[0]:
        text = " and ".join(map(str, sizes)) or "no"
        found = f"tensor {tensor.name!r} with shards of {text} bytes"
        fix = "choose a size that the units of its DPPolicy divide"
        raise CollectiveError("all_reduce", found, "shards of one size", fix)


def _check_shard_count(tensor: Tensor, world_size: int, config: Mapping[str, Any]) -> None:
    """Refuse a tensor without one shard a rank where ranks are PEs."""
    num_shards = len(tensor.shards)
    if config.get("ranks") == "pe" and num_shards != world_size:
        found = f"tensor {tensor.name!r} with {num_shards} shards for {world_size} ranks"
        fix = (
            "split it over as many PEs, such as DPPolicy(pe='row_wise', num_cubes=1), "
            "or correct world_size in ccl.yaml"
        )
        raise CollectiveError("all_reduce", found, "one shard a rank", fix)


def _check_slot_size(tensor: Tensor, world_size: int, config: Mapping[str, Any]) -> None:
    """Refuse a message that is larger than a slot, if the entry says the size of slots."""
    slot_size = config.get("slot_size")
    num_bytes = max((shard.nbytes for shard in tensor.shards), default=0)
    if slot_size is not None and num_bytes > slot_size and world_size > 1:
        found = f"messages of {num_bytes} bytes, a shard of tensor {tensor.name!r}"
        fix = (
            f"set slot_size: {num_bytes}, leave it out, or let messages be cut into fragments: "
            'torch.distributed.unregister_validator("slot_size")'
        )
        raise CollectiveError("all_reduce", found, f"at most slot_size={slot_size}", fix)


BUILT_IN: Mapping[str, Validator] = MappingProxyType(
    {
        "shard_size": _check_shard_size,
        "shard_count": _check_shard_count,
        "slot_size": _check_slot_size,
    }
)

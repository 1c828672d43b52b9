"""Small random models, and the same weights in another implementation."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch

from tests.models.peer import peer_config, transformers
from tilewright.models.build import Tensors, build_weights
from tilewright.models.rope import RopeSpec
from tilewright.models.safetensors.model import NAMES
from tilewright.models.shape import GqaShape, MlaShape
from tilewright.models.weight_file import StoredTensor, TensorFile, WeightFile
from tilewright.models.weights import ModelWeights

__all__ = ("NamedTensors", "gqa_shape", "mla_shape", "peer_logits", "peer_model", "weights_of_peer")

Floats = npt.NDArray[np.float32]


def gqa_shape(**changes: Any) -> GqaShape:
    sizes: dict[str, Any] = {
        "name": "tiny",
        "layers": 2,
        "hidden": 48,
        "query_heads": 6,
        "kv_heads": 2,
        "head_dim": 8,
        "ffn": 96,
        "vocab": 100,
        "context": 256,
        "norm_eps": 1e-5,
        "rope": RopeSpec(base=10_000.0, width=8),
    }
    return GqaShape(**(sizes | changes))


def mla_shape(**changes: Any) -> MlaShape:
    sizes: dict[str, Any] = {
        "name": "tiny-latent",
        "layers": 2,
        "hidden": 48,
        "query_heads": 4,
        "q_lora_rank": 24,
        "kv_lora_rank": 16,
        "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4,
        "v_head_dim": 12,
        "ffn": 96,
        "vocab": 100,
        "context": 256,
        "norm_eps": 1e-5,
        "rope": RopeSpec(base=10_000.0, width=4),
    }
    return MlaShape(**(sizes | changes))


def peer_model(shape: GqaShape | MlaShape, *, seed: int = 0, **more: Any) -> Any:
    """Random weights, norms included: ones would hide a norm that is missing."""
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(peer_config(shape, **more))
    generator = torch.Generator().manual_seed(seed)
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        if "inv_freq" not in name:
            noise = torch.randn(value.shape, generator=generator)
            value.data = 1 + 0.3 * noise if "norm" in name else 0.2 * noise
    return model.eval()


def peer_logits(model: Any, tokens: list[int]) -> Floats:
    with torch.no_grad():
        found: Floats = model(torch.tensor([tokens])).logits[0].numpy()
    return found


class NamedTensors(TensorFile):
    """Tensors in memory, as a file would give them; their kind is the array itself."""

    said_by = "as the test says"

    @classmethod
    def of(cls, arrays: Mapping[str, Floats]) -> Self:
        nowhere = WeightFile(Path("memory"), 0, ())
        stored = {name: StoredTensor(nowhere, a, a.shape, 0, 0) for name, a in arrays.items()}
        return cls(Path("memory"), stored)

    def values_of(self, where: str, name: str) -> Floats:
        del where
        found: Floats = self.tensors[name].kind
        return found


def weights_of_peer(shape: GqaShape | MlaShape, model: Any) -> ModelWeights:
    """The weights of another implementation, under the names of its files."""
    tensors = {name: value.detach().numpy() for name, value in model.state_dict().items()}
    tensors = _experts_apart(tensors)
    return build_weights(
        shape, Tensors(NamedTensors.of(tensors), NAMES), pairs=isinstance(shape, MlaShape)
    )


def _experts_apart(tensors: Mapping[str, Floats]) -> dict[str, Floats]:
    """In memory it keeps all experts of a layer in one array; files have them one by one."""
    found: dict[str, Floats] = {}
    for name, values in tensors.items():
        if name.endswith("experts.gate_up_proj"):
            base = name.removesuffix("gate_up_proj")
            width = values.shape[1] // 2
            for index, both in enumerate(values):
                found[f"{base}{index}.gate_proj.weight"] = both[:width]
                found[f"{base}{index}.up_proj.weight"] = both[width:]
        elif name.endswith("experts.down_proj"):
            base = name.removesuffix("down_proj")
            for index, down in enumerate(values):
                found[f"{base}{index}.down_proj.weight"] = down
        else:
            found[name] = values
    return found

"""LLM shapes as data, weights, tokenizer, forward pass with the attention step passed in."""

from tilewright.models.catalogue import SHAPES, find_shape
from tilewright.models.dense import DenseAttention, Prompt, run_prompt
from tilewright.models.find import load_model, load_smollm2
from tilewright.models.forward import AttentionStep, choose_token, logits_of, run_layers
from tilewright.models.gguf.model import load_gguf
from tilewright.models.model import LanguageModel, TextStream, Tokenizer
from tilewright.models.rope import RopeSpec
from tilewright.models.safetensors.model import load_safetensors
from tilewright.models.shape import ExpertShape, GateKind, GqaShape, MlaShape, ModelShape
from tilewright.models.weights import ModelWeights, map_arrays

__all__ = (
    "SHAPES",
    "AttentionStep",
    "DenseAttention",
    "ExpertShape",
    "GateKind",
    "GqaShape",
    "LanguageModel",
    "MlaShape",
    "ModelShape",
    "ModelWeights",
    "Prompt",
    "RopeSpec",
    "TextStream",
    "Tokenizer",
    "choose_token",
    "find_shape",
    "load_gguf",
    "load_model",
    "load_safetensors",
    "load_smollm2",
    "logits_of",
    "map_arrays",
    "run_layers",
    "run_prompt",
)

"""Models by what a user calls them: a name, a GGUF file, or a folder of safetensors."""

import os
from pathlib import Path

from tilewright.errors import ModelError
from tilewright.models.gguf.model import load_gguf
from tilewright.models.model import LanguageModel
from tilewright.models.safetensors.model import load_safetensors
from tilewright.models.smollm2 import load_smollm2

SMOLLM2 = "smollm2"


def load_model(model: str) -> LanguageModel:
    """``smollm2``, a path that ends in ``.gguf``, or a folder with a ``config.json``."""
    if model == SMOLLM2:
        return load_smollm2()
    path = Path(model)
    if path.suffix == ".gguf":
        return load_gguf(path)
    if os.path.isdir(path):  # also of a name that no file can have
        return load_safetensors(path)
    expected = f"{SMOLLM2!r}, a .gguf file or a folder of safetensors"
    raise ModelError(f"model {model!r}", "no such model", expected, "correct the name")

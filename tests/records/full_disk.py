"""A disk without space, for files that are under way."""

from pathlib import Path
from typing import Any

import pytest

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="a device without space is needed")


def fill_disk(monkeypatch: pytest.MonkeyPatch, *, buffering: int = -1) -> None:
    """Whatever is written before it has its name meets no space, at the latest when it ends."""
    opened = Path.open

    def open_full(path: Path, *arguments: Any, **named: Any) -> Any:
        if path.suffix == ".tmp":
            path.touch()
            return opened(FULL, "wb", buffering)
        return opened(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", open_full)

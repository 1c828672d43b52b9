"""SmolLM2 for tests: one thread, since tests share the cores, and a skip where it is missing."""

from collections.abc import Iterator

import pytest
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from tilewright.errors import ModelError
from tilewright.models.find import load_smollm2, smollm2_path
from tilewright.models.model import LanguageModel

__all__ = ("smollm2_on_one_thread",)


def smollm2_on_one_thread() -> Iterator[LanguageModel]:
    """The body of a fixture; the model takes 540 MB."""
    try:
        smollm2_path()
    except ModelError as error:
        pytest.skip(str(error))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield load_smollm2()
    torch.set_num_threads(threads)

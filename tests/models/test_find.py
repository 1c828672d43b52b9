"""Models by what a user calls them."""

import pytest

from tilewright.errors import ModelError
from tilewright.models import load_model


@pytest.mark.parametrize("name", ["smollm3", "n" * 300, "a\0b", "/dev/zero"])
def test_a_name_that_is_no_model_is_one_error(name: str) -> None:
    with pytest.raises(ModelError, match="found no such model"):
        load_model(name)

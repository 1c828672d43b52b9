"""Golden texts: ``tests/golden/<file>/<test>.txt``, rewritten with TILEWRIGHT_UPDATE_GOLDEN=1."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def check_golden(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Compare a text with the file that has the test's own name."""
    name = request.node.name.translate(str.maketrans("[]/ ", "----")).strip("-")
    path = GOLDEN / Path(str(request.node.path)).stem / f"{name}.txt"

    def check(text: str) -> None:
        if os.environ.get("TILEWRIGHT_UPDATE_GOLDEN"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert text == path.read_text()

    return check

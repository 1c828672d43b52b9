"""Golden texts: ``tests/golden/<file>/<test>.txt``, rewritten with ``--update-golden``."""

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
        if request.config.getoption("update_golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return check

"""How many random examples a property gets, and whether golden files are rewritten.

``HYPOTHESIS_PROFILE`` is ``ci`` or ``all``.
"""

import os

import pytest
from hypothesis import settings

settings.register_profile("ci", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("all", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "rewrite golden files; review the difference like code"
    parser.addoption("--update-golden", action="store_true", help=text)

"""A plug-in of pytest: names each test as the context of coverage, and keeps its time."""

import json
import os
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

_seconds: defaultdict[str, float] = defaultdict(float)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None]:
    name = item.nodeid.partition("[")[0]
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.switch_context(name)
    start = time.perf_counter()
    yield
    _seconds[name] += time.perf_counter() - start


def pytest_sessionfinish() -> None:
    file = Path(f"{os.environ['TEST_SECONDS']}.{os.getpid()}")
    file.write_text(json.dumps(_seconds))

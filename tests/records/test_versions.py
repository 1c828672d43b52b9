import platform
from importlib import metadata

import pytest

from tilewright.records import installed_versions


def test_the_versions_of_this_process_are_recorded() -> None:
    versions = installed_versions(engine="reference")
    assert versions.engine == "reference"
    assert versions.python == platform.python_version()
    assert versions.tilewright


@pytest.mark.parametrize("installed", ["4.1.1", None])
def test_the_peer_of_the_benchmarks_is_recorded_if_it_is_there(
    monkeypatch: pytest.MonkeyPatch, installed: str | None
) -> None:
    def version(distribution: str) -> str:
        if distribution != "simpy":
            return "1"
        if installed is None:
            raise metadata.PackageNotFoundError(distribution)
        return installed

    monkeypatch.setattr(metadata, "version", version)
    assert installed_versions(engine="native").simpy == installed

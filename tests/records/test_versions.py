import platform

from tilewright.records import installed_versions


def test_the_versions_of_this_process_are_recorded() -> None:
    versions = installed_versions(engine="reference")
    assert versions.engine == "reference"
    assert versions.python == platform.python_version()
    assert versions.tilewright

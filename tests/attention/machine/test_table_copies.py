"""Tables of learned flows on a machine: where their values are written, and what is too much."""

import subprocess
import sys

import pytest

from tilewright.cli.main import main

LEARNED = (
    *("attention", "run", "--backend", "machine"),
    *("--flow", "learned_block_sparse_mla", "--group", "20"),
)
MEASURED = """
import resource, sys
from tilewright.cli.main import main
status = main(sys.argv[1:])
print(status, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_a_table_of_26_mb_for_a_machine_of_256_pes_takes_less_than_3_gb() -> None:
    command = [
        sys.executable,
        "-c",
        MEASURED,
        *LEARNED,
        "--context",
        "600",
        "--batch",
        "1",
        "--json",
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    status, kib = map(int, found.stdout.splitlines()[-1].split())
    assert status == 0
    assert '"values_ok":true' in found.stdout.replace(" ", "")
    assert kib * 1024 < 3e9


def test_copies_that_would_not_fit_are_refused_before_anything_is_computed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*LEARNED, "--placement", "sip"]) == 2
    errors = capsys.readouterr().err
    assert "tables of 25.312 MiB, a copy for each of 256 PEs" in errors
    assert "leave values out with --no-data" in errors
    assert "prefilling" not in errors

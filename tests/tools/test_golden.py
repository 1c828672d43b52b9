"""Results are held to recorded hashes through a table of renamed and dropped fields."""

from pathlib import Path
from typing import Any

import pytest

from tools.golden import __main__ as golden
from tools.golden.fields import FieldTable, digests, read_table
from tools.golden.kernels import run_random_kernel

TABLE = FieldTable(
    dropped=frozenset({"versions", "launches[].host"}),
    renamed={"launches[].final_pe": "last_pe", "time": "latency"},
    texts={r"\bworkers\b": "members"},
)


def test_a_renamed_field_has_its_recorded_name_and_a_dropped_one_is_gone() -> None:
    found = {"versions": 1, "time": 5, "launches": [{"final_pe": "pe0", "host": 3}], "host": 2}
    recorded = {"latency": 5, "launches": [{"last_pe": "pe0"}], "host": 2}
    assert TABLE.as_recorded(found) == recorded


def test_texts_and_names_made_of_them_are_those_of_the_record() -> None:
    found = {"shares": {"workers 2": ["the workers wait"]}}
    assert TABLE.as_recorded(found) == {"shares": {"members 2": ["the members wait"]}}


def test_a_hash_changes_with_the_smallest_part_of_a_field_and_no_other_field() -> None:
    before, after = ({"a": [1, {"b": each}], "c": 2} for each in (3, 4))
    assert digests(before)["c"] == digests(after)["c"]
    assert digests(before)["a"] != digests(after)["a"]


def test_the_committed_table_can_be_read() -> None:
    assert "versions" in read_table(golden.TABLE).dropped


def test_a_random_kernel_gives_the_same_result_each_time_and_seeds_differ() -> None:
    assert run_random_kernel(3) == run_random_kernel(3)
    assert run_random_kernel(3)["source"] != run_random_kernel(4)["source"]


def test_a_difference_is_shown_with_what_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = [{"latency_ps": 7, "values": "a"}, {"latency_ps": 8, "values": "a"}]
    monkeypatch.setattr(golden, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(golden, "DIGESTS", tmp_path / "digests.json")

    def run(result: dict[str, Any], *options: str) -> int:
        monkeypatch.setattr(golden, "cases", lambda _: {"kernel": lambda: result})
        monkeypatch.setattr("sys.argv", ["golden", *options])
        return golden.main()

    assert run(results[0], "--record") == 0
    assert run(results[0]) == 0
    assert "1 cases, 2 fields, 0 differ" in capsys.readouterr().out
    assert run(results[1]) == 1
    assert "kernel: latency_ps differs\n  latency_ps: 7 -> 8\n" in capsys.readouterr().out

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.interop.kernbench.engines import map_
from tilewright.errors import TilewrightError
from tilewright.interop.kernbench.loading import run_bench
from tilewright.interop.kernbench.names import ProgramRegistry, entered_registry
from tilewright.interop.kernbench.placement import DPPolicy

TOPOLOGY = {"system": {"sips": {"count": 1}}}
ONE = DPPolicy(num_cubes=1, num_pes=1)


def double(torch: Any) -> None:
    x = np.arange(32, dtype=np.float16)
    t = torch.zeros((32,), dp=ONE, name="t")
    t.copy_(torch.from_numpy(x))

    def kernel(ptr: int, n: int, tl: Any) -> None:
        block = tl.load(ptr, (n,), "f16")
        tl.store(ptr, block + block)

    torch.launch("double", kernel, t, 32)
    assert t.numpy().tolist() == (2 * x).tolist()


def test_a_bench_runs_on_the_topology_and_its_traces_come_back() -> None:
    result = run_bench(double, TOPOLOGY)
    assert result.ok
    phases = [trace["phase"] for trace in result.traces]
    assert phases == ["memory_write", "kernel"]
    assert 0 < result.traces[-1]["pe_exec_ns"] < result.total_ns


def test_a_bench_is_found_by_name_and_by_number(tmp_path: Path) -> None:
    file = tmp_path / "topology.yaml"
    file.write_text("system:\n  sips:\n    count: 1\n", encoding="utf-8")
    registry = ProgramRegistry()
    registry.bench("double", "twice as much")(double)
    with entered_registry(registry):
        named, numbered = run_bench("double", file, "sip:0"), run_bench(1, file)
        assert named.ok
        assert named.total_ns == numbered.total_ns
        with pytest.raises(TilewrightError, match="did you mean 'double'"):
            run_bench("duoble", file)


def test_a_bench_without_requests_fails() -> None:
    result = run_bench(lambda torch: torch.handles(), TOPOLOGY)
    assert not result.ok
    assert result.completion.error_code == "NO_REQUESTS"


def test_the_first_failure_of_a_message_is_that_of_the_bench() -> None:
    def twice(torch: Any) -> None:
        for _ in range(2):
            torch.submit(map_(0x8_0000_0000, 0, 64, target_cubes=0))

    result = run_bench(twice, TOPOLOGY)
    assert result.completion.error_code == "RegistryError"


def test_an_error_of_a_bench_is_raised() -> None:
    def wrong(torch: Any) -> None:
        raise ZeroDivisionError(torch.correlation_id)

    with pytest.raises(ZeroDivisionError, match="bench"):
        run_bench(wrong, TOPOLOGY)

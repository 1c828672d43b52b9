import pytest

from tests.device.user_block import OneLane, SlowEverySecond, ThreeOpGemm
from tests.kinds import every_engine
from tilewright.device.block import build_service
from tilewright.device.gemm import build_gemm
from tilewright.device.vector import build_vector
from tilewright.engine import EngineKind, ServerSpec, TaskGraph, build_engine
from tilewright.errors import ServerError, SpecError
from tilewright.machine.spec import DotArraySpec, SramSpec, TcmSpec, VectorSpec

HERE = "tests.device.user_block"


def test_a_user_s_gemm_unit_takes_the_place_of_ours_and_runs_at_the_clock_of_the_spec() -> None:
    spec = DotArraySpec(impl=f"{HERE}:ThreeOpGemm", parameters={"start_cycles": 5}, hz=2 * 10**9)
    unit = build_gemm("pe0.gemm", spec)
    assert unit.block == ThreeOpGemm("pe0.gemm", spec, start_cycles=5)
    assert unit.hold_ps(1, 2, 3, "f16") == 11 * 500
    assert unit.hold_ps(1, 2, 3, "f64") == (5 + 4 * 6) * 500


def test_a_user_s_vector_unit_takes_the_place_of_ours() -> None:
    spec = VectorSpec(impl=f"{HERE}:OneLane")
    unit = build_vector("pe0.vector", spec, TcmSpec())
    assert unit.block == OneLane("pe0.vector", spec)
    assert unit.hold_ps("mine", 10, "f16") == 70_000


@every_engine
def test_a_user_s_service_runs_on_an_engine(kind: EngineKind) -> None:
    impl = f"{HERE}:SlowEverySecond"
    spec = SramSpec(access_ps=100, impl=impl, parameters={"latency_ps": 7})
    service = build_service("sram", spec)
    assert isinstance(service, SlowEverySecond)
    engine = build_engine(kind)
    route = engine.add_route([engine.add_server(ServerSpec("sram", service=service))])
    graph = TaskGraph()
    for effect in range(3):
        graph.transfer(route, num_bytes=64, effect=effect)
    engine.submit(graph)
    engine.run()
    assert engine.take_effects() == [(107, 0), (307, 1), (407, 2)]


def test_a_block_without_impl_has_no_service_in_python() -> None:
    assert build_service("sram", SramSpec()) is None


def test_a_class_with_another_interface_is_refused_where_it_is_named() -> None:
    spec = DotArraySpec(impl=f"{HERE}:OneLane")
    with pytest.raises(SpecError, match=r"pe0\.gemm\.impl: found .*OneLane with cycles\(self, op"):
        build_gemm("pe0.gemm", spec)


def test_a_parameter_that_the_class_does_not_take_is_refused() -> None:
    spec = VectorSpec(impl=f"{HERE}:OneLane", parameters={"speed": 3})
    with pytest.raises(SpecError, match=r"pe0\.vector\.impl: found .*speed"):
        build_vector("pe0.vector", spec, TcmSpec())


def test_a_constructor_that_raises_is_named_with_its_cause() -> None:
    spec = SramSpec(impl=f"{HERE}:NeverBuilt")
    expected = r"sram\.impl: found LookupError \(no licence for sram SramSpec\) raised"
    with pytest.raises(ServerError, match=expected) as caught:
        build_service("sram", spec)
    assert isinstance(caught.value.__cause__, LookupError)

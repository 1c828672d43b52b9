import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.device.register_file import RegisterFile, Residence
from tilewright.device.tcm import Tcm
from tilewright.errors import InternalError, UnitError
from tilewright.machine.spec import RegisterFileSpec, TcmSpec


def registers_of(capacity_bytes: int) -> RegisterFile:
    tcm = Tcm("pe0.tcm", TcmSpec(read_bytes_per_us=500_000, write_bytes_per_us=250_000))
    return RegisterFile("pe0.registers", RegisterFileSpec(capacity_bytes=capacity_bytes), tcm)


def test_a_value_that_fits_costs_no_port_time() -> None:
    registers = registers_of(100)
    value = registers.place(100)
    assert (value.register_bytes, value.spilled_bytes) == (100, 0)
    assert (registers.write_ps(value), registers.read_ps(value)) == (0, 0)


def test_what_does_not_fit_is_written_once_and_read_at_each_use() -> None:
    registers = registers_of(100)
    registers.place(60)
    value = registers.place(90)
    assert (value.register_bytes, value.spilled_bytes) == (40, 50)
    assert (registers.write_ps(value), registers.read_ps(value)) == (200, 100)
    assert registers.state.spilled_bytes == 50


def test_a_spilled_value_stays_where_it_is_when_another_one_dies() -> None:
    registers = registers_of(100)
    first = registers.place(100)
    second = registers.place(10)
    registers.free(first)
    assert registers.read_ps(second) == 20
    assert registers.place(100).spilled_bytes == 0


@given(
    capacity=st.integers(1, 300),
    steps=st.lists(st.tuples(st.booleans(), st.integers(1, 200)), max_size=40),
)
def test_registers_are_never_overfull_and_no_byte_is_lost(
    capacity: int, steps: list[tuple[bool, int]]
) -> None:
    registers = registers_of(capacity)
    living: list[Residence] = []
    for is_free, number in steps:
        if is_free and living:
            registers.free(living.pop(number % len(living)))
        else:
            living.append(registers.place(number))
            assert living[-1].register_bytes + living[-1].spilled_bytes == number
            is_full = sum(value.register_bytes for value in living) == capacity
            assert living[-1].spilled_bytes == 0 or is_full
        used = sum(value.register_bytes for value in living)
        assert registers.state.used_bytes == used <= registers.state.peak_bytes <= capacity


def test_a_value_is_freed_once_and_where_it_is() -> None:
    registers = registers_of(100)
    value = registers.place(10)
    registers.free(value)
    with pytest.raises(InternalError, match=r"pe0\.registers: found Residence\(register_bytes=10"):
        registers.free(value)
    with pytest.raises(InternalError, match="expected a value that lives"):
        registers.free(registers_of(100).place(10))


def test_an_empty_value_is_refused() -> None:
    with pytest.raises(UnitError, match=r"pe0\.registers: found num_bytes = 0"):
        registers_of(100).place(0)

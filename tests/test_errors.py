import inspect
import pickle

import pytest

from tilewright import errors
from tilewright.errors import (
    DeadlockError,
    DeviceError,
    EngineError,
    MissingExtraError,
    PageFaultError,
    TilewrightError,
)

PAGE_FAULT = PageFaultError(
    "sip0.cube3.pe5.mmu",
    "an access to virtual page 1, which is not mapped",
    "a mapped page",
    "map it before the access",
    address=65_536,
    pe="sip0.cube3.pe5",
)


def error_classes() -> list[type[TilewrightError]]:
    classes = [value for value in vars(errors).values() if inspect.isclass(value)]
    return [value for value in classes if issubclass(value, TilewrightError)]


def instance_of(error_class: type[TilewrightError]) -> TilewrightError:
    if error_class is DeadlockError:
        return DeadlockError("run", "2 waiters", "none", "break it", ("a", "b"), ("a", "b", "a"))
    if error_class is PageFaultError:
        return PAGE_FAULT.located(kernel="add", line="add.py line 7", address=70_000)
    if error_class is MissingExtraError:
        return MissingExtraError("bench engine", "simpy", "bench")
    return error_class("cube.hbm", "0 channels", "at least one", "set pseudo_channels")


def test_the_message_has_all_four_parts_in_order() -> None:
    error = TilewrightError("cube.hbm", "0 channels", "at least one", "set pseudo_channels")
    assert str(error) == "cube.hbm: found 0 channels, expected at least one; set pseudo_channels"


def test_no_part_of_an_error_can_be_left_out() -> None:
    with pytest.raises(TypeError):
        TilewrightError("cube.hbm", "0 channels", "at least one")  # type: ignore[call-arg]


@pytest.mark.parametrize("error_class", error_classes())
def test_every_error_survives_pickling_with_its_class_text_and_attributes(
    error_class: type[TilewrightError],
) -> None:
    error = instance_of(error_class)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is error_class
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


@pytest.mark.parametrize("error_class", error_classes())
def test_the_tree_in_the_docstring_names_every_error(error_class: type[TilewrightError]) -> None:
    tree = (errors.__doc__ or "").split()
    assert error_class.__name__ in tree


def test_a_deadlock_tells_who_waits_and_in_which_circle() -> None:
    error = DeadlockError("run", "2 waiters", "none", "break it", ("a", "b"), ("a", "b", "a"))
    assert isinstance(error, EngineError)
    assert (error.waiters, error.cycle) == (("a", "b"), ("a", "b", "a"))


def test_a_missing_library_names_its_extra_and_the_command_that_installs_it() -> None:
    error = MissingExtraError("bench engine", "simpy", "bench")
    assert "no library 'simpy'" in error.found
    assert error.fix == "run: pip install --editable '.[bench]' in the checkout, or make bench"


def test_only_the_extra_that_make_installs_is_said_to_come_from_make() -> None:
    error = MissingExtraError("weights", "gguf", "models")
    assert error.fix == "run: pip install --editable '.[models]' in the checkout"


def test_a_page_fault_tells_address_pe_kernel_and_line() -> None:
    error = PAGE_FAULT.located(kernel="add", line="add.py line 7", address=70_000)
    assert isinstance(error, DeviceError)
    assert error.where == "add.py line 7, kernel 'add' on sip0.cube3.pe5, address 0x11170"
    assert (error.address, error.pe) == (70_000, "sip0.cube3.pe5")
    assert (error.kernel, error.line) == ("add", "add.py line 7")
    assert error.found == PAGE_FAULT.found


def test_a_page_fault_without_the_address_of_its_access_tells_where_the_page_begins() -> None:
    assert PAGE_FAULT.located(kernel="add", line="add.py line 7").address == 65_536

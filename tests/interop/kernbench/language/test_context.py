"""``tl`` as an object: what it knows, what it refuses, and one that is made by hand."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.interop.kernbench.language.bed import launch, run
from tilewright.errors import KernelError, ProgramError
from tilewright.host import RuntimeContext
from tilewright.interop.kernbench.language.context import KERNEL_NAMES, TLContext
from tilewright.interop.kernbench.language.handle import CompletionHandle, TensorHandle
from tilewright.interop.kernbench.names import ProgramRegistry, build_names

DTYPES = "f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64"


def test_tl_is_a_tlcontext_with_every_name_of_the_table() -> None:
    found = []

    def kernel(tl: Any) -> None:
        found.append(isinstance(tl, TLContext))
        found.extend(
            callable(getattr(tl, name)) for names in KERNEL_NAMES.values() for name in names
        )

    with RuntimeContext("ahbm-small") as torch:
        launch(torch, kernel)
    assert len(found) > 30
    assert all(found)


def test_every_name_of_the_table_says_what_it_does() -> None:
    for names in KERNEL_NAMES.values():
        for function in names.values():
            assert function.__doc__ is not None
            assert function.__doc__.splitlines()[0].endswith(".")


def test_a_tl_made_by_hand_is_refused_at_its_first_use() -> None:
    tl = TLContext(pe_id=3, num_programs=8, scratch_size=1 << 20)
    found = r"found tl\.load of a TLContext that was made by hand.*; launch the kernel"
    with pytest.raises(ProgramError, match=found):
        tl.load(4096, (8,), "f16")


def test_handles_have_the_classes_of_pe_commands() -> None:
    def kernel(x_ptr: int, tl: Any) -> None:
        tile = tl.load(x_ptr, (8, 8), "f16")
        assert isinstance(tile, TensorHandle)
        assert isinstance(tl.ref(x_ptr, (8, 8), "f16"), TensorHandle)
        begun = tl.composite("gemm", tile, tile, x_ptr)
        assert isinstance(begun, CompletionHandle)
        tl.wait(begun)

    run(kernel, np.zeros((8, 8), np.float16))


@pytest.mark.parametrize("path", ["common.pe_commands", "common.ipcq_types"])
def test_no_command_and_no_handle_is_made_by_hand(path: str) -> None:
    for name, kind in build_names(ProgramRegistry()).table[f"kernbench.{path}"].items():
        with pytest.raises(ProgramError, match=f"^{name}: found a {name} made by hand"):
            kind(1, addr=2)  # type: ignore[operator]


def wrong_name(x_ptr: int, tl: Any) -> None:
    tl.lod(x_ptr, (8, 8), "f16")


def wrong_dtype(x_ptr: int, tl: Any) -> None:
    tl.load(x_ptr, (8, 8), "float16")


def wrong_axis(_: int, tl: Any) -> None:
    tl.program_id(2)


def wrong_shapes(x_ptr: int, tl: Any) -> None:
    tl.dot(tl.load(x_ptr, (8, 8)), tl.load(x_ptr, (4, 8)))


def no_float(_: int, tl: Any) -> None:
    tl.exp(tl.arange(4))


def ref_operand(x_ptr: int, tl: Any) -> None:
    tl.ref(x_ptr, (8, 8)) + 1


def no_address(x_ptr: int, tl: Any) -> None:
    (tl.load(x_ptr, (8, 8)) + 1).addr  # noqa: B018


def no_shape(x_ptr: int, tl: Any) -> None:
    tl.load(x_ptr)


def float_address(x_ptr: int, tl: Any) -> None:
    tl.load(x_ptr / 2, (4,))


def stored_number(x_ptr: int, tl: Any) -> None:
    tl.store(x_ptr, 3)


def waited_load(x_ptr: int, tl: Any) -> None:
    tl.wait(tl.load(x_ptr, (8, 8)))


def text_operand(x_ptr: int, tl: Any) -> None:
    tl.load(x_ptr, (8, 8)) + "1"


@pytest.mark.parametrize(("kernel", "message"), [
    (wrong_name, "found tl.lod, expected a name of the kernel language; did you mean load, log?"),
    (wrong_dtype, f"the dtype 'float16', expected one of {DTYPES}; did you mean \"f16\"?"),
    (wrong_axis, "found the axis 2, expected 0, the PE in its cube, or 1, the cube in its SIP"),
    (wrong_shapes, "found dot(fp16[8, 8], fp16[4, 8]), expected (..., m, k) and (..., k, n)"),
    (no_float, "found tl.exp of <TensorHandle of a tensor i32[4]>, expected floats; convert it"),
    (ref_operand, "<TensorHandle of a ref f16[8, 8]>, of which nothing has been moved"),
    (no_address, "the address of a computed value <TensorHandle of a tensor f16[8, 8]>"),
    (no_shape, "tl.load without a shape, expected a shape"),
    (float_address, "of type float as an address, expected an integer that counts bytes"),
    (stored_number, "3 of type int to store, expected a TensorHandle; make a tensor of a number"),
    (waited_load, "to wait for, expected something that was begun; pass what tl.composite"),
    (text_operand, "found '1' of type str as an operand, expected a TensorHandle or a number"),
])  # fmt: skip
def test_a_wrong_call_is_refused_with_its_line(kernel: Callable[..., Any], message: str) -> None:
    line = f"{__file__}:{kernel.__code__.co_firstlineno + 1} in {kernel.__name__}, program"
    with pytest.raises(KernelError, match=f"^{re.escape(line)}.*{re.escape(message)}"):
        run(kernel, np.zeros((8, 8), np.float16))


GUIDE = Path(__file__).parents[4] / "docs" / "guides" / "from-kernbench.md"


def call_text(name: str, function: Callable[..., Any]) -> str:
    parameters = inspect.signature(function).parameters.values()
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return f"{name}{inspect.Signature(plain)}"


def test_the_guide_has_each_family_of_names_with_their_parameters() -> None:
    table = GUIDE.read_text().partition("| family | names |")[2].partition("\n\n")[0]
    shown = {
        family: re.findall(r"`(.*?)`", names)
        for family, names in re.findall(r"^\| (\w+) \| (.*) \|$", table, re.MULTILINE)
    }
    assert shown == {
        family: [call_text(name, function) for name, function in names.items()]
        for family, names in KERNEL_NAMES.items()
    }

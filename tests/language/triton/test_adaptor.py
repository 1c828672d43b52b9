import subprocess
import sys
import types
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
import triton  # type: ignore[import-untyped]
import triton.language  # type: ignore[import-untyped]

from tests.kernels.source import user_helper as helper
from tests.kernels.source import user_kernel as kernel
from tests.language.bed import Array, Bed
from tilewright import language as tl
from tilewright.errors import KernelError
from tilewright.language.triton.adaptor import adapt_argument, adapt_kernel, is_triton_object

X = np.arange(-8, 8, dtype=np.float32)


def run(function: Any, *args: Any, grid: Any = (1,), x: Array = X, **kwargs: Any) -> Array:
    bed = Bed()
    out = bed.place(np.zeros_like(x))
    bed.launch(function, bed.place(x), out, *args, grid=grid, **kwargs)
    return bed.read(out)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (kernel.by_modules, X * 3 + 3),
        (kernel.by_names, X * 6 + 4),
        (kernel.by_constants, X * 4 + 5 + 7 + 6),
        (kernel.by_defaults, (X * 6 + 4) * 4),
        (kernel.by_recursion, X * 120),
        (kernel.by_closure, abs(X) + 11),
    ],
)
def test_helpers_constants_and_closures_mean_what_they_say(function: Any, expected: Array) -> None:
    np.testing.assert_array_equal(run(function, 16), expected)


def test_a_default_argument_can_be_given() -> None:
    np.testing.assert_array_equal(run(kernel.by_constants, 16, K=1), X + 5 + 7 + 6)


@pytest.mark.parametrize(("size", "is_even"), [(64, True), (50, False)])
def test_the_first_configuration_and_the_heuristics_choose(size: int, is_even: bool) -> None:
    x = np.arange(size, dtype=np.float32)
    found = run(
        kernel.by_decorators, size, grid=lambda meta: (triton.cdiv(size, meta["BLOCK"]),), x=x
    )
    np.testing.assert_array_equal(found, x * 3 + is_even)


def test_a_hook_of_a_configuration_is_refused() -> None:
    with pytest.raises(KernelError, match="a pre_hook, which works on tensors"):
        run(kernel.hooked)


@pytest.mark.parametrize("option", ["num_warps", "num_stages", "num_ctas"])
def test_options_of_a_compiler_say_nothing(option: str) -> None:
    options: dict[str, Any] = {option: 4}
    np.testing.assert_array_equal(run(kernel.by_recursion, 16, **options), X * 120)


def test_an_option_that_is_nobodys_is_refused() -> None:
    with pytest.raises(KernelError, match="unexpected keyword argument 'num_warp'"):
        run(kernel.by_recursion, 16, num_warp=4)


def test_no_module_and_no_function_is_changed() -> None:
    modules = (triton, triton.language, kernel, helper)
    before = [dict(vars(module)) for module in modules]
    globals_before = dict(kernel.by_names.fn.__globals__)
    run(kernel.by_names, 16)
    run(kernel.by_modules, 16)
    assert [dict(vars(module)) for module in modules] == before
    assert kernel.by_names.fn.__globals__ == globals_before
    assert kernel.by_names.fn.__globals__["store"] is triton.language.store


def test_a_helper_is_adapted_once_for_all_that_call_it() -> None:
    adapted = adapt_kernel(kernel.by_recursion, tl).function
    factorial = adapted.__globals__["factorial"]
    assert factorial.__globals__["factorial"] is factorial


def test_arguments_that_triton_made_become_ours() -> None:
    assert adapt_argument(triton.language.float16, tl) is tl.float16
    assert adapt_argument(triton.language.constexpr(5), tl) == 5
    assert isinstance(adapt_argument(helper.scaled, tl), types.FunctionType)
    assert adapt_argument(12, tl) == 12


def test_what_the_language_does_not_have_is_refused_by_name() -> None:
    def function(x_ptr: Any, out_ptr: Any) -> None:
        del x_ptr, out_ptr
        triton.language.no_such_function()

    with pytest.raises(AttributeError, match="no_such_function") as caught:
        run(function)
    assert "in program (0,) of function" in caught.value.__notes__[0]


def test_a_kernel_that_is_ready_is_taken_as_it_is() -> None:
    ready = adapt_kernel(kernel.by_names, tl)
    assert adapt_kernel(ready, tl) is ready


@pytest.mark.parametrize("what", [3, "kernel", None, triton.language])
def test_what_is_no_kernel_is_refused(what: Any) -> None:
    with pytest.raises(KernelError, match="as the kernel, expected a kernel"):
        Bed().launch(what)


def test_triton_objects_are_known_by_their_types_module() -> None:
    assert is_triton_object(triton.language)
    assert is_triton_object(kernel.by_names)
    assert not is_triton_object(np)
    assert not is_triton_object(kernel)


def test_a_kernel_runs_where_triton_is_not_installed(tmp_path: Path) -> None:
    """Objects with Triton's names do: the adaptor reads nothing of Triton's but attributes."""
    package = tmp_path / "triton"
    package.mkdir()
    (package / "__init__.py").write_text(
        dedent(
            """
            from triton import language

            class JITFunction:
                def __init__(self, fn):
                    self.fn = fn

            def jit(fn):
                return JITFunction(fn)
            """
        )
    )
    (package / "language.py").write_text("class constexpr: pass\n")
    script = tmp_path / "user.py"
    script.write_text(
        dedent(
            """
            import triton
            import triton.language as tl
            import numpy as np
            from tests.language.bed import Bed

            @triton.jit
            def double(x):
                return x + x

            @triton.jit
            def kernel(x_ptr, N: tl.constexpr):
                n = tl.arange(0, N)
                tl.store(x_ptr + n, double(tl.load(x_ptr + n)))

            bed = Bed()
            x = bed.place(np.arange(4, dtype=np.int32))
            bed.launch(kernel, x, 4)
            assert triton.__file__.startswith({path!r})
            assert bed.read(x).tolist() == [0, 2, 4, 6]
            """
        ).format(path=str(tmp_path))
    )
    root = Path(__file__).parents[3]
    environment = {"PYTHONPATH": f"{tmp_path}:{root}", "PATH": ""}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

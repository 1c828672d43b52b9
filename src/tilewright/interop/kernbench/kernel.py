"""From launch messages of KernBench to launches of kernels, whose language is an argument."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from types import FunctionType
from typing import Any

from tilewright.errors import KernelError, meant
from tilewright.host import RuntimeContext
from tilewright.interop.kernbench.language.context import LaunchedLanguage
from tilewright.interop.kernbench.message import (
    KernelLaunchMsg,
    KernelRef,
    ScalarArg,
    TensorArg,
    refuse,
    units_of,
)
from tilewright.interop.kernbench.message_send import Sent
from tilewright.language.kernel import LANGUAGE_PARAMETER, Kernel, kernel_of_function
from tilewright.language.triton.adaptor import is_triton_object
from tilewright.machine.coords import PeCoord
from tilewright.runtime.launch.bind import LaunchOptions
from tilewright.runtime.launch.launch import launch
from tilewright.runtime.request import LaunchReport
from tilewright.units import PS_PER_NS


def kernel_of(function: Callable[..., Any], name: str | None = None) -> Kernel:
    """Return the kernel of a function that was written for KernBench.

    The parameter ``tl``, wherever it stands, receives the language; without one the last parameter
    does, whatever its name. Every other parameter gets its argument as it is given, so that
    addresses and sizes are Python's integers.

    >>> def kernel(a_ptr, K, tl, DTYPE="f16"): ...
    >>> bound = kernel_of(kernel).bind((4096, 64), {"DTYPE": "f32"})
    >>> bound["a_ptr"], bound["K"], bound["DTYPE"], type(bound["tl"]).__mro__[1].__name__
    (4096, 64, 'f32', 'TLContext')
    """
    called = name or str(getattr(function, "__name__", type(function).__name__))
    where = f"kernel {called!r}"
    if is_triton_object(function):
        fix = "launch it from a program that does not import kernbench, or write it with tl.load"
        raise KernelError(where, "a kernel of Triton", "a plain function with tl", fix)
    if not callable(function):
        fix = "pass the kernel's function behind its name"
        raise KernelError(where, repr(function), "a function with a parameter tl", fix)
    parameters = list(inspect.signature(function).parameters)
    if not parameters:
        fix = "add tl as the last parameter"
        raise KernelError(where, "a function without parameters", "one that takes tl", fix)
    receives = LANGUAGE_PARAMETER if LANGUAGE_PARAMETER in parameters else parameters[-1]
    plain = frozenset(parameters)
    kernel = kernel_of_function(function, LaunchedLanguage(), plain, called, receives)
    return replace(kernel, function=_plain(function))


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of Python's that does what a method or a partial does."""
    return function if isinstance(function, FunctionType) else lambda **named: function(**named)


Kernels = Mapping[str, Callable[..., Any]]
SCALARS: Mapping[str, tuple[type, ...]] = {"i32": (int,), "f32": (int, float)}


def send_launch(host: RuntimeContext, kernels: Kernels, message: KernelLaunchMsg) -> Sent:
    """Run a registered kernel on the target PEs of one SIP; refuse first what cannot run."""
    function = _function(kernels, message)
    args = tuple(_argument(message, index) for index in range(len(message.args)))
    grid = host.machine.grid
    sip = _sip(message, grid.num_sips)
    cubes = units_of(message, "target_cubes", grid.num_cubes_per_sip)
    pes = units_of(message, "target_pe", grid.num_pes_per_cube)
    name = message.kernel_ref.name
    options = LaunchOptions(
        name,
        on=[PeCoord(sip, cube, pe) for cube, pe in product(cubes, pes)],
        carries_data=host.carries_data,
        earliest_start_ps=_start_ps(message),
    )
    host.deployments.reclaim()
    kernel = kernel_of(function, name)
    _check_count(kernel, len(args))
    pending = launch(host.driver, host.deployments, kernel, args, {}, options)
    facts = {"kernel": name, "sip": sip, "target_cubes": cubes, "target_pe": pes}
    return Sent((pending.request,), facts, lambda: _times(pending.report))


def _check_count(kernel: Kernel, count: int) -> None:
    """Refuse an argument for the last parameter, where that stands for the language."""
    if LANGUAGE_PARAMETER not in kernel.given and count > len(kernel.signature.parameters):
        (last,) = kernel.given
        found = f"{count} arguments for {kernel.name}{kernel.signature} and no parameter tl"
        expected = f"tl as a parameter: without one the last, {last}, stands for it"
        raise KernelError(f"kernel {kernel.name!r}", found, expected, "add tl as the last one")


def _times(report: LaunchReport) -> dict[str, Any]:
    """Return the parts of a launch's latency, which add up to ``total_ns``, and the slowest PE."""
    return {
        "dispatch_ns": report.dispatch_ps / PS_PER_NS,
        "execution_ns": report.execution_ps / PS_PER_NS,
        "completion_ns": report.completion_ps / PS_PER_NS,
        "pe_exec_ns": report.longest_pe_ps / PS_PER_NS,
        "num_programs": report.num_programs,
    }


def _function(kernels: Kernels, message: KernelLaunchMsg) -> Callable[..., Any]:
    ref = message.kernel_ref
    if not isinstance(ref, KernelRef) or not isinstance(ref.name, str):
        expected, fix = "KernelRef(name, kind)", "write KernelRef(name='...', kind='builtin')"
        raise refuse(message, "kernel_ref", repr(ref), expected, fix)
    if ref.kind != "builtin":
        found = f"kind={ref.kind!r}"
        fix = "register the function by its name: no code is loaded from memory"
        raise refuse(message, "kernel_ref", found, "kind='builtin'", fix)
    if ref.name not in kernels:
        fix = meant(ref.name[:80], kernels, "register it: register_kernel(name, function)")
        raise refuse(message, "kernel_ref", f"no kernel {ref.name!r}", "a registered name", fix)
    return kernels[ref.name]


def _argument(message: KernelLaunchMsg, index: int) -> int | float:
    """Return an argument as the kernel gets it: an address or a number."""
    argument, field = message.args[index], f"args[{index}]"
    match argument:
        case TensorArg(va_base=address):
            if type(address) is not int or address < 1:
                fix = "pass the va_base of a tensor that is deployed"
                raise refuse(message, field, f"va_base={address!r}", "a virtual address", fix)
            return address
        case ScalarArg(dtype=dtype, value=value):
            if dtype not in SCALARS:
                expected = " or ".join(map(repr, SCALARS))
                raise refuse(message, field, f"dtype={dtype!r}", expected, "write one of them")
            if not isinstance(value, SCALARS[dtype]):
                expected = "an int" if dtype == "i32" else "a number"
                raise refuse(message, field, f"{dtype} {value!r}", expected, "convert it")
            return value if dtype == "i32" else float(value)
    expected, fix = "TensorArg or ScalarArg", "wrap it: ScalarArg('i32', 8)"
    raise refuse(message, field, repr(argument), expected, fix)


def _sip(message: KernelLaunchMsg, num_sips: int) -> int:
    """Return the SIP that the message names, else the one that all its shards are on, else 0."""
    if message.target_sip is not None:
        named = set(units_of(message, "target_sip", num_sips))
    else:
        tensors = [each for each in message.args if isinstance(each, TensorArg)]
        named = {shard.sip for each in tensors for shard in each.shards} or {0}
    (first, *others) = sorted(named)
    if others or not 0 <= first < num_sips:
        found = f"shards on the SIPs {', '.join(map(str, sorted(named)))}"
        expected = f"one SIP from 0 to {num_sips - 1}"
        fix = "submit a message for each SIP, with target_sip= or the shards of that SIP alone"
        raise refuse(message, "args", found, expected, fix)
    return first


def _start_ps(message: KernelLaunchMsg) -> int:
    """Return the earliest start to the nearest picosecond; 0 where none is asked for."""
    start_ns = message.target_start_ns
    if start_ns is None:
        return 0
    is_number = isinstance(start_ns, int | float) and not isinstance(start_ns, bool)
    if not is_number or not 0 <= start_ns < 2**53:
        expected = "None, or a simulated time in ns from 0 on"
        raise refuse(message, "target_start_ns", repr(start_ns), expected, "correct it")
    return round(start_ns * PS_PER_NS)

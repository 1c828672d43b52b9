"""Workers of a host program: how they are spawned, and which SIP each of them works on."""

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, SupportsIndex
from weakref import WeakKeyDictionary

import numpy as np
from greenlet import GreenletExit, getcurrent, greenlet

from tilewright.collectives.work import Workers
from tilewright.errors import CollectiveError, RequestError


class DeviceSelector:
    """The SIPs that a context may use: all, or one."""

    def __init__(self, sips: tuple[int, ...], *, is_all: bool) -> None:
        self.sips = sips
        self.is_all = is_all

    @property
    def sip_index(self) -> int | None:
        """Of a single one; None for all."""
        return None if self.is_all else self.sips[0]

    def __str__(self) -> str:
        return "all" if self.is_all else f"sip:{self.sips[0]}"


def parse_device(text: object, num_sips: int) -> DeviceSelector:
    """From ``"all"`` or ``"sip:N"``.

    >>> str(parse_device("sip:1", 2)), parse_device("all", 2).sips
    ('sip:1', (0, 1))
    """
    if text == "all":
        return DeviceSelector(tuple(range(num_sips)), is_all=True)
    kind, _, number = str(text).partition(":")
    if kind == "sip" and number.isascii() and number.isdigit() and int(number) < num_sips:
        return DeviceSelector((int(number),), is_all=False)
    expected = f"'all' or 'sip:N' with N from 0 to {num_sips - 1}"
    raise RequestError("device", repr(text), expected, "correct the selector")


class Ahbm:
    """``torch.ahbm``: the SIP of the calling worker."""

    def __init__(self, device: DeviceSelector) -> None:
        self._device = device
        self._bound: WeakKeyDictionary[greenlet, int] = WeakKeyDictionary()

    def set_device(self, device: SupportsIndex) -> None:
        """Place tensors that name no SIPs on this one from now on, for this worker.

        Any integer will do, as of NumPy or torch; a truth value is refused.
        """
        try:
            sip = None if isinstance(device, bool | np.bool_) else index(device)
        except TypeError:
            sip = None
        if sip not in self._device.sips:
            sips = ", ".join(map(str, self._device.sips))
            fix = "name one of them, or make the context for all SIPs"
            raise RequestError("set_device", repr(device), f"one of the SIPs {sips}", fix)
        self._bound[getcurrent()] = sip

    def current_device(self) -> int | None:
        """None until the worker has set one."""
        return self._bound.get(getcurrent())


class Accelerator:
    """``torch.accelerator``: the same state under portable names."""

    def __init__(self, ahbm: Ahbm) -> None:
        self._ahbm = ahbm

    def set_device_index(self, device: SupportsIndex) -> None:
        self._ahbm.set_device(device)

    def current_device_index(self) -> int | None:
        return self._ahbm.current_device()


class Multiprocessing:
    """One process, one program of the hub for each rank."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers

    def spawn(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        nprocs: int = 1,
        join: bool = True,
        daemon: bool = False,
        start_method: str = "spawn",
        *,
        ended_by: type[BaseException] = GreenletExit,
    ) -> None:
        """Call ``fn(rank, *args)`` for every rank and wait for all of them.

        ``daemon`` and ``start_method`` are torch's, and about processes: here all workers share
        one. When a worker fails, ``ended_by`` is raised in the waits of all others.
        """
        del daemon, start_method
        if not join:
            fix = "leave join out; what a program does beside its workers it does before or after"
            raise CollectiveError("spawn", "join=False", "workers that are waited for", fix)
        self.workers.run(fn, args, nprocs, ended_by)

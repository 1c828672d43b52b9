"""Calls of the host inside a kernel."""

from collections.abc import Callable
from typing import Any

import pytest

from tilewright.errors import KernelError
from tilewright.host import DPPolicy, PeCoord, RuntimeContext

ONE = DPPolicy(num_sips=1)

CALLS: dict[str, Callable[[RuntimeContext, Any], object]] = {
    "launch": lambda torch, _: torch.launch(lambda: None, on=[PeCoord(0, 0, 0)]),
    "launch(wait=False)": lambda torch, _: torch.launch(lambda: None, wait=False),
    "zeros": lambda torch, _: torch.zeros(4, dp=ONE),
    "zeros, untimed": lambda torch, _: torch.zeros(4, dp=ONE, timed=False),
    "empty": lambda torch, _: torch.empty(4, dp=ONE),
    "numpy": lambda _, t: t.numpy(),
    "numpy, untimed": lambda _, t: t.numpy(timed=False),
    "fill_": lambda _, t: t.fill_(1),
    "copy_, untimed": lambda _, t: t.copy_(1, timed=False),
    "free": lambda _, t: t.free(),
    "wait_all": lambda torch, _: torch.wait_all(),
    "cleanup": lambda torch, _: torch.cleanup(),
    "install_ipcq": lambda torch, _: torch.install_ipcq("ring"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_the_host_inside_a_kernel_is_refused_with_its_line(name: str) -> None:
    torch = RuntimeContext("ahbm-small")
    tensor = torch.zeros(4, "i32", dp=ONE, name="t")

    def kernel() -> None:
        CALLS[name](torch, tensor)

    with pytest.raises(KernelError) as caught:
        torch.launch(kernel, on=[PeCoord(0, 0, 0)])
    assert "test_host_watch.py:" in caught.value.where
    assert "program (0, 0, 0) of kernel" in caught.value.where
    assert "inside a kernel" in caught.value.found
    assert len(torch.reports) == 0
    if name != "free":  # of which the tensor itself is gone
        assert tensor.numpy().tolist() == [0, 0, 0, 0]
    torch.launch(lambda: None, on=[PeCoord(0, 0, 0)])


def test_what_is_known_of_a_tensor_may_be_asked_for_inside_a_kernel() -> None:
    seen = []
    with RuntimeContext("ahbm-small") as torch:
        tensor = torch.zeros((4, 8), "i32", dp=ONE)

        def kernel() -> None:
            seen.append((tensor.shape, tensor.numel(), torch.machine.spec.name))

        torch.launch(kernel, on=[PeCoord(0, 0, 0)])
    assert seen == [((4, 8), 32, "ahbm-small")]

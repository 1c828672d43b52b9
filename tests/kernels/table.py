"""Every kernel case by name."""

from tests.kernels.case import KernelCase
from tests.kernels.elementwise_case import ELEMENTWISE
from tests.kernels.matmul_case import MATMULS
from tests.kernels.row_case import ROWS
from tests.kernels.shared_case import SHARED

__all__ = ("CASES",)

CASES: tuple[KernelCase, ...] = (*ELEMENTWISE, *MATMULS, *ROWS, *SHARED)

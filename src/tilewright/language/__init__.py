"""tl: what a kernel may say, its values and meaning; Triton adaptor."""

from types import SimpleNamespace
from typing import TYPE_CHECKING

from tilewright.language.block_type import PointerType
from tilewright.language.dtype import DTYPES
from tilewright.language.dtype import bfloat16 as bfloat16
from tilewright.language.dtype import float8e4nv as float8e4nv
from tilewright.language.dtype import float8e5 as float8e5
from tilewright.language.dtype import float16 as float16
from tilewright.language.dtype import float32 as float32
from tilewright.language.dtype import float64 as float64
from tilewright.language.dtype import int1 as int1
from tilewright.language.dtype import int4 as int4
from tilewright.language.dtype import int8 as int8
from tilewright.language.dtype import int16 as int16
from tilewright.language.dtype import int32 as int32
from tilewright.language.dtype import int64 as int64
from tilewright.language.dtype import uint8 as uint8
from tilewright.language.dtype import uint16 as uint16
from tilewright.language.dtype import uint32 as uint32
from tilewright.language.dtype import uint64 as uint64
from tilewright.language.kernel import Constexpr
from tilewright.language.library import FUNCTIONS, libdevice
from tilewright.language.library.control import *  # noqa: F403
from tilewright.language.library.creation import *  # noqa: F403
from tilewright.language.library.handle import *  # noqa: F403
from tilewright.language.library.libdevice import *  # noqa: F403
from tilewright.language.library.math import *  # noqa: F403
from tilewright.language.library.memory import *  # noqa: F403
from tilewright.language.library.reduction import *  # noqa: F403
from tilewright.language.library.shape import *  # noqa: F403

extra = SimpleNamespace(libdevice=libdevice, cuda=SimpleNamespace(libdevice=libdevice))
math = libdevice
constexpr = Constexpr
pointer_type = PointerType

if not TYPE_CHECKING:  # which reads lists alone, and takes the imports above for public as they are
    _names = [*FUNCTIONS, *(dtype.language_name for dtype in DTYPES)]
    __all__ = tuple(sorted([*_names, "constexpr", "extra", "math", "pointer_type"]))

"""What each op of the kernel language means, in NumPy and in charges. No time, no memory."""

from collections.abc import Mapping

from tilewright.language.meaning.arithmetic import ARITHMETIC
from tilewright.language.meaning.axis import ALONG_AXIS
from tilewright.language.meaning.bound import Meaning, build_table
from tilewright.language.meaning.convert import CASTS
from tilewright.language.meaning.creation import CREATIONS
from tilewright.language.meaning.dot import DOTS
from tilewright.language.meaning.elementwise import ELEMENTWISE
from tilewright.language.meaning.reduction import REDUCTIONS
from tilewright.language.meaning.shape import SHAPES

MEANINGS: Mapping[str, Meaning] = build_table(
    (*ALONG_AXIS, *ARITHMETIC, *CASTS, *CREATIONS, *DOTS, *ELEMENTWISE, *REDUCTIONS, *SHAPES)
)

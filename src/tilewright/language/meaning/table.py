"""Every op of the kernel language by name."""

from collections.abc import Mapping

from tilewright.language.meaning.arithmetic import ARITHMETIC
from tilewright.language.meaning.bound import Meaning, build_table
from tilewright.language.meaning.cast import CASTS
from tilewright.language.meaning.composite import COMPOSITES
from tilewright.language.meaning.constant import CONSTANTS
from tilewright.language.meaning.dot import DOTS
from tilewright.language.meaning.dot_scaled import SCALED_DOTS
from tilewright.language.meaning.fused import FUSED
from tilewright.language.meaning.integer import INTEGER
from tilewright.language.meaning.philox import RANDOM
from tilewright.language.meaning.reduction import REDUCTIONS
from tilewright.language.meaning.scan import SCANS
from tilewright.language.meaning.shape import SHAPES
from tilewright.language.meaning.sort import SORTS
from tilewright.language.meaning.unary import UNARY

MEANINGS: Mapping[str, Meaning] = build_table(
    (
        *ARITHMETIC,
        *CASTS,
        *COMPOSITES,
        *CONSTANTS,
        *DOTS,
        *FUSED,
        *INTEGER,
        *RANDOM,
        *REDUCTIONS,
        *SCALED_DOTS,
        *SCANS,
        *SHAPES,
        *SORTS,
        *UNARY,
    )
)

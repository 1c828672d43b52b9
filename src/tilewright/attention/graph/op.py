"""What an op is: a stateless definition with a pure rule for types."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, dataclass_transform

from tilewright.attention.graph.geometry import Geometry
from tilewright.attention.graph.type import FORMAT, DType, Leading, Side, ValueType
from tilewright.errors import OperandError

Types = tuple[ValueType, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """What an op may know beside its operands: the side, the sizes and the named variables."""

    side: Side
    geometry: Geometry
    variables: Mapping[str, ValueType] = field(default_factory=lambda: MappingProxyType({}))

    def per_page(
        self, shape: tuple[int, ...], dtype: DType, token_axes: tuple[int, ...] = ()
    ) -> ValueType:
        """A value with one entry per page: all pages of the row, or on the cache side the one."""
        leading = Leading.PAGES if self.side is Side.INDEXER else Leading.ONE
        return ValueType(FORMAT.RAGGED, leading, shape, dtype, token_axes)

    def per_row(self, shape: tuple[int, ...], dtype: DType) -> ValueType:
        return ValueType(FORMAT.BATCHED, Leading.ONE, shape, dtype)


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Op:
    """Base of all ops. Every subclass is made a frozen dataclass whose fields are its attributes.

    Its docstring is its entry in the op reference. Results live on nodes, never here, so that one
    op object may be used any number of times.
    """

    operands: ClassVar[tuple[str, ...]] = ()
    """Names of the operands. A last name that ends in ``...`` stands for one or more."""
    sides: ClassVar[frozenset[Side]] = frozenset(Side)
    """Where the op may be used."""
    spans_row: ClassVar[bool] = False
    """Whether the op needs more than the page at hand, whatever its attributes are."""
    dims: ClassVar[tuple[int, ...]] = ()
    """Values that the attribute ``dim`` may have, if the op has one."""
    minima: ClassVar[tuple[tuple[str, int], ...]] = ()
    """Attributes that are whole numbers, each with the least that it may be."""
    choices: ClassVar[Mapping[str, type[StrEnum]]] = MappingProxyType({})
    """Enumerations of attributes by name; members may be given by their names."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(frozen=True)(cls)
        kinds = {item.name: item.type for item in fields(cls) if isinstance(item.type, type)}
        cls.choices = {name: kind for name, kind in kinds.items() if issubclass(kind, StrEnum)}

    def __post_init__(self) -> None:
        dim = getattr(self, "dim", None)
        if self.dims and (type(dim) is not int or dim not in self.dims):
            expected = f"dim {' or '.join(map(str, self.dims))}"
            fix = "0 is the page axis, 1 rows, 2 columns"
            raise self.refuse("", f"dim={dim!r}", expected, fix)
        for name, kind in self.choices.items():
            value = getattr(self, name)
            if value not in list(kind):
                expected = f"one of {', '.join(kind)}"
                raise self.refuse("", f"{name}={value!r}", expected, f"change {name}")
            object.__setattr__(self, name, kind(value))  # still being made: nobody has seen it
        for name, least in self.minima:
            self.check_whole(name, least)

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def is_row_op(self) -> bool:
        """Whether the op needs more than the page at hand."""
        return self.spans_row or getattr(self, "dim", None) == 0

    def infer(self, inputs: Types, scope: Scope, /) -> ValueType:
        """The type of the result, once side and number of operands are known to fit. Pure."""
        raise NotImplementedError

    def result_type(self, inputs: Types, scope: Scope) -> ValueType:
        """The type of the result. Raises `OperandError` without a place."""
        names, count = self.operands, len(inputs)
        variadic = bool(names) and names[-1].endswith("...")
        if count != len(names) and not (variadic and count > len(names)):
            expected = f"{len(names)}{' or more' if variadic else ''}: {', '.join(names) or 'none'}"
            raise self.refuse("", f"{count} operands", expected, "pass the operands it takes")
        if scope.side not in self.sides:
            (only,) = self.sides
            found, expected = f"use in the {scope.side} side", f"use in the {only} side of a flow"
            raise self.refuse("", found, expected, "move it, or leave it out")
        if self.dims and getattr(self, "dim", None) == 0 and scope.side is Side.CACHE:
            expected, fix = "dim 1 or 2: it sees one page", "do it in forward_indexer"
            raise self.refuse("", "dim=0 on the cache side", expected, fix)
        return self.infer(inputs, scope)

    def check_whole(self, name: str, least: int) -> None:
        """Refuse an attribute that is no whole number of at least ``least``."""
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            expected = f"a whole number of at least {least}"
            raise self.refuse("", f"{name}={value!r}", expected, f"change {name}")

    def attributes(self) -> dict[str, object]:
        """Field names and values, in the order of their definition."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def refuse(self, operand: str, found: object, expected: str, fix: str) -> OperandError:
        """The error for an operand (or, with an empty operand, an attribute) that does not fit."""
        where = f"{self.name} operand {operand}" if operand else self.name
        return OperandError(where, str(found), expected, fix, op=self.name, operand=operand)

"""Between computed values and what memory holds: rounding, saturation, halves of bytes."""

from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.source.builder import Body, Operand, store_source
from tilewright.attention.graph import DType, ValueType

ROUNDINGS = {DType.FLOAT8_E4M3: "round_to_e4m3", DType.FLOAT8_E5M2: "round_to_e5m2"}
_TL_NAMES = {DType.FLOAT8_E4M3: "float8e4nv", DType.FLOAT8_E5M2: "float8e5"}


def tl_name(dtype: DType) -> str:
    """Return the name that kernels have for a type that is stored in whole bytes."""
    return _TL_NAMES.get(dtype, dtype.value)


def packed_bytes(value: ValueType) -> int:
    """Count the bytes of one entry whose elements are halves of bytes."""
    return -(-value.num_elements // 2)


def zero_of(dtype: DType) -> str:
    """Return 0 in the kind of a type: whole numbers do not become floats of one byte."""
    return "0.0" if dtype in ROUNDINGS else "0"


def computed(loaded: str, dtype: DType) -> str:
    """Convert what was loaded to the type that it is computed with."""
    if dtype is DType.BOOL:
        return f"{loaded} != 0"
    return f"{loaded}.to(tl.{dtype.computed})"


def converted(text: str, stored: DType, wanted: DType) -> str:
    """Convert a value to the type that it is multiplied in."""
    return text if stored is wanted else f"{text}.to(tl.{wanted})"


def load_packed(
    memory: str, entry: str, entry_bytes: int, flat: str, mask: str, initial: float
) -> str:
    """Load halves of bytes at flat positions of an entry, the lower half first, as int32."""
    place = f"{memory} + {entry} * {entry_bytes} + ({flat}) // 2"
    loaded = f"tl.load({place}, mask={mask}, other=0).to(tl.int32)"
    signed = f"((({loaded} >> (({flat}) % 2 * 4)) & 15) ^ 8) - 8"
    return signed if initial == 0 else f"tl.where({mask}, {signed}, {int(initial)})"


def store(
    body: Body, value: Operand, target: ValueType, memory: str, entry: str, condition: str = ""
) -> None:
    """Write a value to an entry of memory in the stored type of ``target``, rounded once."""
    conditions = [condition] if condition else []
    if target.dtype is DType.INT4:
        _store_packed(body, value, target, memory, entry, conditions)
        return
    place = body.place(memory, entry, target.shape, target.shape)
    conditions += body.inside(target.shape)
    body.add(store_source(place, _narrow(value, target.dtype), conditions))


def _narrow(value: Operand, dtype: DType) -> str:
    """Convert what the type holds exactly, so that no rounding is left to the store."""
    held = _held(value.name, dtype)
    if dtype in ROUNDINGS:
        return f"{held}.to(tl.{tl_name(dtype)})"
    return f"{held}.to(tl.int8)" if dtype in (DType.INT8, DType.BOOL) else held


def rounded(value: Operand, target: ValueType) -> str:
    """Round a value as it will be read back from memory of the type of ``target``."""
    rows, columns = target.shape
    name = value.name
    if value.type.shape != target.shape:
        name = f"tl.broadcast_to({name}, (1, {padded(rows)}, {padded(columns)}))"
    if target.dtype in (DType.FLOAT16, DType.BFLOAT16):
        return f"{name}.to(tl.{target.dtype}).to(tl.float32)"
    return _held(name, target.dtype)


def _held(name: str, dtype: DType) -> str:
    """Hold a value in the range of a type and in its steps, in the type that is computed with."""
    if dtype in ROUNDINGS:
        return f"{ROUNDINGS[dtype]}({name})"
    if dtype in (DType.INT8, DType.INT4):
        low, high = -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1
        return f"tl.minimum(tl.maximum({name}, {low}), {high})"
    return name


def _store_packed(
    body: Body, value: Operand, target: ValueType, memory: str, entry: str, conditions: list[str]
) -> None:
    """Store two neighbours of the flat entry in a byte; an odd one out has 0 beside it."""
    rows, columns = target.shape
    count = packed_bytes(target)
    byte = body.index(2, count)
    halves = (padded(rows), padded(columns))
    spread = f"({value.name}.shape[0], {halves[0]}, {halves[1]})"
    held = f"tl.broadcast_to({_narrow(value, DType.INT4)}, {spread})"
    flat = f"tl.reshape({held}, ({value.name}.shape[0], 1, {halves[0] * halves[1]}))"
    whole = body.set_new("codes", f"{flat} & 15")
    parts = []
    for half, wanted in enumerate(("low", "high")):
        name = body.new_name(wanted)
        place = body.set_new("place", f"tl.minimum({byte} * 2 + {half}, {rows * columns - 1})")
        source = f"{place} // {columns} * {halves[1]} + {place} % {columns}"
        extents = f"({value.name}.shape[0], 1, {padded(count)})"
        body.add(f"{name} = tl.gather({whole}, tl.broadcast_to({source}, {extents}), 2)")
        parts.append(name)
    low, high = parts
    if rows * columns % 2:
        high = f"tl.where({byte} * 2 + 1 < {rows * columns}, {high}, 0)"
    place = body.place(memory, entry, (1, count), (1, count))
    conditions += body.inside((1, count))
    body.add(store_source(place, f"({low} | ({high} << 4)).to(tl.uint8)", conditions))

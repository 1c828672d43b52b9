"""A Triton kernel as Triton's own front end compiles it, evaluated in NumPy: an oracle of scalars.

The front end needs no GPU. Its IR says of each operation on which types it works and how it
divides, shifts and extends; nothing here knows Triton's rules of promotion.
"""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

_DTYPES: Mapping[str, Any] = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
_LOCATION = re.compile(r"\s*loc\((?:[^()]|\([^()]*\))*\)")
_ARGUMENT = re.compile(r"%([\w-]+): ")
_NAME = re.compile(r"%[\w#-]+")


def ir_text(kernel: Any, signature: Mapping[str, str], constants: Mapping[str, Any]) -> str:
    """The IR of a jitted kernel; the target decides nothing that is compared."""
    from triton._C.libtriton import ir  # type: ignore[import-untyped]  # noqa: PLC0415
    from triton.backends.compiler import GPUTarget  # type: ignore[import-untyped]  # noqa: PLC0415
    from triton.compiler import ASTSource  # type: ignore[import-untyped]  # noqa: PLC0415
    from triton.compiler.compiler import make_backend  # type: ignore[import-untyped]  # noqa: PLC0415

    target = GPUTarget("cuda", 80, 32)
    backend = make_backend(target)
    options = backend.parse_options({"enable_fp_fusion": False})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    functions = backend.get_codegen_implementation(options)
    source = ASTSource(kernel, dict(signature), dict(constants))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Triton advises against operators that are compared here
        module = source.make_ir(target, options, functions, backend.get_module_map(), context)
    return str(module)


def evaluate(text: str, arguments: Mapping[str, Any]) -> None:
    """Run the first function of a module; an array is memory, which stores change."""
    lines = [_LOCATION.sub("", line).strip() for line in text.splitlines()]
    functions = {}
    for place, line in enumerate(lines):
        if line.startswith("tt.func"):
            name = line.partition("@")[2].partition("(")[0]
            functions[name] = (_ARGUMENT.findall(text.splitlines()[place]), place + 1)
    evaluator = _Evaluator(lines, functions)
    first = next(iter(functions))
    evaluator.call(first, [_argument(arguments[name]) for name in functions[first][0]])


@dataclass(frozen=True, slots=True)
class _Address:
    memory: Array
    offset: Any


def _argument(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    is_unsigned = value.dtype.kind == "u"
    return _Address(value.view(f"i{value.itemsize}") if is_unsigned else value, np.int64(0))


def _dtype(kind: str) -> Any:
    return _DTYPES[kind.removesuffix(">").rpartition("x")[2] if "tensor" in kind else kind]


@dataclass
class _Evaluator:
    lines: list[str]
    functions: Mapping[str, tuple[list[str], int]]
    values: dict[str, Any] = field(default_factory=dict)

    def call(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        names, start = self.functions[name]
        values = {f"%{key}": value for key, value in zip(names, arguments, strict=True)}
        return _Evaluator(self.lines, self.functions, values).block(start)[0]

    def block(self, place: int) -> tuple[list[Any], int]:
        """Run lines up to the end of a region: what it yields, and where it ends."""
        while True:
            line = self.lines[place]
            if line.startswith("}"):
                return [], place
            if line.startswith(("scf.yield", "tt.return")):
                end = place + 1
                while not self.lines[end].startswith("}"):
                    end += 1
                return self.operands(line.partition(":")[0]), end
            if line.startswith("scf.condition"):
                return self.operands(line.partition(" : ")[0]), self._end(place)
            if line.startswith("cf."):
                place = self._jump(line, place)
            elif line.startswith("^") or not line:
                place += 1
            else:
                place = self.statement(line, place)

    def _jump(self, line: str, place: int) -> int:
        """The block that a branch goes to, with its arguments bound."""
        targets = re.findall(r"\^bb\d+(?:\([^)]*\))?", line)
        if line.startswith("cf.cond_br"):
            targets = targets[:1] if self.operands(line)[0] else targets[1:]
        label, _, given = targets[0].partition("(")
        while not re.match(rf"\{label}\b", self.lines[place]):
            place += 1
        names = _NAME.findall(self.lines[place].partition("//")[0])
        self.values.update(zip(names, self.operands(given), strict=True))
        return place + 1

    def operands(self, text: str) -> list[Any]:
        return [self.values[name] for name in _NAME.findall(text)]

    def bind(self, result: str, found: Sequence[Any]) -> None:
        name, _, count = result.strip().partition(":")
        if count:
            self.values.update({f"{name}#{i}": value for i, value in enumerate(found)})
        elif name:
            self.values[name] = found[0]

    def statement(self, line: str, place: int) -> int:
        has_result = re.match(r"%[\w:-]+ = ", line) is not None
        result, _, rest = line.partition(" = ") if has_result else ("", "", line)
        op = rest.split(" ", 1)[0]
        nested = {"scf.for": self._for, "scf.if": self._if, "scf.while": self._while}
        if op in nested:
            return nested[op](result, rest, place)
        self.bind(result, self.operation(op, rest[len(op) :].strip()))
        return place + 1

    def _for(self, result: str, rest: str, place: int) -> int:
        index, start, stop, step, *pairs = _NAME.findall(rest)
        names, initial = pairs[::2], [self.values[name] for name in pairs[1::2]]
        end = self._end(place + 1)
        for number in range(*(int(self.values[each]) for each in (start, stop, step))):
            kind = np.asarray(self.values[start]).dtype
            self.values[index] = np.asarray(number).astype(kind)[()]
            self.values.update(zip(names, initial, strict=True))
            initial = self.block(place + 1)[0]
        self.bind(result, initial)
        return end + 1

    def _while(self, result: str, rest: str, place: int) -> int:
        pairs = _NAME.findall(rest.partition(" : ")[0])
        names, carried = pairs[::2], [self.values[name] for name in pairs[1::2]]
        middle = self._end(place + 1)
        inner = _NAME.findall(self.lines[middle + 1])
        while True:
            self.values.update(zip(names, carried, strict=True))
            goes_on, *carried = self.block(place + 1)[0]
            if not goes_on:
                break
            self.values.update(zip(inner, carried, strict=True))
            carried = self.block(middle + 2)[0]
        self.bind(result, carried)
        return self._end(middle + 1) + 1

    def _if(self, result: str, rest: str, place: int) -> int:
        end = self._end(place + 1)
        has_else = "else" in self.lines[end]
        last = self._end(end + 1) if has_else else end
        found: list[Any] = []
        if self.operands(rest)[0]:
            found = self.block(place + 1)[0]
        elif has_else:
            found = self.block(end + 1)[0]
        self.bind(result, found)
        return last + 1

    def _end(self, place: int) -> int:
        depth = 0
        while True:
            line = self.lines[place]
            if line.startswith("}") and depth == 0:
                return place
            depth += line.endswith("{") - line.startswith("}")
            place += 1

    def operation(self, op: str, text: str) -> list[Any]:
        if op == "tt.call":
            name = text.partition("@")[2].partition("(")[0]
            return self.call(name, self.operands(text.partition("(")[2]))
        body, _, kinds = text.rpartition(" : ") if " : " in text else (text, "", "i1")
        values = self.operands(body)
        if op in _MEMORY:
            return [_MEMORY[op](*values)]
        if op == "tt.make_range":
            return [_range(body)]
        group, name = op.split(".", 1)
        if op == "arith.constant":
            return [_constant(body.removesuffix(" ").partition(" {")[0], kinds)]
        if name in _CASTS:
            wanted = re.sub(r",.*", "", kinds).replace("->", "to").partition(" to ")[2]
            return [_CASTS[name](values[0], _dtype(wanted.strip()))]
        if group == "arith" and name in ("cmpi", "cmpf"):
            predicate = body.partition(",")[0].strip()
            return [_COMPARE[predicate.lstrip("o") if name == "cmpf" else predicate](*values)]
        return [_ARITH[name](*values)]


def _constant(text: str, kind: str) -> Any:
    dtype = _dtype(kind)
    text = text.removeprefix("dense<").removesuffix(">")
    if text in ("true", "false"):
        return np.bool_(text == "true")
    if text.startswith("0x") and np.dtype(dtype).kind not in "ib":
        width = np.dtype(dtype).itemsize * 8
        return np.asarray(int(text, 16)).astype(f"u{width // 8}").view(dtype)[()]
    number = int(text) if np.dtype(dtype).kind in "i" else float(text)
    return np.asarray(number).astype(dtype)[()]


def _unsigned(value: Any) -> Any:
    array = np.asarray(value)
    return array if array.dtype == np.bool_ else array.view(f"u{array.dtype.itemsize}")


def _as_unsigned(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Numbers are of the operands' dtype again; truth values stay."""

    def run(left: Any, right: Any) -> Any:
        found = np.asarray(function(_unsigned(left), _unsigned(right)))
        return found if found.dtype == np.bool_ else found.view(np.asarray(left).dtype)

    return run


def _bits(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Arithmetic that wraps; of one bit too."""

    def run(left: Any, right: Any) -> Any:
        if np.asarray(left).dtype != np.bool_:
            return function(left, right)
        return (function(np.int8(left), np.int8(right)) & 1).astype(np.bool_)

    return run


def _cut(left: Any, right: Any) -> Any:
    rest = np.fmod(left, right)
    return (left - rest) // right


def _wide(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Floats narrower than f32, computed there and rounded once."""

    def run(left: Any, right: Any) -> Any:
        kind = np.asarray(left).dtype
        if kind.itemsize > 2:
            return function(left, right)
        one, other = (np.asarray(each).astype(np.float32) for each in (left, right))
        return np.asarray(function(one, other)).astype(kind)

    return run


_ARITH: Mapping[str, Callable[..., Any]] = {
    "addi": _bits(np.add),
    "subi": _bits(np.subtract),
    "muli": _bits(np.multiply),
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "shli": np.left_shift,
    "shrsi": np.right_shift,
    "shrui": _as_unsigned(np.right_shift),
    "divsi": _cut,
    "remsi": np.fmod,
    "divui": _as_unsigned(np.floor_divide),
    "remui": _as_unsigned(np.remainder),
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "minui": _as_unsigned(np.minimum),
    "maxui": _as_unsigned(np.maximum),
    "addf": _wide(np.add),
    "subf": _wide(np.subtract),
    "mulf": _wide(np.multiply),
    "divf": _wide(np.divide),
    "remf": _wide(np.fmod),
    "minnumf": _wide(np.fmin),
    "maxnumf": _wide(np.fmax),
    "negf": np.negative,
    "select": np.where,
    "poison": lambda: None,
}


_ORDER: Mapping[str, Any] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


_COMPARE: Mapping[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "une": np.not_equal,
    **_ORDER,
    **{f"s{name}": function for name, function in _ORDER.items()},
    **{f"u{name}": _as_unsigned(function) for name, function in _ORDER.items()},
}


def _signed_bits(value: Any) -> Any:
    """int1 is -1 where it is sign-extended."""
    array = np.asarray(value)
    return -array.astype(np.int8) if array.dtype == np.bool_ else array


def _converted(value: Any, dtype: Any) -> Any:
    array = np.asarray(value)
    if np.dtype(dtype) == np.bool_:
        return (array.astype(np.int64) & 1).astype(np.bool_)
    return array.astype(dtype)


_CASTS: Mapping[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("trunci", "fptosi", "extf", "truncf", "fp_to_fp"), _converted),
    **dict.fromkeys(
        ("extsi", "sitofp"), lambda value, dtype: _converted(_signed_bits(value), dtype)
    ),
    **dict.fromkeys(("extui", "uitofp"), lambda value, dtype: _converted(_unsigned(value), dtype)),
    "bitcast": lambda value, dtype: np.asarray(value).view(dtype),
    "fptoui": lambda value, dtype: _converted(
        np.asarray(value).astype(f"u{np.dtype(dtype).itemsize}"), dtype
    ),
}


def _range(body: str) -> Array:
    end, start = (int(number) for number in re.findall(r"= (\d+)", body))
    return np.arange(start, end, dtype=np.int32)


def _store(address: _Address, value: Any) -> None:
    address.memory[address.offset] = value


_MEMORY: Mapping[str, Callable[..., Any]] = {
    "tt.load": lambda address: address.memory[address.offset],
    "tt.store": _store,
    "tt.addptr": lambda address, more: _Address(address.memory, address.offset + more),
    "tt.splat": lambda value: value,
}

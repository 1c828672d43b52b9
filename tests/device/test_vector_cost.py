import pytest

from tilewright.device.vector import COST_TABLE, CostClass, build_cost_table, cost_class_of
from tilewright.errors import RegistryError

STATED = {
    CostClass.SIMPLE: ("add", "mul", "fma", "lt", "select", "cast"),
    CostClass.COMPLEX: ("exp", "log", "sin", "cos", "div", "sqrt", "rsqrt"),
    CostClass.REDUCTION: ("sum", "max", "argmax", "cumsum"),
    CostClass.SORT: ("sort", "topk"),
    CostClass.MOVE: ("trans", "permute", "reshape", "gather"),
}


@pytest.mark.parametrize(("cost", "ops"), STATED.items())
def test_an_op_is_of_the_class_that_the_machine_s_table_states(
    cost: CostClass, ops: tuple[str, ...]
) -> None:
    assert {op: cost_class_of("pe0.vector", op) for op in ops} == dict.fromkeys(ops, cost)


def test_every_class_has_ops() -> None:
    assert set(COST_TABLE.values()) == set(CostClass) == set(STATED)


def test_an_op_in_two_classes_is_refused() -> None:
    ops = {CostClass.SIMPLE: "add exp", CostClass.COMPLEX: "log exp"}
    with pytest.raises(RegistryError, match="found op 'exp' in the classes simple and complex"):
        build_cost_table(ops)


def test_a_misspelt_op_is_refused_with_the_names_that_come_near() -> None:
    with pytest.raises(RegistryError) as caught:
        cost_class_of("pe0.vector", "rsqr")
    assert str(caught.value).startswith("pe0.vector: found op 'rsqr', expected one of abs, add, ")
    assert caught.value.fix == "did you mean 'rsqrt' or 'sqrt'?"


@pytest.mark.parametrize("composed", ["softmax", "sigmoid", "relu"])
def test_an_op_that_is_made_of_others_is_refused(composed: str) -> None:
    with pytest.raises(RegistryError, match=f"found op '{composed}'"):
        cost_class_of("pe0.vector", composed)


def test_what_is_no_name_is_refused() -> None:
    with pytest.raises(RegistryError, match=r"found op 7, expected one of abs.*; use a known op"):
        cost_class_of("pe0.vector", 7)  # type: ignore[arg-type]

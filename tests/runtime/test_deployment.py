"""What a run says of tensors that lie on fewer PEs than their policy names."""

import pytest

from tilewright.host import DPPolicy, RuntimeContext, Split

ROWS = DPPolicy(cube="row_wise", pe="row_wise")


def test_a_tensor_of_one_axis_under_row_wise_is_named_with_its_pe() -> None:
    with RuntimeContext("ahbm-small") as torch:
        torch.zeros(4096, "f16", dp=ROWS, name="x")
        (line,) = torch.notes
    assert line == (
        "tensor 'x' has one axis, which counts as one row: 'row_wise' does not divide it, so it "
        "lies on sip0.cube0.pe0; 'column_wise' divides it"
    )


def test_several_of_them_share_a_line() -> None:
    with RuntimeContext("ahbm-small") as torch:
        for name in "abcde":
            torch.empty(64, "f16", dp=ROWS, name=name)
        torch.empty(64, "f16", dp=DPPolicy(pe="row_wise"), name="f")
        (line,) = torch.notes
    assert line.startswith("tensors 'a', 'b', 'c', 'd' and 2 more have one axis")
    assert "lies on sip0.cube0.pe0 and 4 PEs each;" in line


@pytest.mark.parametrize(
    ("shape", "policy"),
    [
        ((4096,), DPPolicy(cube="column_wise", pe="column_wise")),
        ((4096,), DPPolicy(cube=Split(0), pe=Split(0))),
        ((4096,), DPPolicy()),
        ((4096,), DPPolicy(pe="row_wise", num_pes=1)),
        ((64, 64), ROWS),
        ((1, 4096), ROWS),  # said by the program: one row
    ],
)
def test_tensors_that_lie_as_their_policy_says_are_not_named(
    shape: tuple[int, ...], policy: DPPolicy
) -> None:
    with RuntimeContext("ahbm-small") as torch:
        torch.empty(shape, "f16", dp=policy)
        assert not torch.notes

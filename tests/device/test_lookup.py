import pytest

from tilewright.device.lookup import look_up
from tilewright.errors import RegistryError

TABLE = {"sum": 1, "max": 2, "min": 3}


def test_a_known_name_is_found() -> None:
    assert look_up("here", "op", "max", TABLE) == 2


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("mix", "did you mean 'min' or 'max'?"),
        ("sums", "did you mean 'sum'?"),
        ("quite else", "use a known op"),
        (3, "use a known op"),
    ],
)
def test_an_unknown_name_is_refused_with_those_that_come_near(name: object, fix: str) -> None:
    with pytest.raises(RegistryError) as caught:
        look_up("here", "op", name, TABLE)
    assert caught.value.args == ("here", f"op {name!r}", "one of max, min, sum", fix)

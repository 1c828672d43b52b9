from hypothesis import given
from hypothesis import strategies as st

from tilewright.evaluation.quality import pareto_front

POINTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12)


@given(POINTS)
def test_a_point_off_the_front_is_beaten_by_one_on_it(points: list[tuple[int, int]]) -> None:
    front = pareto_front(points)
    on_it = [point for point, kept in zip(points, front, strict=True) if kept]
    for point, kept in zip(points, front, strict=True):
        beaten = any(o[0] <= point[0] and o[1] >= point[1] and o != point for o in on_it)
        assert kept is not beaten

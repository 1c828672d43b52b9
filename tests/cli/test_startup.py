from tilewright.cli.startup import engine_line


def test_without_a_compiled_core_the_line_says_so_and_how_to_get_it() -> None:
    line = engine_line("reference", native_built=False)
    assert line.startswith("engine: reference (pure Python")
    assert "no compiled core" in line
    assert "install a C++ compiler" in line
    assert "\n" not in line


def test_a_reference_engine_that_was_chosen_is_not_reported_as_missing_its_core() -> None:
    line = engine_line("reference", native_built=True)
    assert line.startswith("engine: reference (pure Python")
    assert "no compiled core" not in line

import pytest

from tests.models.smollm2_loading import smollm2_on_one_thread

smollm2 = pytest.fixture(scope="session", name="smollm2")(smollm2_on_one_thread)

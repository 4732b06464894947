"""What the tests with real processes share."""

import pytest

from support.kernels import compile_kernels


@pytest.fixture(scope="session", autouse=True)
def machine_code() -> None:
    """Compiled and on disk before the first process that needs it starts its clock."""
    compile_kernels()

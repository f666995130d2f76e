"""Errors carry their message, every fault, and the exit code of their kind."""

import pytest

from totune.errors import ConfigError, DataError, ModelError, RunError, TotuneError


@pytest.mark.parametrize(
    ("error", "code"),
    [(DataError("x"), 2), (ModelError("x"), 2), (ConfigError("x"), 2), (RunError("x"), 1)],
)
def test_exit_codes(error: TotuneError, code: int):
    assert isinstance(error, TotuneError)
    assert error.exit_code == code


def test_a_config_error_carries_every_fault():
    error = ConfigError(["First fault.", "Second fault."])
    assert error.faults == ["First fault.", "Second fault."]
    assert str(error) == "First fault.\nSecond fault."


def test_one_fault_may_be_a_string():
    assert ConfigError("Only fault.").faults == ["Only fault."]

"""The commands, ready for all tests of them."""

from functools import cache
from unittest.mock import patch

import pytest
import typer.main


@pytest.fixture(scope="session", autouse=True)
def made_once():
    """Typer makes all commands anew for each call, which takes longer than most calls."""
    with patch("typer.main.get_command", cache(typer.main.get_command)):
        yield

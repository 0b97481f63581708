"""The examples in the docstrings."""

import doctest
import importlib

import pandas
import pytest

import vitrine

from .conftest import SPEC


@pytest.mark.parametrize("module", ["client", "command", "workbench"])
def test_examples(module: str) -> None:
    given = {"vitrine": vitrine, "pandas": pandas, "spec": SPEC}
    failed, tried = doctest.testmod(importlib.import_module(f"vitrine.{module}"), extraglobs=given)
    assert tried > 0
    assert failed == 0

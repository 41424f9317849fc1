"""Loading by name."""

from __future__ import annotations

import collections

import pytest

from hermes_agent.host.late import LIBRARIES, late, libraries


def test_an_attribute_or_a_whole_module_is_loaded() -> None:
    assert late("collections:OrderedDict") is collections.OrderedDict
    assert late("collections") is collections


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError):
        late("collections:Nothing")


@pytest.mark.parametrize("name", sorted(LIBRARIES))
def test_each_library_of_the_table_is_there_when_its_attribute_is_read(name: str) -> None:
    assert getattr(libraries, name).__name__ == LIBRARIES[name]

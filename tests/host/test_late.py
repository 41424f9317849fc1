"""Loading by name."""

from __future__ import annotations

import collections

import pytest

from hermes_agent.host.late import late


def test_an_attribute_or_a_whole_module_is_loaded() -> None:
    assert late("collections:OrderedDict") is collections.OrderedDict
    assert late("collections") is collections


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError):
        late("collections:Nothing")

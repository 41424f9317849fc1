"""The package's own face."""

import subprocess
import sys

import pytest

import hermes_agent
from hermes_agent.app import library


def test_the_library_is_reached_through_the_package():
    assert hermes_agent.Agent is library.Agent
    assert hermes_agent.Tool is library.Tool


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = hermes_agent.Nothing


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, hermes_agent; print(sorted({'msgspec', 'apsw', 'httpx2', 'asyncio'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"

"""The names of files lead nowhere else."""

import pytest

from hermes_agent.gateway.media import safe_name


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("a\\b\\c.txt", "c.txt"),
        ("..", "file"),
        ("", "file"),
        ("x$(rm).sh", "x_rm_.sh"),
        (".bashrc", "bashrc"),
    ],
)
def test_a_file_name_leads_nowhere_else(name: str, safe: str):
    assert safe_name(name) == safe

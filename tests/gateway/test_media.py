"""The names of files lead nowhere else."""

import pytest

from hermes_agent.gateway.media import picture_in, safe_name


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


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x89PNG\r\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", ""),
        (b"<html>", ""),
        (b"", ""),
    ],
)
def test_a_picture_is_known_by_how_it_begins(content: bytes, kind: str):
    assert picture_in(content) == kind

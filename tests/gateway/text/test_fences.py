"""Code blocks are found as Markdown has them: of more marks, of tildes, within each other, in lists."""

import pytest

from hermes_agent.gateway.text.fences import HARMLESS, Block, closed, open_at_end, opening, plainest, read

NESTED = "````markdown\n# Doc\n```python\nprint(1)\n```\nmore\n````\nAfter"


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("```\na\n```", ("a",)),
        ("```py\na\n~~~\n``\n```", ("a", "~~~", "``")),
        ("~~~ py x=1\n```\na\n```\n~~~~", ("```", "a", "```")),
        (NESTED, ("# Doc", "```python", "print(1)", "```", "more")),
        ("1. See:\n   ```\n   a\n     b\n   ```\n2. Then", ("a", "  b")),
        ("```\n    ```\n```", ("    ```",)),
        ("```\na\n```python\n```", ("a", "```python")),
        ("```\r\na\n```\r", ("a",)),
    ],
)
def test_the_lines_of_a_block(text: str, inside: tuple[str, ...]):
    (block,) = [piece for piece in read(text) if isinstance(piece, Block)]

    assert block.bare == inside
    assert block.ended
    assert open_at_end(text) is None
    assert closed(text) == text


@pytest.mark.parametrize("line", ["```code``` in a line", "``", "text ```", "- ```py"])
def test_what_is_no_beginning(line: str):
    assert opening(line) is None


def test_a_block_that_has_no_end_is_given_one():
    assert closed("See\n  ````py\n  a\n  ```\n") == "See\n  ````py\n  a\n  ```\n  ````"


def test_nothing_is_lost_by_reading():
    text = f"One\n{NESTED}\n\n~~~\nopen"

    assert "\n".join(piece if isinstance(piece, str) else piece.written for piece in read(text)) == text


def test_blocks_become_the_plainest():
    assert plainest(NESTED) == (f"```markdown\n# Doc\n{HARMLESS}python\nprint(1)\n{HARMLESS}\nmore\n```\nAfter")
    assert plainest("1. See\n   ~~~ python title=x\n   a\n  b\n   ~~~\nend") == "1. See\n```python\na\nb\n```\nend"
    assert plainest("~~~\nopen") == "```\nopen"


def test_words_that_fill_a_line_are_not_said_again():
    fence = opening(f"```{'x' * 100}")
    assert fence is not None
    assert fence.again == "```"

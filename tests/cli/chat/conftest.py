from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Say, Think
from hermes_agent.testing.faults import Truncate
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from hermes_agent.testing.scripted import Step, tries
from tests.cli.chat.terminal import Terminal

Open = Callable[..., Terminal]

TOUR = """# A tour

Words with **weight** and a Vec<String>.
日本語のテキストと絵文字 😀 が混ざった長い行です。折り返しの幅は正しいでしょうか。

- first item
- second item

| Name | 数量 |
|------|-----:|
| りんご | 3 |
| pear | 12 |

```python
def hello():
    return "hello"
```

The end of it.
"""

LESSON = "Publish each build with twine upload."
ANSWERS = {
    "tour": Answer(pieces=(Say(TOUR),), pace=Pace(between=0.002, characters=7)),
    "read": Answer(pieces=(Say("Let me look."), Call("read_file", {"path": "a.txt"}))),
    "both": Answer(pieces=(Call("read_file", {"path": "a.txt"}), Call("read_file", {"path": "none.txt"}))),
    "patch": Answer(pieces=(Call("patch", {"path": "a.txt", "old_string": "two", "new_string": "zwei"}),)),
    "think": Answer(pieces=(Think("Let me see what this could mean."), Say("I know now."))),
    "ask": Answer(pieces=(Call("approve", {"command": "rm -r build"}),)),
    "colour": Answer(pieces=(Call("colour", {}),)),
    "flaky": tries(
        Truncate(reply=Answer(pieces=(Say("It is void.\n\nAnd"),)), after=2),
        Answer(pieces=(Say("This counts."),)),
    ),
    "learn": Answer(pieces=(Call("memory", {"target": "memory", "action": "add", "content": LESSON}),)),
    "linger": Answer(pieces=(Say("slow " * 12),), pace=Pace(between=0.1, characters=5)),
    "hang": Answer(pieces=(Say("slow " * 300),), pace=Pace(between=0.1, characters=5)),
}


def script(heard: Heard) -> Step:
    """Answers by the last words."""
    words = heard.last.text
    if heard.last.role == "tool":
        return Answer(pieces=(Say("That is what I found."),))
    return ANSWERS.get(words.split()[0]) or Answer(pieces=(Say(f"You said: {words!r}"),))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    return folder


@pytest.fixture
def at_terminal(home: Path, project: Path) -> Iterator[Open]:
    """Opens terminals on a home whose model is a loopback server that answers by `script`."""
    with ExitStack() as closing:
        model = closing.enter_context(serving_in_thread(openai_model(script)))
        (home / "config.yaml").write_text(f"model:\n  default: custom/test-model\n  base_url: {model.url}\n")
        (home / ".env").write_text("CUSTOM_API_KEY=test-key\n")
        (home / ".env").chmod(0o600)

        def start(*arguments: str, **options: object) -> Terminal:
            return closing.enter_context(Terminal(*arguments, home=home, folder=project, **options))

        yield start

from hermes_agent.tools.files.listing import listing
from hermes_agent.tools.files.searching import Found, Hit
from tests.tools.bench import words

HITS = (Hit(path="a", number=1, text="x"), Hit(path="a", number=4, text="x"), Hit(path="b/c", number=2, text="x"))


def shown(mode: str, offset: int = 0, limit: int = 50, *, path: str = ".", cut: bool = False) -> str:
    return words(listing(Found(hits=HITS, cut=cut), path, mode, offset=offset, limit=limit))


def test_lines_counts_and_names():
    assert shown("content") == "a:1: x\na:4: x\nb/c:2: x"
    assert shown("count") == "a: 2\nb/c: 1"
    assert shown("files") == "a\nb/c"
    assert shown("files", path="./src/") == "src/a\nsrc/b/c"


def test_a_page_says_how_to_go_on():
    assert shown("content", limit=2) == "a:1: x\na:4: x\n[3 results; go on with offset=2]"
    assert shown("content", offset=2) == "b/c:2: x"
    assert shown("content", offset=9) == "There are only 3 results."
    assert shown("files", cut=True).endswith("[more than 2 results; go on with offset=2]")

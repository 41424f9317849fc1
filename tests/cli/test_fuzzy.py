from hermes_agent.cli.fuzzy import best

PATHS = ["src/app.py", "src/apple/pie.md", "tests/test_app.py", "docs/a_long_page.md", "src/mapper.py"]


def found(query: str) -> list[str]:
    return [PATHS[place] for place in best(query, PATHS)]


def test_the_beginning_of_a_name_comes_before_the_middle():
    assert found("app")[:2] == ["src/app.py", "tests/test_app.py"]
    assert found("app")[-1] == "src/mapper.py"


def test_letters_in_their_order_are_enough_where_they_are_near():
    assert found("alongp") == ["docs/a_long_page.md"]
    assert found("xq") == []
    assert best("model", ["mxxoxxdxxexxl"]) == []


def test_every_word_must_fit_and_nothing_typed_fits_all():
    assert found("tests app") == ["tests/test_app.py"]
    assert found("") == PATHS


def test_five_thousand_are_searched_within_a_frame():
    names = [f"vendor-{n % 40}/model-{n}-instruct" for n in range(5_000)]
    assert [names[place] for place in best("mo4999", names)] == ["vendor-39/model-4999-instruct"]

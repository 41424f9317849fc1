from __future__ import annotations

import json

import pytest

from hermes_agent.core.forms import Field, FieldType, Form, WrongAnswer, value_of

NAME = Field(name="name", title="Your name", required=True)
AGE = Field(name="age", type="integer")
SIZE = Field(name="size", type="choice", choices=("s", "m"), labels=("Small", "Medium"), default='"m"')


def test_a_form_is_asked_field_by_field():
    form = Form("Who are you?", (NAME, AGE, SIZE))

    assert form.text == "Who are you?\nYour name"
    assert form.choices == ("decline",)
    form.take("Ann")
    assert (form.text, form.choices) == ("age (a whole number)", ("skip", "decline"))
    form.take("skip")
    assert form.text == 'size [default: "m"]'
    assert form.choices == ("Small", "Medium", "default", "decline")
    form.take("default")

    assert not form.open
    assert json.loads(form.written) == {"name": "Ann", "size": "m"}


def test_what_does_not_fit_is_asked_again_with_the_reason():
    form = Form("", (AGE,))

    form.take("old")
    assert form.text == "'old' is not a whole number.\nage (a whole number)"
    form.take("7")

    assert json.loads(form.written) == {"age": 7}


def test_a_json_object_answers_all_of_it_and_defaults_fill_in():
    form = Form("", (NAME, AGE, SIZE))

    form.take('{"name": "Ann", "age": 7}')

    assert json.loads(form.written) == {"name": "Ann", "age": 7, "size": "m"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ('{"age": 7}', "name is missing."),
        ('{"name": "Ann", "age": "7"}', '"7" is no integer for age.'),
        ('{"name": "Ann", "age": true}', "true is no integer for age."),
        ('{"name": "Ann", "size": "xl"}', '"xl" is no choice for size.'),
        ('{"name": "Ann", "colour": 1}', "There is no field 'colour' here."),
    ],
)
def test_an_object_that_does_not_fit_takes_nothing(given: str, why: str):
    form = Form("", (NAME, AGE, SIZE))

    form.take(given)

    assert form.text.startswith(why)
    assert form.written == "{}"


def test_declining_ends_the_form():
    form = Form("", (NAME, AGE))

    form.take("Decline")

    assert form.is_declined
    assert not form.open


@pytest.mark.parametrize(
    ("kind", "said", "value"),
    [
        ("boolean", "Yes", True),
        ("boolean", "off", False),
        ("number", "1.5", 1.5),
        ("choice", "medium", "m"),
        ("choice", "1", "s"),
        ("choices", "s, Medium", ["s", "m"]),
        ("text", "{not json", "{not json"),
    ],
)
def test_words_become_values(kind: FieldType, said: str, value: object):
    assert value_of(Field(name="x", type=kind, choices=("s", "m"), labels=("Small", "Medium")), said) == value


@pytest.mark.parametrize(
    ("kind", "said"), [("boolean", "maybe"), ("number", "nan"), ("integer", "1.5"), ("choice", "xl"), ("text", "")]
)
def test_words_that_are_no_value_are_refused(kind: FieldType, said: str):
    with pytest.raises(WrongAnswer):
        value_of(Field(name="x", type=kind, choices=("s", "m")), said)


def test_each_type_takes_its_json_value():
    fields = (
        Field(name="a", type="boolean"),
        Field(name="b", type="number"),
        Field(name="c", type="choices", choices=("x", "y")),
        Field(name="d"),
    )
    form = Form("All", fields)
    form.take('{"a": true, "b": 1.5, "c": ["x"], "d": "w"}')
    assert json.loads(form.written) == {"a": True, "b": 1.5, "c": ["x"], "d": "w"}


def test_what_only_looks_like_an_object_is_words():
    form = Form("Who?", (NAME,))
    form.take("{Ann")
    assert json.loads(form.written) == {"name": "{Ann"}

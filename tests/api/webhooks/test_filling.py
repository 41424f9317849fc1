"""Payloads: fields, filters, prompts."""

from time import process_time

import pytest

from hermes_agent.api.webhooks.incoming import FORM, LONGEST_FIELD, fenced, field_of, filled, parsed
from hermes_agent.core.messages import Origin
from hermes_agent.host.inbound.message import Refused

PAYLOAD = {"a": {"b": [{"c": "x"}, 7]}, "yes": True, "none": None, "list": [1, 2]}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a.b.0.c", "x"),
        ("a.b.1", "7"),
        ("a.b.9", ""),
        ("a.b.99999999999999", ""),
        ("a.x", ""),
        ("yes", "true"),
        ("none", ""),
        ("list", "[1,2]"),
        ("a.b.0.c.d", ""),
        ("", ""),
    ],
)
def test_a_field_is_found_by_its_name(name, value):
    assert field_of(PAYLOAD, name) == value


def test_a_prompt_keeps_the_owner_s_words_and_the_outside_s_apart():
    parts = filled("Event {event}: {a.b.0.c} of {gone}.", PAYLOAD, "push")
    assert [(part.text, part.origin) for part in parts] == [
        ("Event ", Origin.OWNER),
        ("push", Origin.WEB),
        (": ", Origin.OWNER),
        ("x", Origin.WEB),
        (" of ", Origin.OWNER),
        (".", Origin.OWNER),
    ]


def test_a_field_cannot_bring_slots_of_its_own_and_is_cut():
    parts = filled("{a}", {"a": "{payload}" + "x" * LONGEST_FIELD, "secret": "s3cret"}, "")
    assert parts[0].text.startswith("{payload}")
    assert "s3cret" not in parts[0].text
    assert parts[0].text.endswith(f"[cut: {LONGEST_FIELD + 9:,} characters]")


def test_without_a_prompt_all_of_it_is_told():
    text = "".join(part.text for part in filled("", PAYLOAD, "push"))
    assert "`push`" in text
    assert '"c": "x"' in text


def test_a_form_holds_the_payload_in_a_field():
    assert parsed(b"payload=%7B%22a%22%3A1%7D", FORM) == {"a": 1}


def test_a_form_of_very_many_fields_is_refused_at_once():
    began = process_time()

    with pytest.raises(Refused):
        parsed(b"a=%41&" * 166_000 + b"payload=1", FORM)

    assert process_time() - began < 0.2


def test_what_is_nested_deeply_is_not_indented_a_thousand_times():
    began = process_time()

    parts = filled("{payload}", parsed(b"[" * 900 + b"1," * 400_000 + b"1" + b"]" * 900, ""), "")

    assert process_time() - began < 1
    assert parts[0].text.endswith("[cut: 801,801 characters]")


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 200_000, b"\xff", b"nan"])
def test_what_is_no_json_is_refused(body):
    for kind in ("application/json", FORM):
        with pytest.raises(Refused) as refused:
            parsed(body, kind)
        assert refused.value.status == 400


def test_a_model_is_told_what_comes_from_outside_and_where_it_ends():
    parts = fenced(filled("Look at {a.b.0.c}.", PAYLOAD, ""), "k3y")
    words = [part.text for part in parts]

    assert "no orders" in words[0]
    assert words[1:] == ["Look at ", '<outside mark="k3y">', "x", '</outside mark="k3y">', "."]
    assert [part.text for part in parts if part.origin is Origin.WEB] == ["x"]
    assert fenced(filled("Good morning.", PAYLOAD, ""), "k3y") == filled("Good morning.", PAYLOAD, "")


def test_a_report_without_an_event_is_told_without_one():
    assert filled("", {}, "")[0].text == "A webhook reports:\n\n"

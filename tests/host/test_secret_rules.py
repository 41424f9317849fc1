"""What looks like a key of a well-known service, where it stands, and what only looks a little like one."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from bench.secret_samples import CONTEXTS, samples, value_of
from hermes_agent.host import secret_rules
from hermes_agent.host.secret_rules import hide_keys, key_places, rules

TOKENS = samples(11)
UNWRAPPED = [name for name in CONTEXTS if "wrapped" not in name]


def hidden(text: str) -> str:
    return hide_keys(text, lambda label, _: label, "[secret]")


@pytest.mark.parametrize("context", UNWRAPPED)
def test_a_key_of_each_service_is_hidden_where_it_stands(context: str) -> None:
    shown = {kind: hidden(CONTEXTS[context](sample)) for kind, sample in TOKENS.items()}

    assert [kind for kind, text in shown.items() if value_of(kind, TOKENS[kind]) in text] == []


def test_a_key_that_is_wrapped_or_coloured_inside_is_hidden_to_its_end() -> None:
    key = TOKENS["GitHub personal"]

    assert hidden(f"{key[:20]}\n{key[20:]}\nnext") == "[secret]\nnext"
    assert hidden(f"{'a ' * 37}{key[:5]}\n{key[5:]} b") == f"{'a ' * 37}[secret] b"
    assert hidden(f"{'a ' * 26}{key[:-2]}\n{key[-2:]} b") == f"{'a ' * 26}[secret] b"
    assert hidden(f"words\n{TOKENS['AWS id'][:10]}\n{TOKENS['AWS id'][10:]}\nnext") == "words\n[secret]\nnext"
    assert hidden(f"a: {key[:20]}\r\n    {key[20:]} b") == "a: [secret] b"
    assert hidden(f"{key[:9]}\x1b[01;31m{key[9:]}\x1b[m") == "[secret]\x1b[m"
    assert hidden(f"{TOKENS['PyPI'][:90]}\n{TOKENS['PyPI'][90:]}\nnext") == "[secret]\nnext"


def test_a_private_key_is_hidden_without_its_end_with_numbers_of_lines_and_in_json() -> None:
    key = TOKENS["private key"]
    numbered = "\n".join(f"{at}|{line}" for at, line in enumerate(key.splitlines(), 1))

    assert hidden(f"a\n{key}\nb") == "a\n[secret]\nb"
    assert hidden(f"a\n{key[:700]}") == "a\n[secret]"
    assert hidden(f"{numbered}\n30|b") == "1|[secret]\n30|b"
    assert json.loads(hidden(json.dumps({"key": f"{key}\n", "next": 1}))) == {"key": "[secret]\n", "next": 1}


@pytest.mark.parametrize(
    "text",
    [
        "risk-assessment-of-the-large-system task-sk-1 AKIA ghp_x npm_config_registry hf_hub_download",
        "commit 4f1e2d3c4b5a69788796a5b4c3d2e1f0a9b8c7d6, 123e4567-e89b-12d3-a456-426614174000",
        "https://user:password@host https://me:${TOKEN}@host postgres://app:secret@db postgresql://u:%s@h",
        "password=os.environ['X'] token = self.next_token() api_key: str = base64.b64encode(x)",
        "token: https://example.com/a1B2c3 secret_key=your-key-2 password: <password> PASSWORD=$PASSWORD1",
        "-----BEGIN PRIVATE KEY----- begins a key; -----BEGIN CERTIFICATE----- does not",
        "sk-ecdsa-sha2-nistp256@openssh.com s.startswith('a') 12:30:45 sha512-" + "Ab1+" * 21 + "Ab==",
    ],
)
def test_what_is_no_key_is_left_alone(text: str) -> None:
    assert hidden(text) == text


def test_a_large_text_is_looked_through_as_a_small_one() -> None:
    text = "".join(f"{kind}:\n{sample}\n" for kind, sample in TOKENS.items())
    filler = "2026-01-01 nothing of interest happened here at all\n" * (2000)

    assert hidden(filler + text) == filler + hidden(text)


def test_places_are_in_order_and_those_that_overlap_are_hidden_once() -> None:
    text = f"password={TOKENS['GitHub personal']} https://a:{TOKENS['Stripe secret']}@b"

    places = key_places(text)

    assert places == sorted(places)
    assert hidden(text) == "password=[secret] https://a:[secret]@b"


@pytest.mark.parametrize(
    "sign", [" ", "\n", "a", "a\n", ":", "-----BEGIN PRIVATE KEY-----", "password=", "://a:", "eyJ"]
)
def test_no_text_takes_long(sign: str) -> None:
    text = sign * (400_000 // len(sign))
    began = time.process_time()
    hidden(text)

    assert time.process_time() - began < 5


def test_each_rule_says_whence_it_is() -> None:
    plain = json.loads(Path(secret_rules.__file__).with_suffix(".json").read_bytes())

    assert len(rules()) == len(plain["rules"]) == len({rule["name"] for rule in plain["rules"]})
    assert {rule["from"] for rule in plain["rules"]} == {"secretlint", "detect-secrets", "own"}
    assert "MIT" in plain["about"]
    assert "Apache-2.0" in plain["about"]

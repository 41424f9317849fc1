"""Made-up keys of well-known services, in the alphabets and lengths of their vendors, and where they stand in texts."""

from __future__ import annotations

import base64
import json
import random
import string
import zlib
from collections.abc import Callable, Mapping
from urllib.parse import quote

ALNUM = string.ascii_letters + string.digits
URLSAFE, HEX, BASE64 = ALNUM + "-_", string.digits + "abcdef", ALNUM + "+/"
UPPER32 = string.ascii_uppercase + "234567"
DIGITS = string.digits


def samples(seed: int) -> dict[str, str]:
    """A key of each kind by its name; two seeds give other keys. None is written out here: hosts of code look for
    them."""
    draw = random.Random(seed)

    def of(alphabet: str, count: int) -> str:
        return "".join(draw.choices(alphabet, k=count))

    def b64(raw: bytes) -> str:
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    def github(prefix: str) -> str:
        body = of(ALNUM, 30)
        return f"{prefix}_{body}{_base62(zlib.crc32(body.encode()))}"

    uuid = "-".join(of(HEX, count) for count in (8, 4, 4, 4, 12))
    pem = base64.b64encode(draw.randbytes(1190)).decode()
    lines = "\n".join(pem[at : at + 64] for at in range(0, len(pem), 64))
    key = f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----"
    head = b64(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    claims = b64(json.dumps({"sub": of(DIGITS, 10), "iat": 1_700_000_000}).encode())
    snowflake = b64(of("12345678", 1).encode() + of(DIGITS, 17).encode())
    account = {"type": "service_account", "private_key_id": of(HEX, 40), "private_key": f"{key}\n"}
    return {
        "GitHub personal": github("ghp"),
        "GitHub OAuth": github("gho"),
        "GitHub user": github("ghu"),
        "GitHub server": github("ghs"),
        "GitHub refresh": "ghr_" + of(ALNUM, 76),
        "GitHub fine-grained": f"github_pat_{of(ALNUM, 22)}_{of(ALNUM, 59)}",
        "GitLab personal": "glpat-" + of(URLSAFE, 20),
        "GitLab runner": "glrt-" + of(URLSAFE, 20),
        "GitLab job": f"glcbt-{of(HEX, 2)}_{of(URLSAFE, 20)}",
        "Stripe secret": "sk_live_" + of(ALNUM, 24),
        "Stripe restricted": "rk_live_" + of(ALNUM, 99),
        "Stripe test": "sk_test_" + of(ALNUM, 99),
        "Telegram": f"{of('123456789', 10)}:AA{of(URLSAFE, 33)}",
        "Discord": f"{snowflake}.G{of(URLSAFE, 5)}.{of(URLSAFE, 38)}",
        "Slack bot": f"xoxb-{of(DIGITS, 12)}-{of(DIGITS, 13)}-{of(ALNUM, 24)}",
        "Slack app": f"xapp-1-A{of(UPPER32, 10)}-{of(DIGITS, 13)}-{of(HEX, 64)}",
        "Slack webhook": f"https://hooks.slack.com/services/T{of(UPPER32, 10)}/B{of(UPPER32, 10)}/{of(ALNUM, 24)}",
        "npm": "npm_" + of(ALNUM, 36),
        "PyPI": "pypi-AgEIcHlwaS5vcmc" + of(URLSAFE, 140),
        "SendGrid": f"SG.{of(URLSAFE, 22)}.{of(URLSAFE, 43)}",
        "Twilio key": "SK" + of(HEX, 32),
        "Hugging Face": "hf_" + of(string.ascii_letters, 34),
        "Azure storage": (
            f"DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={of(BASE64, 86)}==;EndpointSuffix=core.example"
        ),
        "Azure AD": f"{of(ALNUM, 3)}8Q~{of(ALNUM + '_-.', 34)}",
        "Azure SAS": f"https://shop.example/c?sv=2023-01-03&se=2027-01-01&sig={quote(of(BASE64, 43) + '=', safe='')}",
        "AWS id": "AKIA" + of(UPPER32, 16),
        "AWS secret": f"aws_secret_access_key = {of(BASE64, 40)}",
        "Google service account": json.dumps(account),
        "Google API": "AIza" + of(URLSAFE, 35),
        "OpenAI": f"sk-proj-{of(URLSAFE, 74)}T3BlbkFJ{of(URLSAFE, 74)}",
        "OpenAI old": f"sk-{of(ALNUM, 20)}T3BlbkFJ{of(ALNUM, 20)}",
        "Anthropic": f"sk-ant-api03-{of(URLSAFE, 93)}AA",
        "Mailgun": "key-" + of(HEX, 32),
        "Mailgun new": f"{of(HEX, 32)}-{of(HEX, 8)}-{of(HEX, 8)}",
        "Shopify": "shpat_" + of(HEX, 32),
        "Square": "sq0csp-" + of(URLSAFE, 43),
        "Square access": "EAAA" + of(URLSAFE, 60),
        "DigitalOcean": "dop_v1_" + of(HEX, 64),
        "Heroku": "HRKU-AA" + of(URLSAFE, 58),
        "Heroku old": f"HEROKU_API_KEY={uuid}",
        "Dropbox": "sl.u." + of(URLSAFE, 140),
        "Linear": "lin_api_" + of(ALNUM, 40),
        "Notion": f"ntn_{of(DIGITS, 11)}{of(ALNUM, 35)}",
        "Notion old": "secret_" + of(ALNUM, 43),
        "Atlassian": f"ATATT3xFfGF0{of(URLSAFE, 170)}={of(HEX, 8).upper()}",
        "Databricks": "dapi" + of(HEX, 32),
        "Vault": "hvs." + of(URLSAFE, 95),
        "Vault old": "s." + of(ALNUM, 24),
        "Cloudflare": f"CLOUDFLARE_API_TOKEN={of(URLSAFE, 40)}",
        "private key": key,
        "JWT": f"{head}.{claims}.{of(URLSAFE, 43)}",
        "password in an address": f"https://deploy:{of(ALNUM, 14)}@git.shop.org/shop.git",
        "address of a database": f"postgresql://shop:{of(ALNUM + '!-_', 16)}@db.shop.org:5432/shop",
        "password": f"password={of(ALNUM + '!%^+', 12)}{of(DIGITS, 2)}",
        "Twilio secret": f"TWILIO_AUTH_TOKEN={of(HEX, 32)}",
    }


WITH_NAME = {
    "Slack webhook": "services/",
    "Azure storage": "AccountKey=",
    "Azure SAS": "sig=",
    "AWS secret": " = ",
    "Heroku old": "=",
    "Cloudflare": "=",
    "password in an address": "deploy:",
    "address of a database": "shop:",
    "password": "=",
    "Twilio secret": "=",
    "Google service account": '"private_key": "-----BEGIN PRIVATE KEY-----\\n',
}
"""Kinds that are seen with what stands around them: after this the secret begins."""


def value_of(kind: str, sample: str) -> str:
    """What of a sample may never be seen: twelve characters and more of the secret itself."""
    secret = sample.split(WITH_NAME[kind], 1)[1] if kind in WITH_NAME else sample
    for end in ("@", ";EndpointSuffix", "\\n"):
        secret = secret.split(end, 1)[0]
    if kind == "private key":
        return secret.splitlines()[5]
    return secret[-20:] if len(secret) > 20 else secret


def _wrapped(text: str) -> str:
    middle = len(text) // 2
    return f"{text[:middle]}\n{text[middle:]}\nand more"


def _in_columns(text: str, columns: int = 80) -> str:
    """As a terminal breaks a long line: somewhere inside of the key, and at its full width."""
    inside = 1 + zlib.crc32(text.encode()) % (min(len(text.split("\n", 1)[0]), columns) - 1)
    line = ("the value that was asked for on Monday is " * 2)[: columns - inside - 1] + f" {text} and more words"
    return "\n".join(part[at : at + columns] for part in line.split("\n") for at in range(0, len(part), columns))


CONTEXTS: Mapping[str, Callable[[str], str]] = {
    "bare": str,
    "a line of .env": lambda text: f"A=1\nSOME_VALUE={text}\nB=2",
    "JSON": lambda text: json.dumps({"a": 1, "value": text, "next": "words"}),
    "YAML": lambda text: f"steps:\n  - value: {text}\n    next: words",
    "colours": lambda text: f"\x1b[1m\x1b[32m{text}\x1b[0m done",
    "a log": lambda text: f"2026-01-01T12:00:00Z INFO shop: got {text}, going on",
    "JSON in a log": lambda text: json.dumps({"text": f"it says:\n{text}\nand more"}),
    "wrapped": _wrapped,
    "wrapped and set in": lambda text: _wrapped(text).replace("\n", "\n    "),
    "wrapped at 80 columns": _in_columns,
    "an address": lambda text: f"GET /hook?value={quote(text, safe='')}&next=1",
    "Markdown": lambda text: f"Use `{text}` or **{text}**.",
}


def _base62(number: int) -> str:
    digits = ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = (DIGITS + string.ascii_uppercase + string.ascii_lowercase)[digit] + digits
    return digits

"""Markdown as Telegram's MarkdownV2, in which every sign that is not meant must be escaped."""

from __future__ import annotations

import re

from hermes_agent.gateway.text.markdown import Dialect, rendered

RESERVED = str.maketrans({sign: f"\\{sign}" for sign in "_*[]()~`>#+-=|{}.!\\"})
IN_CODE = re.compile(r"([`\\])")
IN_LINK = re.compile(r"([)\\])")
NAME = re.compile(r"(?<![\w@.])@(?=\w)")
OWN_SCHEME = "tg:"
"""Links of Telegram's own mention people by their ids, and press what a person would have to."""
UNMEANT, WIDE_SIGN = "@\N{WORD JOINER}", "\N{FULLWIDTH COMMERCIAL AT}"
LONGEST = 4096


def formatted(text: str) -> str:
    """The text for `parse_mode=MarkdownV2`: names of people do not become mentions."""
    marked = rendered(text, MARKDOWN_V2)
    return marked if _has_room(text) else marked.replace(UNMEANT, WIDE_SIGN)


def escaped(text: str) -> str:
    """Words without any meaning to Telegram."""
    return NAME.sub(UNMEANT, text).translate(RESERVED)


def unmeant(text: str) -> str:
    """The text as it is, but that names of people do not become mentions."""
    return NAME.sub(UNMEANT if _has_room(text) else WIDE_SIGN, text)


def _has_room(text: str) -> bool:
    """Whether a message still holds it with a sign more at each name."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2 + text.count("@") <= LONGEST


def _link(shown: str, address: str) -> str:
    if address.lower().startswith(OWN_SCHEME):
        return f"{shown} \\({escaped(address)}\\)"
    return f"[{shown}]({IN_LINK.sub(chr(92) * 2 + chr(92) + '1', address)})"


MARKDOWN_V2 = Dialect(
    escape=escaped,
    code=lambda text: IN_CODE.sub(r"\\\1", text),
    link=_link,
    quote=">",
    languages=True,
)

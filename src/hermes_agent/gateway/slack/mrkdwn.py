"""Slack's own markup: Markdown written in it, and what people write read out of it."""

from __future__ import annotations

import re

from hermes_agent.gateway.text.spans import heading, respanned

CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
LINK = re.compile(r"\[([^\[\]\n]+)\]\((https?://[^\s()]+(?:\([^\s()]*\)[^\s()]*)*)\)")
BOLD = re.compile(r"(?P<bold>\*\*)(?=\S)|(?P<heavy>__)(?=\S)")
ITALIC = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?![\w*])")
STRUCK = re.compile(r"(?P<gone>~~)(?=\S)")
ENDS = {
    "bold": re.compile(r"(?<=\S)\*\*"),
    "heavy": re.compile(r"(?<=\S)__"),
    "gone": re.compile(r"(?<=\S)~~"),
}
LIST = re.compile(r"^([^\S\n]*)[*+-][^\S\n]+", re.MULTILINE)
LANGUAGE = re.compile(r"^```[\w+#.-]*\n")
MARK = re.compile(r"<([^<>]+)>")


def mrkdwn(text: str) -> str:
    """Markdown as Slack shows it. `&`, `<` and `>` are escaped, so no text mentions anybody."""
    kept: list[str] = []

    def keep(made: str) -> str:
        kept.append(made)
        return f"\0{len(kept) - 1}\0"

    text = text.replace("\0", "").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = CODE.sub(lambda found: keep(LANGUAGE.sub("```\n", found[0])), text)
    text = LINK.sub(lambda found: keep(f"<{found[2].replace('|', '%7C')}|{found[1]}>"), text)
    text = re.sub(r"^&gt;", ">", text, flags=re.MULTILINE)
    text = "\n".join(
        keep(f"*{words.replace('*', '')}*") if line.startswith("#") and (words := heading(line)) else line
        for line in text.split("\n")
    )
    text = LIST.sub(r"\1• ", text)
    text = "\n".join(respanned(line, BOLD, ENDS, lambda _, __, words: f"\1{words}\1") for line in text.split("\n"))
    text = ITALIC.sub(r"_\1_", text).replace("\1", "*")
    text = "\n".join(respanned(line, STRUCK, ENDS, lambda _, __, words: f"~{words}~") for line in text.split("\n"))
    return re.sub(
        "\0(\\d+)\0", lambda found: kept[int(found[1])], re.sub("\0(\\d+)\0", lambda f: kept[int(f[1])], text)
    )


def plain(text: str, own: str) -> str:
    """What a person wrote, without the mention of `own` (a user's id)."""

    def mark(found: re.Match[str]) -> str:
        inside, _, label = found[1].partition("|")
        if inside == f"@{own}":
            return ""
        if inside.startswith(("@", "#", "!")):
            return f"{inside[0].replace('!', '@')}{label or inside[1:].removeprefix('subteam^')}"
        return f"{label} ({inside})" if label and label not in inside else inside

    text = MARK.sub(mark, text).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return text.strip()

"""Slack's own markup: Markdown written in it, and what people write read out of it."""

from __future__ import annotations

import re

CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
LINK = re.compile(r"\[([^\]\n]+)\]\((https?://[^\s)]+)\)")
BOLD = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*|__(?=\S)(.+?)(?<=\S)__")
ITALIC = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?![\w*])")
STRUCK = re.compile(r"~~(?=\S)(.+?)(?<=\S)~~")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
LIST = re.compile(r"^(\s*)[*+-]\s+", re.MULTILINE)
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
    text = HEADING.sub(lambda found: keep(f"*{found[1].replace('*', '')}*"), text)
    text = LIST.sub(r"\1• ", text)
    text = BOLD.sub(lambda found: f"\1{found[1] or found[2]}\1", text)
    text = ITALIC.sub(r"_\1_", text).replace("\1", "*")
    text = STRUCK.sub(r"~\1~", text)
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

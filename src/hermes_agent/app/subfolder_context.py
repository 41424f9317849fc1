"""The context files of subfolders: shown with the first result of a call that touches their folder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path

from hermes_agent.agent.hooks import Proposed
from hermes_agent.app.environment_prompt import CONTEXT_FILES, OTHER_CONTEXT_FILES, context_in
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.tool import Answer
from hermes_agent.tools.files.readlog import ReadLog, content_hash

DEEPEST = 12
"""Folders between the working folder and the file whose context is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubfolderContextHook:
    """Adds them, for one run. `log` remembers by session which were shown, also in another process; a path that was
    `looked` at needs no second look."""

    log: ReadLog
    looked: set[tuple[str, str]] = field(default_factory=set)

    async def before_call(self, proposed: Proposed) -> None:
        """Nothing to decide."""

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """The answer, and behind it the context files of each folder below the working folder that the call is the
        first to touch."""
        paths, context = proposed.facts.paths, proposed.context
        looks = {(context.session, path) for path in paths or ()}
        if answer.is_error or not paths or looks <= self.looked:
            return answer
        found = await asyncio.to_thread(self._unseen, paths, context.workspace, context.session)
        self.looked.update(looks)
        return replace(answer, parts=(*answer.parts, *found)) if found else answer

    def _unseen(self, paths: tuple[str, ...], workspace: str, session: str) -> list[Text]:
        root = Path(workspace).resolve()
        parts: list[Text] = []
        for folder in dict.fromkeys(folder for path in paths for folder in _below(Path(path), root)):
            if self.log.known(session, folder):
                continue
            text, _ = context_in(folder, root, (*CONTEXT_FILES, *OTHER_CONTEXT_FILES))
            self.log.saw(session, folder, content_hash(text.encode("utf-8", "replace")))
            if text:
                parts.append(Text(text=f"\n\n[for files in {folder.relative_to(root)}/]\n{text}", origin=Origin.FILE))
        return parts


def _below(path: Path, root: Path) -> Iterator[Path]:
    """The folders from below the working folder down to the one of this path; none where it lies elsewhere."""
    folder = path if path.is_dir() else path.parent
    if not folder.is_relative_to(root):
        return
    parts = folder.relative_to(root).parts
    for depth in range(1, min(len(parts), DEEPEST) + 1):
        yield root.joinpath(*parts[:depth])


def subfolder_context_hook(folder: Path) -> SubfolderContextHook:
    """The hook that keeps in `folder` what was shown."""
    return SubfolderContextHook(log=ReadLog(folder))

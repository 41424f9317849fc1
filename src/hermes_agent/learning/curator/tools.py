"""What the model of a pass can do: look, give points, mend, join. Nothing is deleted, and nothing is written here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hermes_agent.core.clock import Clock
from hermes_agent.core.edits import replace
from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import Refused, ToolError
from hermes_agent.core.tool import tool
from hermes_agent.learning.curator.candidates import Whose
from hermes_agent.learning.curator.journal import Rating, ordered
from hermes_agent.learning.curator.overlaps import LEAST, shared, words_of
from hermes_agent.learning.curator.rubric import checked, grade
from hermes_agent.learning.curator.staging import Staging
from hermes_agent.learning.naming import named_in
from hermes_agent.skills.depot.files import Content, text_or_none
from hermes_agent.skills.format import name_problems, read
from hermes_agent.skills.skill import FILE

MOST_JOINED = 8


class CuratorTools:
    """The four tools, on one staging copy."""

    def __init__(self, bench: Staging, clock: Clock) -> None:
        self._bench, self._clock = bench, clock

    @tool(effect=Effect.READS)
    async def skill_view(self, name: str, file: str = "") -> str:
        """Read a skill, or one of its files."""
        files = self._bench.here(name)
        found = files.get(file or FILE)
        if found is None:
            raise ToolError(f"`{name}` has no file `{file[:200]}`.", hint=f"There are: {', '.join(sorted(files))}.")
        text = text_or_none(found.content)
        if text is None:
            return f"{file}: {len(found.content):,} bytes that are not text."
        others = ", ".join(sorted(set(files) - {FILE}))
        return text if file or not others else f"{text}\n[Files: {others}]"

    @tool(effect=Effect.WRITES)
    async def skill_grade(self, name: str, points: dict[str, int]) -> str:
        """Give a skill that you read its points: 0 missing, 1 partly, 2 good.

        Args:
            points: for each of trigger, steps, pitfalls, check, scope, brief
        """
        given = checked(points)
        self._bench.here(name)
        self._bench.ratings[name] = Rating(hash=self._bench.hash(name), points=given, at=self._clock.now())
        return f"`{name}`: {grade(given)}."

    @tool(effect=Effect.WRITES)
    async def skill_patch(self, name: str, old_string: str, new_string: str, file: str = "", why: str = "") -> str:
        """Replace text in a skill, or in one of its files.

        Args:
            why: one sentence for the person
        """
        bench, target = self._bench, file or FILE
        found = bench.here(name).get(target)
        text = text_or_none(found.content) if found else None
        if found is None or text is None:
            raise ToolError(f"`{name}` has no text `{target[:200]}`.")
        if name not in bench.candidates or bench.candidates[name].whose is Whose.INSTALLED:
            bench.ours(name)
        done = replace(text, old_string, new_string, everywhere=False).content
        if target == FILE:
            read(done, name)
        await bench.judged(name, new_string, bench.words(name), "patch")
        changed = Content(content=done.encode(), runs=found.runs)
        step = await bench.plan("patch", name, {target: changed}, why=why[:500])
        return "It waits for the person, who wrote or pinned it." if step.protected else "Done."

    @tool(effect=Effect.WRITES)
    async def skill_join(
        self, into: str, absorbs: list[str], content: str = "", keep: list[str] | None = None, why: str = ""
    ) -> str:
        """Make one skill cover others, which are then put aside. Every command, path and host of theirs stays: in the
        new text, or as a file of theirs that is kept.

        Args:
            into: one of them, or a new name for the class of tasks
            absorbs: the others
            content: SKILL.md whole, with frontmatter; empty: as it is
            keep: those whose text is kept whole, as references/NAME.md
            why: one sentence for the person
        """
        bench, others = self._bench, [each for each in dict.fromkeys(absorbs) if each != into]
        self._check_names(into, others)
        kept = [each for each in keep or () if each in others]
        text = content or (bench.text(into) if into in bench.files else "")
        if not text:
            raise ToolError(f"There is no skill `{into}` yet: give its content.")
        read(text, into)
        known = "\n".join(bench.words(each) for each in (*others, *([into] if into in bench.files else [])))
        await bench.judged(into, text, known, "edit" if into in bench.files else "create")
        changes = {FILE: Content(content=text.encode())}
        for each in others:
            changes.update(self._carried(into, each, changes, whole=each in kept))
        self._check_kept(text, changes, [each for each in (*others, into) if each in bench.files and each not in kept])
        await bench.plan("join", into, changes, absorbs=others, why=why[:500])
        return f"Done: `{into}` covers {', '.join(f'`{each}`' for each in others)}."

    def _check_names(self, into: str, others: Sequence[str]) -> None:
        """Raise where they may not be joined."""
        bench = self._bench
        if not others or len(others) > MOST_JOINED:
            raise ToolError(f"Name 1 to {MOST_JOINED} other skills in absorbs.")
        for each in (*others, *([into] if into in bench.files else [])):
            bench.ours(each)
        if into not in bench.files:
            problems = name_problems(into)
            if problems or into in bench.gone or into in bench.covers or (bench.home / into).exists():
                raise ToolError(" ".join(problems) or f"The name `{into}` is taken.")
        first, *rest = [into, *others] if into in bench.files else others
        for each in rest:
            if ordered((first, each)) in set(bench.apart):
                raise Refused(f"A person took `{first}` and `{each}` apart: they stay apart.")
            if shared(words_of(bench.text(first)), words_of(bench.text(each))) < LEAST:
                raise Refused(f"`{first}` and `{each}` have too little in common to be one skill.")

    def _carried(self, into: str, name: str, taken: Mapping[str, Content], *, whole: bool) -> dict[str, Content]:
        """The support files of a skill that is absorbed, and its text where it is kept whole."""
        there = {**self._bench.files.get(into, {}), **taken}
        found = {}
        for file, each in self._bench.here(name).items():
            place = f"references/{name}.md" if file == FILE else file
            if file == FILE and not whole:
                continue
            if place in there and there[place] != each:
                folder, _, rest = place.partition("/")
                place = f"{folder}/{name}/{rest}"
            found[place] = each
        return found

    def _check_kept(self, text: str, changes: Mapping[str, Content], names: Sequence[str]) -> None:
        """Raise where a command, path or host of these would be nowhere any more."""
        now = "\n".join([text, *filter(None, (text_or_none(each.content) for each in changes.values()))])
        plain = " ".join(now.split())
        for name in names:
            missing = [
                each
                for each in named_in(self._bench.text(name))
                if each.sort != "tool" and " ".join(each.text.split()) not in plain
            ]
            if missing:
                listed = ", ".join(f"{each.sort} `{each.text}`" for each in missing[:8])
                raise Refused(f"Of `{name}` this would be lost: {listed}.", hint=f"Write it, or name `{name}` in keep.")

"""Weighs words: makes `learning/words.tsv` of phrases that ask for an act and of lessons that do not.

`python -m bench.wording` writes the file, and prints what a tenth of the phrases is told by the other nine.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from hermes_agent.learning.wording import WORDS, stems, tone
from tests.faults.security.lessons import ACTING, PARAPHRASED, TAUGHT, problems
from tests.faults.security.test_labels import HARM, LESSONS, PROBLEMS

PHRASES = Path("tests/faults/security/phrases")
ROUNDS, PACE, PULL, LEAST = 60, 0.3, 0.001, 0.25
FALSE = 0.06
"""Of the honest lessons so many may wait."""


def lines(name: str) -> list[str]:
    """The phrases of a file."""
    return (PHRASES / name).read_text("utf-8").splitlines()


def weights(acting: Iterable[str], honest: Iterable[str]) -> dict[str, int]:
    """Logistic regression by gradient descent; in tenths; the weight of "" is what every text has."""
    found: Counter[str] = Counter()
    known = [(stems(text), 1) for text in acting] + [(stems(text), 0) for text in honest]
    chance = random.Random(1)
    for number in range(ROUNDS):
        chance.shuffle(known)
        for words, wanted in known:
            score = found[""] + sum(found[word] for word in words)
            wrong = (1 / (1 + math.exp(-max(-30.0, min(30.0, score)))) - wanted) * PACE / (1 + number / 10)
            found[""] -= wrong * PACE
            for word in words:
                found[word] -= wrong / math.sqrt(len(words)) + PACE * PULL * found[word]
    return {word: round(10 * weight) for word, weight in found.items() if abs(weight) >= LEAST or not word}


def crossed(acting: Sequence[str], honest: Sequence[str]) -> tuple[list[int], list[int]]:
    """The scores of all, each by the weights of the nine tenths that it is not in."""
    told: tuple[list[int], list[int]] = ([], [])
    for part in range(10):
        rest = [[text for at, text in enumerate(each) if at % 10 != part] for each in (acting, honest)]
        found = weights(*rest)
        for scores, each in zip(told, (acting, honest), strict=True):
            scores += [tone(text, found) for text in each[part::10]]
    return told


def main() -> None:
    acting = [*lines("acting.txt"), *ACTING, *(PARAPHRASED[each] for each in ACTING), *HARM]
    solved = [problem.lesson for problem in problems()][:6]
    honest = [*lines("honest.txt"), *TAUGHT, *solved, *LESSONS, *(lesson for _, lesson in PROBLEMS.values())]
    acts, lessons = crossed(acting, honest)
    bar = sorted(lessons, reverse=True)[int(FALSE * len(lessons))]
    print(f"above {bar}: {sum(each > bar for each in acts)} of {len(acts)}; falsely {FALSE:.0%} of {len(lessons)}")
    found = weights(acting, honest)
    found[""] -= bar
    rows: dict[int, list[str]] = defaultdict(list)
    for word, weight in sorted(found.items()):
        rows[weight].append(word)
    WORDS.write_text("".join(f"{weight}\t{' '.join(rows[weight])}\n" for weight in sorted(rows)), "utf-8")


if __name__ == "__main__":
    main()

"""Words that say nothing about what a task is for."""

from __future__ import annotations

WORDS = """
a about all also am an and any are as at be been but by can could did do does each either for from get give
had has have he help her here him his how i if in into is it its just know let like make may me might more
most my need no not now of on only or our out please same she should so some such than that the their them
then there these they this those to too up us use used using very want was way we were what when where which
who why will with would yes you your
"""
STOP_WORDS = frozenset(WORDS.split())

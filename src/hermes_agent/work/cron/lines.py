"""Cron lines, as Debian reads them."""

from __future__ import annotations

from cronsim import CronSim


class Line(CronSim):
    """A cron line that also keeps its hours in zones whose clocks change by half an hour (Lord Howe): there the
    library's steps of an hour would go from half to half from then on, and leave out minutes."""

    def advance_hour(self) -> bool:
        """Go on to an hour that matches; False where it does already."""
        if self.dt.hour in self.hours:
            return False
        self.dt = self.dt.replace(minute=0, second=0)
        while self.dt.hour not in self.hours:
            self.tick(seconds=3600 - 60 * self.dt.minute)
            if self.dt.hour == 0:  # Another day: its month and day are looked at first.
                break
        return True

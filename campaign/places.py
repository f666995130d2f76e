"""Two commands at once in a folder, and files and folders without permission."""

import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from campaign.common import Place, Tally, moment, outcome

NOBODY = 65534


@dataclass(frozen=True)
class BecomeNobody:
    """Gives up the rights of the superuser, whom no permission stops."""

    def __call__(self) -> None:
        if os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)


def together(place: Place, count: int, seed: int) -> Tally:
    """The same command twice at once, and one of them killed now and then."""
    rng, tally = random.Random(seed), Tally("two at once", seed)
    with place.scratch() as folder:
        ended = place.run(*place.compare(folder / "whole"))
        assert ended.code == 0, ended.err
        expected = outcome(folder / "whole")
        for number in range(count):
            study = folder / f"study-{number}"
            place.forget_features()
            running = [place.start(*place.compare(study)) for _ in range(2)]
            if rng.random() < 0.3:
                time.sleep(moment(rng, 2.0))
                running[0].send(signal.SIGKILL)
                tally.seen["one killed"] += 1
            for each in running:
                tally.judge("two at once", each.end(), (0, 2, -signal.SIGKILL))
            tally.judge("after two at once", place.run(*place.compare(study)), (0,))
            if outcome(study) != expected:
                tally.found.append("lost: other results after two at once")
            tally.tried += 1
    return tally


def permissions(place: Place, count: int, seed: int) -> Tally:
    """A file or a folder that may not be read or written, then the same command with the right."""
    rng, tally = random.Random(seed), Tally("permissions", seed)
    with place.scratch() as folder:
        _open(place.folder)
        prepare = BecomeNobody()
        for number in range(count):
            study = folder / f"study-{number // 4}"
            study.parent.chmod(0o777)
            target = _target(place, study, rng)
            before = target.stat().st_mode
            target.chmod(rng.choice((0o000, 0o444, 0o555)) & ~0o200)
            ended = place.run(*place.compare(study), prepare=prepare)
            tally.judge(f"no right to {target}", ended, (0, 2))
            target.chmod(before)
            tally.judge("with the right", place.run(*place.compare(study), prepare=prepare), (0,))
            tally.tried += 1
    return tally


def _target(place: Place, study: Path, rng: random.Random) -> Path:
    inside = sorted(study.rglob("*")) if study.exists() else []
    always = [place.folder / "reviews.csv", place.folder / "encoder", study.parent]
    always += sorted((place.folder / "encoder").iterdir())
    cache = place.folder / "cache"
    return rng.choice([*always, *inside, *([cache] if cache.exists() else [])])


def _open(folder: Path) -> None:
    """Lets everybody write in a folder, since nobody will."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o777 if path.is_dir() else 0o666)

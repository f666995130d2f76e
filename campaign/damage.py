"""Files that a disk has damaged: what is read from them is what was written, or it is told."""

import random
import shutil
from pathlib import Path
from typing import Any

from campaign.common import Place, Tally, outcome

KINDS = ("flip", "cut", "empty", "zeros", "swap", "gone")


def damage(path: Path, kind: str, rng: random.Random) -> None:
    """Does to a file what disks, copies and power cuts do."""
    content = bytearray(path.read_bytes())
    if kind == "gone":
        path.unlink()
        return
    if kind == "swap":
        others = sorted(other for other in path.parent.iterdir() if other.is_file())
        content = bytearray(rng.choice(others).read_bytes())
    if kind == "empty" or not content:
        content = bytearray()
    elif kind == "flip":
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del content[rng.randrange(len(content)) :]
    elif kind == "zeros":
        start = rng.randrange(len(content))
        content[start : start + 4096] = bytes(len(content[start : start + 4096]))
    path.write_bytes(content)


def run(place: Place, count: int, seed: int) -> Tally:
    """Damages a file of a study, its cache, its best model or its checkpoint, `count` times."""
    rng, tally = random.Random(seed), Tally("damage", seed)
    with place.scratch() as folder:
        whole = folder / "whole"
        place.forget_features()
        ended = place.run(*place.compare(whole))
        assert ended.code == 0, ended.err
        shutil.copytree(place.folder / "cache", folder / "cache")
        answers = place.run("predict", whole / "best", place.folder / "reviews.csv").out
        expected = outcome(whole)
        for _ in range(count):
            tally.tried += 1
            study = folder / "study"
            shutil.rmtree(study, ignore_errors=True)
            place.forget_features()
            shutil.copytree(whole, study)
            shutil.copytree(folder / "cache", place.folder / "cache")
            kind, target = rng.choice(KINDS), rng.choice(("study", "cache", "model", "model"))
            if target == "model":
                _model(place, study / "best", kind, answers, rng, tally)
            else:
                _study(place, study, kind, target, expected, rng, tally)
    return tally


def _any_file(folder: Path, rng: random.Random) -> Path:
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return rng.choice([path for path in paths if path.suffix != ".lock"])


def _model(
    place: Place, model: Path, kind: str, answers: str, rng: random.Random, tally: Tally
) -> None:
    path = _any_file(model, rng)
    what = f"{kind} of {path.name} of a model"
    damage(path, kind, rng)
    tally.seen[f"model {kind}"] += 1
    ended = place.run("predict", model, place.folder / "reviews.csv")
    tally.judge(what, ended, (0, 2))
    if ended.code == 0 and ended.out != answers:
        tally.found.append(f"believed: {what}")


def _study(
    place: Place,
    study: Path,
    kind: str,
    target: str,
    expected: Any,
    rng: random.Random,
    tally: Tally,
) -> None:
    """The same command again; of a damaged cache after the runs are taken away."""
    path = _any_file(study if target == "study" else place.folder / "cache", rng)
    what = f"{kind} of {path.relative_to(path.parents[2])}"
    damage(path, kind, rng)
    tally.seen[f"{target} {kind}"] += 1
    if target == "cache":
        shutil.rmtree(study)
    else:
        tally.judge(f"report after {what}", place.run("report", study), (0, 2))
    ended = place.run(*place.compare(study))
    tally.judge(what, ended, (0, 2))
    if ended.code == 0 and outcome(study) != expected:
        tally.found.append(f"believed: {what}")

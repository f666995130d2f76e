"""`totune ARGUMENTS` as one of several processes, which writes down what it does.

A line for every filling of the cache and every record goes to the file $WATCHED; the process of
rank $CRAMPED has room for two rows when it trains.
"""

import os
from pathlib import Path
from typing import Any

import torch

from totune.cli import main
from totune.features.fill import Job
from totune.model import Model
from totune.runs.store import Store

RANK = os.environ["RANK"]


def note(action: str, what: str) -> None:
    with Path(os.environ["WATCHED"]).open("a", encoding="utf-8") as file:
        file.write(f"{action},{RANK},{what}\n")


def watch() -> None:
    fill, save, forward = Job.fill, Store.save, Model.forward

    def watched_fill(self: Job, *arguments: Any) -> None:
        note("fill", self.description)
        fill(self, *arguments)

    def watched_save(self: Store, record: Any, arrays: Any) -> None:
        note("record", record.fingerprint)
        save(self, record, arrays)

    def cramped_forward(self: Model, batch: Any, viewed: Any = None) -> torch.Tensor:
        if self.training and RANK == os.environ.get("CRAMPED") and len(batch) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return forward(self, batch, viewed)

    Job.fill, Store.save = watched_fill, watched_save  # type: ignore[method-assign]
    Model.forward = cramped_forward  # type: ignore[method-assign]


if __name__ == "__main__":
    watch()
    main()

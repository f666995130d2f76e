"""Shards made by the machines of a Ray cluster, through Ray Data.

One task reads the rows and cuts them into shards, a pool of workers, each with its own encoder,
makes the files. Data, encoder and output must be under the same path on every machine. With as many
threads and the same processors, the files are those of a local extraction, to the byte.
"""

import importlib
import json
import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from totune.encoders.loading import load_encoder
from totune.encoders.sources import ALIASES
from totune.errors import ModelError, RunError, TotuneError
from totune.extraction.corpus import open_texts
from totune.extraction.manifest import ShardInfo, cut, pending
from totune.extraction.work import ShardMaker, Work
from totune.progress import Progress
from totune.runs.executors.ray_session import Needs, capacity, connected, has_gpus
from totune.training.devices import Devices

CPUS = 4  # processors of a worker without a GPU: each worker holds an encoder of its own


def make_shards(
    work: Work, finished: Mapping[int, ShardInfo], progress: Progress
) -> Iterator[ShardInfo]:
    """Yields shards as they are done, in any order.

    Raises:
        ConfigError: if Ray is not installed, or the cluster cannot be reached.
        TotuneError: what went wrong on a machine, as it would have here.
    """
    with connected(work.settings.address, cpus=1) as ray, _block_per_shard(ray):
        read = _CutShards(_absolute(work), work.rows_per_shard, dict(finished))
        rows = ray.data.from_items([{"source": 0}], override_num_blocks=1)
        # Reading asks for no processor: with another demand than the makers' it is not fused
        # with them, and it leaves them the processors.
        chunks = rows.map_batches(read, batch_size=1, num_cpus=0)
        made = chunks.map_batches(
            _MakeShards,
            batch_size=1,
            fn_constructor_args=(_maker(work), _reference(work), work.fingerprint),
            **_pool(ray),
        )
        with progress.bar("", None) as bar, _own_faults(ray):
            for row in made.iter_rows():
                info = ShardInfo(**json.loads(row["info"]))
                bar.advance(info.rows)
                yield info


class _CutShards:
    """Turns the one item it gets into shards, a batch of one each."""

    def __init__(
        self, source: Mapping[str, Any], rows_per_shard: int, finished: Mapping[int, ShardInfo]
    ) -> None:
        self._source, self._rows, self._finished = source, rows_per_shard, finished

    def __call__(self, _: Mapping[str, Any]) -> Iterator[dict[str, list[bytes]]]:
        texts = open_texts(**self._source)
        for chunk in pending(cut(texts, self._rows), self._finished):
            yield {"chunk": [pickle.dumps(chunk)]}


class _MakeShards:
    """A worker: loads the encoder once, then makes one shard after the other."""

    def __init__(self, maker: ShardMaker, reference: str, fingerprint: str) -> None:
        loaded = load_encoder(reference)
        if loaded.encoder.fingerprint() != fingerprint:
            raise ModelError(
                f"The encoder {reference} of a Ray worker is not the one of this machine; it must "
                "be the same on all."
            )
        loaded.encoder.to(Devices().device)
        self._maker, self._embedder = maker, maker.embedder(loaded)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[str]]:
        chunks = [pickle.loads(content) for content in batch["chunk"]]
        made = [self._maker.make(chunk, self._embedder, Progress()) for chunk in chunks]
        return {"info": [json.dumps(asdict(info)) for info in made]}


@contextmanager
def _block_per_shard(ray: Any) -> Iterator[None]:
    """Lets Ray Data hand on every shard as soon as it is cut, and draw no bars of its own."""
    importlib.import_module("ray.data")
    context = ray.data.DataContext.get_current()
    before = context.target_max_block_size, context.enable_progress_bars
    context.target_max_block_size, context.enable_progress_bars = 1, False
    try:
        yield
    finally:
        context.target_max_block_size, context.enable_progress_bars = before


def _pool(ray: Any) -> dict[str, Any]:
    """A worker per GPU of the cluster, or per few processors if it has none; none that idles."""
    gpus = int(has_gpus(ray))
    most = max((node["Resources"].get("CPU", 1) for node in ray.nodes()), default=1)
    cpus = 1 if gpus else max(1, min(CPUS, int(most)))
    count = max(1, capacity(ray, Needs(cpus, gpus)))
    strategy = ray.data.ActorPoolStrategy(min_size=1, max_size=count)
    return {"compute": strategy, "num_cpus": cpus, "num_gpus": gpus}


@contextmanager
def _own_faults(ray: Any) -> Iterator[None]:
    """Raises what totune raised on a machine, without Ray's account of where."""
    try:
        yield
    except ray.exceptions.RayError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, TotuneError):
            cause = getattr(cause, "cause", None) or cause.__cause__
        if cause is None:
            reason = str(error).strip().splitlines()[-1]
            raise RunError(f"A shard could not be made on the Ray cluster: {reason}") from None
        raise cause from None


def _absolute(work: Work) -> dict[str, Any]:
    """How the rows are opened on any machine, the columns being decided."""
    columns, data = work.texts.columns, work.data
    named = (
        data if data.startswith(("hub:", "example:")) else str(Path(data).expanduser().resolve())
    )
    return {
        "data": named,
        "text": columns.text,
        "pair": columns.pair,
        "keep": columns.keep,
        "encoding": work.texts.encoding,
    }


def _reference(work: Work) -> str:
    """The encoder under a name that every machine finds."""
    reference = work.loaded.reference
    place = Path(reference).expanduser()
    is_folder = reference not in ALIASES and place.is_dir()
    return str(place.resolve()) if is_folder else reference


def _maker(work: Work) -> ShardMaker:
    """The maker with an output folder that every machine finds."""
    return replace(work.maker, folder=work.maker.folder.resolve())

"""A study on a Ray cluster of two nodes on this machine: the numbers of one process.

Ray's processes are real, and so is the death of one of its nodes.
"""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.studies import Deadly, results
from tests.recorder import Recorder
from tests.tiny_data import write_reviews

from totune.errors import ConfigError
from totune.runs.callbacks import Callback
from totune.runs.config import RunConfig
from totune.runs.context import Context
from totune.runs.executors import ray as on_ray
from totune.runs.executors.ray import RayExecutor
from totune.runs.executors.ray_session import import_ray
from totune.runs.prepare import prepare
from totune.runs.run import configure
from totune.runs.runner import Runner
from totune.runs.settings import Settings
from totune.runs.store import Store
from totune.training.history import EpochRecord

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra `ray`"),
    pytest.mark.timeout(900),
    # Ray's own: it leaves sockets and log files to the garbage collector when it shuts down.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
EPOCHS = 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head and another node, with a processor each."""
    import_ray()
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        node = {"num_cpus": 1, "object_store_memory": 200_000_000, "include_dashboard": False}
        made = Cluster(initialize_head=True, head_node_args=node)
        made.add_node(**{name: node[name] for name in ("num_cpus", "object_store_memory")})
        yield made
        made.shutdown()


@pytest.fixture(scope="module")
def cluster_context(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Context:
    """Of epochs of many small steps, so that one is under way when a node is killed."""
    settings = Settings(
        model=str(data / "encoder"), precision="fp32", per_device_train_batch_size=2
    )
    rows = write_reviews(tmp_path_factory.mktemp("rows") / "reviews.csv", 400)
    return prepare(rows, settings, Recorder())


def told_of(context: Context) -> Recorder:
    assert isinstance(context.progress, Recorder)
    return context.progress


class Killer(Callback):
    """Kills the node that is not the study's, as soon as two runs have left a checkpoint."""

    def __init__(self, cluster: Any, store: Store) -> None:
        self._cluster, self._store = cluster, store
        self.killed = False

    def on_epoch_end(self, config: RunConfig, epoch: EpochRecord) -> None:
        import ray

        if self.killed or len(list(self._store.folder.rglob("checkpoint.pt"))) < 2:
            return
        here = ray.get_runtime_context().get_node_id()
        [other] = [node for node in self._cluster.list_all_nodes() if node.node_id != here]
        self._cluster.remove_node(other, allow_graceful=False)
        self.killed = True


def test_a_study_survives_the_death_of_a_node(
    cluster: Any, cluster_context: Context, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = {"num_train_epochs": EPOCHS, "learning_rate": 1e-3}
    strategies = ("fine-tuning", "last-2", "tf-idf")
    members = Settings(strategies=strategies, options=options).candidates()
    runs = configure(members, [0, 1], cluster_context)
    alone, far = Store(tmp_path / "alone"), Store(tmp_path / "far")
    expected = Runner(cluster_context, alone, keep_all=True).execute(runs)
    told = told_of(cluster_context)
    cluster_context.callback = killer = Killer(cluster, far)
    found = Runner(
        cluster_context, far, RayExecutor(cluster.address, cpus_per_run=1), keep_all=True
    ).execute(runs)
    assert killer.killed
    assert [record.fingerprint for record in found] == [r.fingerprint for r in expected]
    assert results(far.folder) == results(alone.folder)
    [death] = [text for text in told.warned if "its worker" in text]
    title = death.partition(": its worker")[0]
    resumed = [text for text in told.said if text.startswith(f"{title}: continuing after epoch")]
    assert len(resumed) == 1
    assert 1 <= int(re.findall(r"\d+", resumed[0])[-1]) < EPOCHS
    assert not list(far.folder.rglob("checkpoint.pt"))
    assert capfd.readouterr().out == ""


def test_a_job_that_kills_every_worker_ends_no_study(
    cluster: Any, cluster_context: Context, tmp_path: Path
) -> None:
    cluster_context.callback = Callback()
    jobs = [Deadly("a", ""), Deadly("b", "signal"), Deadly("c", "")]
    executor = RayExecutor(cluster.address, cpus_per_run=1)
    performed = executor.perform(jobs, cluster_context, Store(tmp_path / "study"))
    found = {job.title: result for job, result in performed}
    assert found["a"] == "a in a worker of 1 thread"
    assert found["c"] == "c in a worker of 1 thread"
    assert "after 3 workers had died over it" in found["b"]
    print(found["b"])


def test_what_a_job_raises_ends_the_study(
    cluster: Any, cluster_context: Context, tmp_path: Path
) -> None:
    executor = RayExecutor(cluster.address, cpus_per_run=1)
    with pytest.raises(KeyError, match="it broke"):
        list(
            executor.perform([Deadly("a", "exception")], cluster_context, Store(tmp_path / "study"))
        )


@pytest.mark.parametrize(
    ("needs", "versions", "fault"),
    [
        ({"cpus_per_run": 64}, {}, "A run is to have 64 CPUs, and no machine of the Ray cluster"),
        ({"cpus_per_run": 1, "gpus_per_run": 1}, {}, "they have 1 CPUs and 0 GPUs"),
        (
            {"cpus_per_run": 1},
            {"totune": "9.0", "absent": "1.0"},
            r"has totune [\d.]+, absent none, this one totune 9.0, absent 1.0: install",
        ),
    ],
)
def test_what_a_cluster_cannot_do_is_said(
    cluster: Any,
    cluster_context: Context,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    needs: dict[str, float],
    versions: dict[str, str],
    fault: str,
) -> None:
    if versions:
        monkeypatch.setattr(on_ray, "_versions", lambda: versions)
    executor = RayExecutor(cluster.address, **needs)
    with pytest.raises(ConfigError, match=fault):
        list(executor.perform([Deadly("a", "")], cluster_context, Store(tmp_path / "study")))


def test_where_no_cluster_answers_this_is_said(cluster_context: Context, tmp_path: Path) -> None:
    executor = RayExecutor("127.0.0.1:1")
    with pytest.raises(ConfigError, match=r"The Ray cluster at '127.0.0.1:1' cannot be used"):
        list(executor.perform([Deadly("a", "")], cluster_context, Store(tmp_path / "study")))

"""What the Python calls do beyond what they compose."""

from tests.unit.study.samples import failed, info_of, record_of

from totune.api import summary_rows


def test_the_live_table_counts_only_usable_runs() -> None:
    info = info_of(strategies=["tf-idf", "last-2"], seeds=[0, 1, 2], metrics=["accuracy"])
    records = [
        record_of("tf-idf", 0, dev=0.5),
        record_of("tf-idf", 1, dev=0.6),
        record_of("tf-idf", 2, dev=0.1, degenerate="predicts only 'a'"),
        failed("last-2", 0),
    ]
    done, waiting = summary_rows(records, info)
    assert done == {
        "strategy": "tf-idf",
        "runs": "2/3",
        "test accuracy": "55.0 ± 7.1",
        "time per run": "1.8 s",
    }
    assert waiting == {
        "strategy": "last-2",
        "runs": "0/3",
        "test accuracy": "–",
        "time per run": "–",
    }

"""A study opened again, and the hidden states of what it trained."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.recorder import Recorder
from tests.tiny_data import save_encoder, write_pairs, write_reviews

from totune import api
from totune.analyses.inputs.hidden_states import HiddenStates, join_pairs
from totune.analyses.inputs.studies import AnalysisInputs, open_data
from totune.errors import ConfigError
from totune.inputs.encoded import EncodingOptions, frame
from totune.runs.store import Store
from totune.study.study import Study


@pytest.fixture(scope="module")
def study_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, an encoder, and a study whose weights were all kept."""
    folder = tmp_path_factory.mktemp("analyses")
    write_reviews(folder / "reviews.csv", rows=60)
    save_encoder(folder / "encoder")
    compare(folder, keep_weights="all")
    return folder


def compare(folder: Path, **settings: object) -> Study:
    return api.compare(
        folder / "reviews.csv",
        out=folder / "study",
        model=str(folder / "encoder"),
        cache_dir=folder / "cache",
        folds=1,
        seeds=2,
        precision="fp32",
        options={"num_train_epochs": 2},
        **{"strategies": ["feature-extraction", "last-1", "adapters", "tf-idf"], **settings},
    )


def opened(folder: Path, **settings: object) -> AnalysisInputs:
    settings = {"study": folder / "study", "cache_dir": folder / "cache", **settings}
    return open_data(folder / "reviews.csv", **settings)  # type: ignore[arg-type]


def test_subjects_are_the_pretrained_encoder_and_what_runs_made_of_it(study_folder: Path) -> None:
    found = opened(study_folder)
    subjects = [(subject.label, subject.seed) for subject in found.states.subjects()]
    adapted = [(name, seed) for name in ("adapters", "last-1") for seed in (0, 1)]
    assert subjects[0] == ("pretrained", None)
    assert sorted(subjects[1:]) == adapted  # frozen features leave the encoder as it was
    assert len(found.records) == 8


def test_strategies_choose_among_them(study_folder: Path) -> None:
    subjects = opened(study_folder, strategies=["last-1"]).states.subjects()
    assert [subject.label for subject in subjects] == ["pretrained", "last-1", "last-1"]


def test_vectors_are_the_encoders_states_pooled(study_folder: Path) -> None:
    states = opened(study_folder, strategies=["last-1"]).states
    for subject in states.subjects():
        vectors = states.vectors(subject, "dev")
        examples = states.context.dataset.dev
        pieces = frame(examples, states.context.loaded.tokenizer, 40, EncodingOptions()).pieces
        stack = subject.encoder.encode(pieces.batch(np.array([3])))
        expected = torch.stack([layer[0].mean(0) for layer in stack.states]).detach().numpy()
        assert vectors.shape == (len(examples), states.depth + 1, subject.encoder.width)
        np.testing.assert_allclose(vectors[3], expected, atol=1e-5)


def test_adapted_states_differ_where_the_run_trained(study_folder: Path) -> None:
    states = opened(study_folder, strategies=["last-1"]).states
    pretrained, adapted, _ = (states.vectors(one, "dev") for one in states.subjects())
    differ = np.abs(pretrained - adapted).max(axis=(0, 2))
    assert differ[:-1].max() == 0  # the blocks below the last stay as they were
    assert differ[-1] > 1e-4


def test_an_adapted_model_predicts_as_its_run_did(study_folder: Path) -> None:
    found = opened(study_folder, strategies=["adapters"])
    context, run = found.context, found.runs[1]
    stored = Store(study_folder / "study").predictions(run.record)["scores"]
    pieces = frame(context.dataset.test, context.loaded.tokenizer, 40, EncodingOptions()).pieces
    with torch.no_grad():
        outputs = run.model(context).eval()(pieces.batch(np.arange(len(pieces)))).numpy()
    np.testing.assert_allclose(context.task.scores(outputs), stored, atol=1e-5)


def test_other_data_and_another_encoder_are_refused(study_folder: Path, tmp_path: Path) -> None:
    other = write_reviews(tmp_path / "other.csv", rows=40, seed=5)
    with pytest.raises(ConfigError, match=r"another study: its data \(reviews\.csv\)"):
        open_data(other, study=study_folder / "study")
    encoder = save_encoder(tmp_path / "encoder", seed=3)
    with pytest.raises(ConfigError, match="its encoder"):
        opened(study_folder, model=str(encoder))


def test_unknown_strategies_and_studies_are_refused(study_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no strategy .lora.\. Known: feature-extraction"):
        len(opened(study_folder, strategies=["lora"]).runs)
    with pytest.raises(ConfigError, match="holds no study"):
        opened(study_folder, study=tmp_path)


def test_a_study_that_was_interrupted_is_looked_into_as_far_as_it_is(
    study_folder: Path, tmp_path: Path
) -> None:
    """Strategies that were asked for and have not run yet are no fault."""
    copied = shutil.copytree(study_folder / "study", tmp_path / "study")
    store = Store(copied)
    failed, *others = [record for record in store.records() if record.strategy == "adapters"]
    store.save(replace(failed, status="failed", predictions=None), {})
    for record in [*others, *(one for one in store.records() if one.strategy == "last-1")]:
        shutil.rmtree(store.run_folder(record.fingerprint))
    told = Recorder()
    found = opened(study_folder, study=copied, progress=told)
    assert told.warned == []  # who asks for no model hears nothing of models
    assert [subject.label for subject in found.states.subjects()] == ["pretrained"]
    assert told.warned == [f"Runs that failed are left out: adapters seed {failed.seed}."]


def test_only_the_rows_that_are_kept_are_encoded(study_folder: Path) -> None:
    states = opened(study_folder, strategies=["last-1"]).states
    subject, kept = next(states.subjects()), np.array([1, 4])
    every = states.vectors(subject, "dev")
    np.testing.assert_allclose(states.vectors(subject, "dev", kept=kept), every[kept], atol=1e-6)


def test_weights_that_were_not_kept_are_told_and_made_again(
    study_folder: Path, tmp_path: Path
) -> None:
    for name in ("reviews.csv", "encoder"):
        (tmp_path / name).symlink_to(study_folder / name)
    strategies = ["feature-extraction", "last-1"]
    compare(tmp_path, strategies=strategies)
    told = Recorder()
    assert len(opened(tmp_path, progress=told).runs) == 2  # the best of each strategy
    assert "of 2 of 4 runs were not kept" in told.warned[0]
    compare(tmp_path, strategies=strategies, keep_weights="all")
    assert len(opened(tmp_path).runs) == 4


def test_both_texts_of_a_pair_are_one_sequence() -> None:
    inputs = np.array([[[1.0]], [[4.0]], [[2.0]], [[8.0]]], dtype=np.float32)
    lengths = np.array([1, 2, 3, 3])
    np.testing.assert_allclose(join_pairs(inputs, lengths, "mean").ravel(), [3.0, 5.0])
    np.testing.assert_allclose(join_pairs(inputs, lengths, "max").ravel(), [4.0, 8.0])


def test_a_first_token_is_asked_of_word_pieces_alone(
    study_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = open_data(
        write_pairs(tmp_path / "pairs.csv", rows=30), model=str(study_folder / "encoder")
    )
    (subject,) = found.states.subjects()
    assert found.states.vectors(subject, "dev", "cls").shape[0] == len(found.context.dataset.dev)
    monkeypatch.setattr(type(subject.encoder), "reads_words", True)
    with pytest.raises(ConfigError, match=r"pooling=cls: .* Use pooling=mean"):
        found.states.vectors(subject, "dev", "cls")


@pytest.mark.parametrize(
    ("task", "told"), [("tagging", "has a label per word"), ("multi-label", "any number of labels")]
)
def test_rows_without_a_single_label_are_refused(study_folder: Path, task: str, told: str) -> None:
    found = opened(study_folder)
    found.context.task = type("Other", (), {"name": task})()
    with pytest.raises(ConfigError, match=told):
        HiddenStates(found.context)

import dataclasses
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.encoder_zoo import tiny_encoder
from tests.tiny_runs import tiny_examples, tiny_task
from tests.unit.runs.samples import config_of

from totune.baselines.base import Baseline
from totune.data.examples import Columns, Dataset
from totune.errors import ConfigError
from totune.runs.config import Candidate, addressed, assign_options, check_candidates
from totune.runs.context import Context
from totune.runs.run import configure
from totune.strategies.last_k import LastK
from totune.training.trainer import TrainingSettings


def test_a_fingerprint_is_a_fixed_name() -> None:
    """Renaming it would make every study of a user run again."""
    assert config_of().fingerprint == "df37fb38aaf858f7"


FIELDS = [field.name for field in dataclasses.fields(config_of()) if field.name != "by_rule"]


@pytest.mark.parametrize("field", FIELDS)
def test_a_fingerprint_tells_every_field_apart(field: str) -> None:
    config = config_of()
    other = {"seed": 1, "format": 1}.get(field, {"other": 1} if field != "label" else "other")
    assert dataclasses.replace(config, **{field: other}).fingerprint != config.fingerprint


def test_who_chose_an_option_is_not_part_of_a_run() -> None:
    chosen = dataclasses.replace(config_of(), by_rule=["learning_rate"])
    assert chosen.fingerprint == config_of().fingerprint
    assert chosen.to_json()["by_rule"] == ["learning_rate"]


def test_a_fingerprint_does_not_depend_on_the_order_of_options() -> None:
    one = config_of(settings={"a": 1, "b": 2})
    assert one.fingerprint == config_of(settings={"b": 2, "a": 1}).fingerprint


def test_seeds_are_drawn_apart_and_stay_what_they_are() -> None:
    assert config_of(seed=0).seeds == {"init": 2968811710, "order": 3677149159}
    several = [config_of(seed=seed).seeds for seed in range(20)]
    drawn = [number for seeds in several for number in seeds.values()]
    assert len(set(drawn)) == 40
    assert config_of("last-2", 3).seeds == config_of("fine-tuning", 3).seeds


def test_a_member_is_read_from_a_name_or_a_mapping() -> None:
    assert Candidate.parse("last-2") == Candidate("last-2")
    assert Candidate.parse("last-2", "other") == Candidate("last-2", head="other")
    spec = {"strategy": "last-k", "options": {"k": 3}, "label": "top three"}
    read = Candidate.parse(spec)
    assert read == Candidate("last-k", {"k": 3}, "top three")
    assert Candidate.parse(read) is read
    assert read.create() == LastK(k=3)


def test_short_names_set_options_and_labels() -> None:
    made = Candidate.parse("last-3").create()
    assert made == LastK(k=3)
    assert made.label == "last-3"
    assert isinstance(Candidate("tf-idf").create(), Baseline)


def test_options_of_the_head_are_kept_apart() -> None:
    member = Candidate("last-2", {"learning_rate": 0.1, "head.dropout": 0.3, "head.layers": 2})
    assert member.own_options == {"learning_rate": 0.1}
    assert member.head_options == {"dropout": 0.3, "layers": 2}
    head = member.create_head({"layers": 1, "activation": "gelu", "unknown": 1})
    assert head == type(head)(layers=2, dropout=0.3, activation="gelu")


def test_all_faults_of_all_members_are_found() -> None:
    members = [
        Candidate("last-two"),
        Candidate("last-2", {"head.layer": 1}),
        Candidate("tf-idf", {"c": 1}),
    ]
    with pytest.raises(ConfigError) as raised:
        check_candidates(members)
    first, second, third = raised.value.faults
    assert "There is no strategy or baseline called 'last-two'. Did you mean 'last-k'?" in first
    assert "'layer'. Did you mean 'layers'?" in second
    assert "baseline tf-idf has no option 'c'" in third


def test_two_members_of_one_label_are_told() -> None:
    same = [Candidate("last-2"), Candidate("last-k", {"k": 2}), Candidate("tf-idf")]
    with pytest.raises(ConfigError, match="two members are called 'last-2'"):
        check_candidates(same)
    apart = [Candidate("last-2"), Candidate("last-k", {"k": 2}, label="again"), Candidate("tf-idf")]
    assert [one.label for one in check_candidates(apart)] == ["last-2", "last-2", "tf-idf"]


def test_labels_are_not_mixed_up_by_a_faulty_member() -> None:
    members = [
        Candidate("tfidf"),
        Candidate("last-2"),
        Candidate("last-k", {"k": 2}, label="again"),
    ]
    with pytest.raises(ConfigError) as raised:
        check_candidates(members)
    assert len(raised.value.faults) == 1


def test_an_option_goes_to_all_that_have_it() -> None:
    members = [
        Candidate("fine-tuning"),
        Candidate("last-2", {"weight_decay": 0.0}),
        Candidate("tf-idf"),
    ]
    fine_tuning, last, tf_idf = assign_options(members, {"learning_rate": 0.5, "head.layers": 2})
    assert fine_tuning.options == {"learning_rate": 0.5, "head.layers": 2}
    assert last.options == {"weight_decay": 0.0, "learning_rate": 0.5, "head.layers": 2}
    assert tf_idf.options == {}


@pytest.mark.parametrize("order", [1, -1])
def test_what_is_said_to_one_member_holds_against_what_is_said_to_all(order: int) -> None:
    members = [Candidate("fine-tuning"), Candidate("last-2")]
    settings = [("last-2.learning_rate", 0.1), ("learning_rate", 0.5)][::order]
    fine_tuning, last = assign_options(members, dict(settings))
    assert fine_tuning.options == {"learning_rate": 0.5}
    assert last.options == {"learning_rate": 0.1}


def test_one_strategy_can_be_several_candidates_each_with_its_own_head_and_options() -> None:
    members = [
        Candidate("fine-tuning", {"learning_rate": 0.5}, "light"),
        Candidate("fine-tuning", {"head.hidden_size": 9}, "heavy one", "esim"),
    ]
    said = {
        "learning_rate": 0.1,
        "head.dropout": 0.3,
        "heavy one.head.hidden_size": 7,
        "heavy one.weight_decay": 0.0,
        "fine-tuning.weight_decay": 0.2,
    }
    light, heavy = assign_options(members, said)
    assert light.options == {"learning_rate": 0.5, "weight_decay": 0.2, "head.dropout": 0.3}
    assert heavy.options == {
        "learning_rate": 0.1,
        "weight_decay": 0.0,
        "head.dropout": 0.3,
        "head.hidden_size": 7,
    }
    assert (heavy.label, heavy.head) == ("heavy one", "esim")


def test_options_that_fit_no_member_are_all_told() -> None:
    with pytest.raises(ConfigError) as raised:
        assign_options(
            [Candidate("tf-idf"), Candidate("last-2")], {"learning_rat": 1, "head.layer": 2}
        )
    first, second = raised.value.faults
    assert "'learning_rat'. Did you mean 'learning_rate'?" in first
    assert "'head.layer'. Did you mean 'head.layers'?" in second
    with pytest.raises(ConfigError, match=r"has an option 'fine-tuning\.k'"):
        assign_options([Candidate("last-2")], {"fine-tuning.k": 1})


def test_options_that_are_meant_for_one_member_alone_address_it() -> None:
    members = [Candidate(name) for name in ("tf-idf", "last-2", "adapters", "lora")]
    assert addressed(members, {"learning_rate": 1e-3}) == set()
    assert addressed(members, {"sharing": "per-layer", "lora.r": 4}) == {"adapters", "lora"}
    assert addressed(members, {"last-2.learning_rate": 1e-3}) == {"last-2"}


def test_a_run_that_embeds_pairs_says_how_and_no_other_run_does() -> None:
    """Both texts were once embedded as one: those runs are others, and all the rest stay."""
    names, used = ("sentence-embedding", "tf-idf"), {"max_length": 6, "precision": "fp32"}
    for kind, told in (("classification", {}), ("pairs", {"pair_encoding": "separate"})):
        rows = [tiny_examples(kind, seed=seed) for seed in range(3)]
        shared: dict[str, Any] = {
            "dataset": Dataset("tiny", *rows, Columns("text", "label")),
            "task": tiny_task(kind, rows[0]),
            "pretrained": SimpleNamespace(encoder=tiny_encoder("bert")),
            "settings": TrainingSettings("accuracy"),
            **used,
        }
        others = dict.fromkeys(("cache", "devices", "progress"))
        context = Context(**cast(Any, shared | others))
        runs = configure([Candidate(name) for name in names], [0], context)
        assert [run.config.settings for run in runs] == [used | told, {}]

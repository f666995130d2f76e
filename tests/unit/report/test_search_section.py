from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.unit.report.sample_search import RANGES, sampled, search, trial

from totune.report.document import Section
from totune.report.markdown import section_markdown
from totune.report.plots import colors_of
from totune.report.search_section import search_section
from totune.report.table import Cell
from totune.search.records import SearchRecord

STRATEGIES = ["tf-idf", "fine-tuning", "feature-extraction"]
ONE = {"learning_rate": RANGES["learning_rate"]}


def section_of(*searches: SearchRecord) -> Section:
    return search_section(searches, STRATEGIES)


def cells(section: Section, row: int = 0) -> dict[str, Cell]:
    (table,) = section.tables
    names = [column.name for column in table.columns]
    return dict(zip(names, table.rows[row].cells, strict=True))


def words(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter() if node.text]


def test_without_a_search_there_is_no_section():
    assert section_of().is_empty()
    assert section_of(search([], ranges={})).is_empty()


def test_a_row_tells_a_search():
    found = cells(section_of(replace(sampled(), fixed={"warmup_ratio": 0.2})))
    assert found["Trials"] == Cell(20, "20", "5 pruned, 1 failed, 1 repeated")
    assert found["Time"].value == pytest.approx(19 * 31)
    assert found["Dev accuracy, defaults"].text == "85.2"
    assert found["Dev accuracy, winner"] == Cell(pytest.approx(0.85849, abs=1e-4), "85.8", "+0.6")
    won = found["Options that won"]
    assert won.text == (
        "learning rate 0.000281 (0.0001), layer decay 0.919 (1), weight decay 0.00253 (0.01), "
        "epochs 5 (3), schedule linear, head dropout 0.139 (0.1)"
    )
    assert won.detail == (
        "most important: learning rate 71%, head dropout 13%; set by hand: warmup ratio 0.2"
    )
    assert isinstance(won.value, dict)
    assert won.value["num_train_epochs"] == 5


def test_rows_come_in_the_studys_order_and_the_others_are_named():
    first = search([trial(0, None), trial(1, None, same_as=0)])
    section = section_of(replace(first, strategy="feature-extraction"), first)
    assert section.tables[0].values("Strategy") == ["fine-tuning", "feature-extraction"]
    assert "Not searched: tf-idf." in section.tables[0].notes[0]
    assert "A repeated trial" in section.tables[0].notes[0]


def test_it_says_once_that_a_winners_dev_score_is_flattered():
    first = search([trial(0, None)])
    section = section_of(first, replace(first, strategy="tf-idf"))
    assert section_markdown(section).count("flattered") == 1
    assert "is the highest of many" in section.paragraphs[0]
    error = section_of(search([trial(0, None)], metric="mse"))
    assert "is the lowest of many" in error.paragraphs[0]


def test_where_the_defaults_won_nothing_was_gained():
    found = cells(section_of(search([trial(0, 0.8), trial(1, 0.7)])))
    assert found["Options that won"].text == "the defaults"
    assert found["Dev accuracy, winner"] == Cell(0.8, "80.0", "")


def test_an_error_that_falls_has_a_minus():
    record = search([trial(0, 2.5), trial(1, 0.7)], metric="mse", best=1)
    found = cells(section_of(record))
    assert found["Dev mean squared error, winner"] == Cell(0.7, "0.700", "−1.80")


def test_all_failed_is_a_warning_and_a_row_without_pictures():
    record = search([trial(n, None, error="out of memory.") for n in range(3)])
    section = section_of(record, search([trial(0, 0.8)], strategy="tf-idf", ranges=ONE))
    assert section.warnings == ("No trial of fine-tuning has a score: out of memory.",)
    assert len(section.pictures) == 1
    found = cells(section, 1)
    assert found["Trials"].detail == "3 failed"
    assert found["Dev accuracy, winner"].value is None
    assert found["Options that won"].text == "–"
    alone = section_of(record)
    assert alone.pictures == ()
    assert alone.tables[0].values("Strategy") == ["fine-tuning"]


def test_each_search_has_one_picture_with_all_that_is_in_it():
    (picture,) = section_of(sampled()).pictures
    drawn = set(words(picture.svg))
    assert {"fine-tuning", "defaults", "Trial", "Accuracy, points"} <= drawn
    assert {"learning rate · 71%", "head dropout · 13%", "schedule · <1%"} <= drawn
    assert {"slanted-triangular", "2e-05", "0.0005"} <= drawn
    assert picture.caption == (
        "Every trial's score, by trial with the best so far, and by the value of each option. The "
        "winner is dark. Crosses were ended early. A triangle lies beyond the scale. Failed trials "
        "are not shown. In percent: how much of the variance of scores over trials an option "
        "explains (fANOVA)."
    )
    assert colors_of(STRATEGIES)["fine-tuning"].lower() in picture.svg


def test_the_same_searches_give_the_same_pictures():
    record = search([trial(0, 0.8), trial(1, 0.7)], ranges=ONE)
    assert section_of(record) == section_of(record)


@pytest.mark.parametrize("count", [1, 5])
def test_one_trial_and_equal_scores_are_drawn(count: int):
    (picture,) = section_of(search([trial(n, 0.85) for n in range(count)])).pictures
    assert picture.caption == (
        "Every trial's score, by trial with the best so far, and by the value of each option. The "
        "winner is dark. Too few trials to say which options matter."
    )
    assert "85" in "".join(words(picture.svg))


def test_one_option_has_no_importance():
    section = section_of(search([trial(n, 0.8 + n / 100) for n in range(5)], ranges=ONE))
    (picture,) = section.pictures
    assert picture.caption.endswith("One option was searched.")
    assert {"learning rate", "2e-05", "0.0005", "Accuracy, points"} <= set(words(picture.svg))
    assert cells(section)["Options that won"].text == "learning rate 0.0002 (0.0001)"


def test_options_that_have_no_room_are_counted():
    range_ = {"kind": "choices", "values": [f"a-very-long-choice-{n}" for n in range(12)]}
    ranges: dict[str, Any] = {f"option_{n}": range_ for n in range(10)}
    options = dict.fromkeys(ranges, "a-very-long-choice-3")
    section = section_of(search([trial(n, 0.8, options=options) for n in range(2)], ranges=ranges))
    (picture,) = section.pictures
    assert picture.caption.endswith("The 8 first of 10 options.")
    assert "option 7" in words(picture.svg)
    assert "option 8" not in words(picture.svg)
    shortened = {text for text in words(picture.svg) if text.endswith("…")}
    assert shortened == {"a-very-long…"}

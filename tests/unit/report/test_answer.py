from dataclasses import replace

import numpy as np
from tests.unit.report.sample_study import run_of

from totune.advice import Advice, StrategySummary
from totune.report.answer import answer, glance_table, glossary
from totune.report.document import Document, Section
from totune.report.html import document_html, section_html
from totune.report.markdown import document_markdown
from totune.runs.records import RunRecord, StudyInfo

NASTY = "<script>alert(1)</script>"


def test_the_answer_names_the_strategy_and_its_cheapest_rival_in_texts_of_a_hundred(
    info: StudyInfo, records: list[RunRecord], advice: Advice
):
    found = answer(info, records, advice)
    assert found.headline == (
        "Use fine-tuning: it gets 85 of 100 right; the cheapest rival, tf-idf, 76."
    )
    assert dict(found.parts)["Sure of it?"] == (
        "Yes: it scores best, and whatever costs less is credibly worse by more than 0.5 points. "
        "Mind what stands below.",
    )
    assert found.caveats == advice.caveats


def test_an_open_answer_says_what_is_open_and_what_settles_it(
    info: StudyInfo, records: list[RunRecord], undecided: Advice
):
    doubt = "The cheaper tf-idf may do as well: 2 more seeds should settle it (`seeds=5`)."
    found = answer(info, records, replace(undecided, doubts=(doubt,)))
    assert found.headline.startswith("Use last-2 for now: it gets 71 of 100 right")
    assert dict(found.parts)["Sure of it?"] == (f"Not yet. {doubt}",)


def test_the_cheapest_is_set_against_the_best_of_the_others(
    info: StudyInfo, records: list[RunRecord], advice: Advice
):
    cheapest = replace(advice, recommended="tf-idf", provisional="tf-idf")
    found = answer(info, records, cheapest)
    assert found.headline.endswith("right; the best of the others, fine-tuning, 85.")
    assert "within 0.5 points of the best, fine-tuning, and costs less" in str(found.parts)


def test_a_constant_answer_is_a_rival_only_where_there_is_no_other(
    info: StudyInfo, records: list[RunRecord], advice: Advice
):
    usable = tuple(record for record in records if record.strategy == "tf-idf")
    constant = StrategySummary("tf-idf", usable, usable, np.zeros((3, 8)))
    with_constant = replace(advice, standings=(constant,))
    found = answer(info, records, with_constant)
    assert found.headline.endswith("the cheapest rival, feature-extraction, 78.")
    two = [record for record in records if record.strategy in ("tf-idf", "fine-tuning")]
    found = answer(info, two, with_constant)
    assert found.headline.endswith("one answer for every text, tf-idf, 76.")


def test_scores_that_round_alike_are_told_apart(info: StudyInfo, advice: Advice):
    near = [
        replace(run_of(name, 0), test={"accuracy": value})
        for name, value in (("fine-tuning", 0.8472), ("tf-idf", 0.8451))
    ]
    found = answer(info, near, advice)
    assert found.headline == (
        "Use fine-tuning: it gets 84.7 of 100 right; the cheapest rival, tf-idf, 84.5."
    )


def test_other_metrics_have_their_own_words(
    regression: tuple[StudyInfo, list[RunRecord]], advice: Advice
):
    info, records = regression
    assert answer(info, records, advice).headline == (
        "Use fine-tuning: it scores 86.1 points Pearson correlation; the cheapest rival, "
        "feature-extraction, 81.2."
    )
    squared = replace(info, metric="mse")
    assert "scores 12.3 mean squared error (lower is better); the" in (
        answer(squared, records, advice).headline
    )


def test_without_a_verdict_the_advice_speaks(
    info: StudyInfo, records: list[RunRecord], advice: Advice
):
    found = answer(info, records, replace(advice, verdict="none", recommended=None))
    assert found.headline == advice.headline
    assert dict(found.parts)["Sure of it?"] == ()
    assert found.verdict == "no verdict"


def test_rows_and_classes_stand_beside_the_answer(
    info: StudyInfo, records: list[RunRecord], advice: Advice
):
    counts = {f"class {n}": n for n in range(10_000)} | {NASTY: 20_000}
    many = replace(info, data={**info.data, "class_counts": counts})
    (data,) = dict(answer(many, records, advice).parts)["The data:"]
    assert data.startswith(
        "6,824 rows to learn from, 853 to choose epochs by, 853 to test on. Classes (10,001): "
        f"{NASTY} 20,000, class 9999 9,999, "
    )
    assert data.endswith("class 9991 9,991 and 9,991 more.")
    page = document_html(Document("t", "s", answer(many, records, advice), ()))
    assert "<script" not in page
    folded = replace(info, settings={"folds": 5}, data={"rows": {"all": 900}})
    (data,) = dict(answer(folded, records, advice).parts)["The data:"]
    assert data == "900 rows, each tested by a model that did not train on it."


def test_the_table_says_what_is_better_and_cheaper(
    info: StudyInfo, records: list[RunRecord], advice: Advice
):
    table = glance_table(info, records, advice)
    assert table.values("Strategy") == ["fine-tuning", "feature-extraction", "tf-idf", "last-2"]
    assert table.rows[0].mark == "recommended"
    assert table.values("Against the best")[:2] == ["best score", "worse, beyond chance"]
    assert table.values("Better and cheaper") == ["", "", "", "feature-extraction, tf-idf"]


def test_folded_sections_are_closed_until_opened(info: StudyInfo):
    page = section_html(glossary(info))
    assert page.index("<details>") < page.index("<h2>Glossary</h2></summary>")
    assert page.rstrip().endswith("</details>\n</section>")
    assert "credibly" in page
    assert "Holm" in page
    assert "fold<" not in page
    assert "fold<" in section_html(glossary(replace(info, settings={"folds": 5})))
    assert "<details>" not in section_html(Section("Open", ("Some words.",)))


def test_a_single_sentence_stands_beside_its_name(
    info: StudyInfo, records: list[RunRecord], advice: Advice
):
    document = Document("t", "s", answer(info, records, advice), ())
    assert "<strong>Sure of it?</strong> Yes: it scores best" in document_html(document)
    assert "**Sure of it?** Yes: it scores best" in document_markdown(document)

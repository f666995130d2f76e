"""Compare two ways of adapting an encoder, from Python, and use the model that is recommended.

Run it after `make install`: .venv/bin/python examples/compare_from_python.py
"""

import totune


def main() -> None:
    """Compares on a tenth of the film reviews, prints the answer, predicts two labels."""
    study = totune.compare(
        "example:rotten-tomatoes",
        strategies=["tf-idf", "feature-extraction", {"strategy": "last-2", "label": "top two"}],
        seeds=2,
        fraction=0.1,
        out="studies/from-python",
    )
    print(study.advice.headline)
    for record in study.records:
        print(f"{record.strategy}, seed {record.seed}: accuracy {record.test['accuracy']:.3f}")
    model = totune.load(study.best)
    print(model.predict(["A joy from start to finish.", "Two hours that feel like five."]))


if __name__ == "__main__":
    main()

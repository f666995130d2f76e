"""A data frame compared, its scores as a data frame, and the best model used."""

import pandas as pd

import totune

texts = [f"{how} film, number {n}" for n in range(60) for how in ("A joyful", "A dull")]
frame = pd.DataFrame({"text": texts, "label": ["good", "bad"] * 60})
if __name__ == "__main__":
    study = totune.compare(
        frame,
        strategies=["tf-idf", "feature-extraction", totune.LastK(k=1, num_train_epochs=2)],
        seeds=2,
        out="studies/frame",
    )
    print(study.to_pandas().groupby("strategy")["test_accuracy"].mean())
    print(study.best_model().predict(["A joyful evening", "A dull evening"]))

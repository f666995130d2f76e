"""SetFit's side of `benchmarks/contrastive.py`, in an environment of its own that has setfit.

Reads lines of JSON: an encoder's folder, train rows, test rows, settings. Writes for each a line:
accuracy in points, and the seconds that training took, of wall time and of the processor. Needs
nothing of totune.
"""

import json
import logging
import sys
import tempfile
import time
from typing import Any


def measure(job: dict[str, Any]) -> dict[str, float]:
    """Trains SetFit with its defaults, but for what the job sets, and scores it on test."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments
    from transformers import set_seed

    set_seed(job["seed"])
    model = SetFitModel.from_pretrained(job["encoder"])
    model.model_body.max_seq_length = job["max_length"]
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            output_dir=folder,
            seed=job["seed"],
            report_to="none",
            save_strategy="no",
            show_progress_bar=False,
            **job["settings"],
        )
        rows = {"text": job["texts"], "label": job["labels"]}
        trainer = Trainer(model=model, args=settings, train_dataset=Dataset.from_dict(rows))
        wall, processor = time.perf_counter(), time.process_time()
        trainer.train()
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    found = [int(label) for label in model.predict(job["test_texts"])]
    right = sum(a == b for a, b in zip(found, job["test_labels"], strict=True))
    return {"accuracy": 100 * right / len(found), "seconds": wall, "cpu_seconds": processor}


if __name__ == "__main__":
    import torch

    torch.set_num_threads(int(sys.argv[1]))
    logging.disable(logging.WARNING)
    answers, sys.stdout = sys.stdout, sys.stderr  # what others print is no answer
    for line in sys.stdin:
        print(json.dumps(measure(json.loads(line))), file=answers, flush=True)

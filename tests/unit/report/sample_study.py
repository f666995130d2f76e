"""A study as a person might run it: four strategies, three seeds, one run collapsed."""

from dataclasses import replace

from totune.runs.records import Costs, EpochRecord, RunRecord

SEEDS = (0, 1, 2)
STRATEGIES = ("feature-extraction", "last-2", "fine-tuning", "tf-idf")
TEST_ACCURACY = {
    "feature-extraction": (0.781, 0.779, 0.783),
    "last-2": (0.812, 0.809, 0.500),
    "fine-tuning": (0.846, 0.851, 0.843),
    "tf-idf": (0.756, 0.756, 0.756),
}
COSTS = {
    "feature-extraction": Costs(770, 22_713_986, 4.1, 21.3, 31_250.0, 412_000_000, 3_080, 1.93),
    "last-2": Costs(3_550_466, 22_713_986, 48.2, 0.0, 402.0, 733_000_000, 14_201_864, 1.98),
    "fine-tuning": Costs(22_713_986, 22_713_986, 211.0, 0.0, 84.3, 1_310_000_000, 90_855_944, 1.95),
    "tf-idf": Costs(41_212, 0, 0.62, 0.0, 27_400.0, 198_000_000, 329_696, 0.04),
}
PHASES = {
    "feature-extraction": [("head", 12)],
    "last-2": [("head", 2), ("head and top layers", 3)],
    "fine-tuning": [("everything", 3)],
    "tf-idf": [],
}


def epochs_of(strategy: str, final: float, seed: int) -> list[EpochRecord]:
    """A curve that rises towards `final`, a little apart for each seed."""
    total = sum(count for _, count in PHASES[strategy])
    found = []
    for phase, count in PHASES[strategy]:
        for _ in range(count):
            done = (len(found) + 1) / total
            dev = final - 0.09 * (1 - done) ** 1.6 + 0.002 * seed
            train = {"loss": 0.7 - 0.4 * done, "accuracy": final - 0.1 + 0.16 * done}
            found.append(
                EpochRecord(phase, len(found) + 1, train, {"accuracy": dev, "f1": dev}, 1.5)
            )
    return found


def run_of(strategy: str, seed: int) -> RunRecord:
    accuracy = TEST_ACCURACY[strategy][seed]
    epochs = epochs_of(strategy, accuracy, seed)
    return RunRecord(
        fingerprint=f"{strategy}-{seed}",
        strategy=strategy,
        seed=seed,
        status="finished",
        config={},
        seeds={"init": seed, "order": seed},
        precision="float32",
        epochs=epochs,
        best_epoch=len(epochs),
        dev={"accuracy": accuracy + 0.004},
        test={"accuracy": accuracy, "f1": accuracy + 0.006},
        costs=replace(
            COSTS[strategy], feature_seconds=COSTS[strategy].feature_seconds * (not seed)
        ),
        degenerate="predicts only 'neg'" if accuracy == 0.5 else None,
    )


def stacked(seed: int, stack: int, gap: float) -> RunRecord:
    """Stack-and-finetune whose first phase takes `stack` epochs, until train leads dev by `gap`."""
    why = f"train leads dev by {gap:.3f}, more than 0.05"
    epochs = []
    for at in range(1, stack + 1):
        dev, lead = 0.7 + 0.01 * at, gap * at / stack
        train = {"accuracy": dev - 0.02}
        after = {"accuracy": dev + lead}
        ended = why if at == stack else ""
        epochs.append(
            EpochRecord("stack", at, train, {"accuracy": dev}, 0.2, 6, True, after, ended)
        )
    for at in range(1, 4):
        ended = "all 3 epochs are done" if at == 3 else ""
        scores = {"accuracy": 0.75 + 0.03 * at}, {"accuracy": 0.78 + 0.02 * at}
        epochs.append(EpochRecord("all", stack + at, *scores, 60.0, -1, False, {}, ended))
    return replace(
        run_of("fine-tuning", seed),
        fingerprint=f"stack-and-finetune-{seed}",
        strategy="stack-and-finetune",
        config={"strategy": {"options": {"gap_tolerance": 0.05}}, "head": {"name": "bilstm"}},
        epochs=epochs,
        best_epoch=len(epochs) - 1,
    )

"""What a training step of each way of adapting costs beside fine-tuning's: time and memory.

Same encoder (MiniLM), head, batches (MRPC, all of one length) and precision. Time: the strategies'
steps in turn, in one process, without a cache. Memory: a process for each, what a step adds to the
loaded model. "Parameter-efficient" tuning trains few parameters, but gradients still have to pass
through every layer, so what it saves is the weights' gradients and the optimizer's work.
"""

import argparse
import copy
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import torch
from torch import nn

from benchmarks.common import save
from totune import machine
from totune.encoders.loading import load_encoder
from totune.heads.base import HEADS
from totune.inputs.batches import Batch
from totune.model import Model
from totune.strategies.base import STRATEGIES
from totune.tasks.classification import Classification
from totune.training.optimizer import apply_phase, build_optimizer, trainable

STRATEGY_NAMES = (
    *("fine-tuning", "frozen-embeddings", "last-2", "bitfit"),
    *("adapters", "lora"),
)
BATCH, PIECES = 32, 53  # MRPC's mean length


def batch_of(vocabulary: int) -> Batch:
    """Random word pieces, no padding, with labels."""
    torch.manual_seed(0)
    ids = torch.randint(1000, vocabulary, (BATCH, PIECES))
    return Batch(
        indices=torch.arange(BATCH).numpy(),
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        token_type_ids=torch.zeros_like(ids),
        targets=torch.arange(BATCH) % 2,
    )


def step_of(name: str) -> tuple[Callable[[], None], Model]:
    """One optimizer step of a strategy's last phase, and its model."""
    loaded = load_encoder()
    strategy = STRATEGIES.create(name)
    encoder = copy.deepcopy(loaded.encoder)
    head = HEADS.create("linear", strategy.head_defaults(encoder))
    task = Classification(("no", "yes"))
    precision = machine.choose_precision("auto")
    model = Model(encoder, strategy.readout(encoder), head, task, precision)
    strategy.prepare(model)
    optimizer = build_optimizer(apply_phase(model, strategy.plan(model)[-1]))
    model.prepare_training(torch.device("cpu"))
    model.freeze_prefix()
    model.train()
    batch = batch_of(len(loaded.tokenizer))

    def step() -> None:
        model.losses(model(batch), batch).mean().backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(trainable(model), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step, model


def times(steps: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """The median seconds of a step of each, taken in turn."""
    found: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        step()
    for _ in range(rounds):
        for name, step in steps.items():
            began = time.perf_counter()
            step()
            found[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in found.items()}


def added_memory(name: str) -> int:
    """Bytes that three steps add, at their peak, to a process that holds the model."""
    step, _ = step_of(name)
    machine.reset_peak_memory()
    before = machine.peak_memory()
    for _ in range(3):
        step()
    return machine.peak_memory() - before


def main(rounds: int = 12) -> None:
    """Measures every strategy and writes `benchmarks/results/adaptation.json`."""
    machine.keep_freed_memory()
    made = {name: step_of(name) for name in STRATEGY_NAMES}
    seconds = times({name: step for name, (step, _) in made.items()}, rounds)
    rows = {}
    for name, (_, model) in made.items():
        run = [sys.executable, "-m", "benchmarks.adaptation", "--memory-of", name]
        memory = int(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
        rows[name] = {
            "trainable": sum(p.numel() for p in trainable(model)),
            "seconds_per_step": seconds[name],
            "speed_against_fine_tuning": seconds["fine-tuning"] / seconds[name],
            "memory_added_bytes": memory,
        }
        print(
            f"  {name}: {rows[name]['speed_against_fine_tuning']:.2f}x fine-tuning's speed, "
            f"{memory / 1e6:.0f} MB more at its peak, {rows[name]['trainable']:,} parameters"
        )
    what = f"one training step of MiniLM, {BATCH} x {PIECES} pieces, linear head, no cache"
    path = save("adaptation", {"what": what, "precision": machine.choose_precision("auto"), **rows})
    print(f"ways of adapting: -> {path.name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--memory-of", help="prints the bytes that this strategy's steps add")
    chosen = parser.parse_args()
    if chosen.memory_of:
        print(added_memory(chosen.memory_of))
    else:
        main(chosen.rounds)

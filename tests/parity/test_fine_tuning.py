"""Fine-tuning against a plain torch loop over transformers' own classifier."""

import pytest
import torch
from tests.encoder_zoo import tiny_config
from tests.tiny_runs import TinyTask, classes, fit
from transformers import (
    AutoModelForSequenceClassification,
    PreTrainedModel,
    get_linear_schedule_with_warmup,
)

from totune.encoders.mixing import Readout
from totune.encoders.transformers import TransformersEncoder
from totune.heads.linear import Linear
from totune.inputs.batches import shuffled_batches
from totune.model import Model
from totune.strategies.fine_tuning import FineTuning
from totune.training.trainer import TrainingSettings

RATE, DECAY, EPOCHS, BATCH, NORM, WARMUP = 3e-4, 0.05, 3, 8, 0.5, 0.2


@pytest.fixture(scope="module")
def tiny() -> TinyTask:
    return TinyTask.of("classification")


@pytest.fixture
def theirs() -> PreTrainedModel:
    config = tiny_config("bert")
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
    config.id2label = {0: "a", 1: "b", 2: "c"}
    torch.manual_seed(0)
    return AutoModelForSequenceClassification.from_config(config)


def ours_from(theirs: PreTrainedModel) -> Model:
    encoder = TransformersEncoder.from_config(theirs.config)
    encoder.model.load_state_dict(theirs.bert.state_dict())
    model = Model(encoder, Readout("top", "pooler"), Linear(dropout=0.0), classes(3))
    model.head.out.load_state_dict(theirs.classifier.state_dict())
    return model


def plain_loop(model: PreTrainedModel, tiny: TinyTask) -> None:
    named = list(model.named_parameters())
    spared = [p for n, p in named if n.endswith("bias") or "LayerNorm" in n]
    kept = [p for n, p in named if not (n.endswith("bias") or "LayerNorm" in n)]
    groups = [{"params": kept, "weight_decay": DECAY}, {"params": spared, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE)
    batches = [
        rows
        for epoch in range(1, EPOCHS + 1)
        for rows in shuffled_batches(tiny.train.pieces.lengths, BATCH, 0, epoch)
    ]
    total = len(batches)
    schedule = get_linear_schedule_with_warmup(optimizer, round(WARMUP * total), total)
    model.train()
    for rows in batches:
        batch = tiny.train.pieces.batch(rows)
        loss = model(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            token_type_ids=batch.token_type_ids,
            labels=torch.from_numpy(tiny.train.targets[rows]),
        ).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), NORM)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


def test_weights_equal_those_of_a_plain_loop(tiny: TinyTask, theirs: PreTrainedModel) -> None:
    ours = ours_from(theirs)
    before = {name: p.detach().clone() for name, p in theirs.named_parameters()}
    strategy = FineTuning(
        learning_rate=RATE, weight_decay=DECAY, num_train_epochs=EPOCHS, warmup_ratio=WARMUP
    )
    last: dict[str, torch.Tensor] = {}  # fit itself leaves the best epoch's weights

    def keep(_: object) -> None:
        last.update({n: p.detach().clone() for n, p in ours.named_parameters()})

    settings = TrainingSettings("accuracy", BATCH, NORM)
    fit(ours, strategy.plan(ours), tiny, settings=settings, on_epoch=keep)
    plain_loop(theirs, tiny)
    for name, parameter in theirs.named_parameters():
        own = name.replace("bert.", "encoder.model.").replace("classifier.", "head.out.")
        assert not torch.equal(parameter, before[name])
        torch.testing.assert_close(last[own], parameter.detach(), atol=1e-6, rtol=0)

"""A surrogate of F1 in a Hugging Face `Trainer`, through `compute_loss_func`.

    python examples/hugging_face.py

A tiny BERT with random weights learns which of five words a text contains. The expected loss
(q = 1) is not convex, and from random weights this model would end with one label set for all
texts; a schedule goes there from the logistic loss (q = 0), by one callback.

The loss of a step is a sum over its rows divided by the number of rows in all batches that are
accumulated for it: `num_items_in_batch` counts entries of the labels, so it is divided by the
number of labels.
"""

from __future__ import annotations

import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from setwise.nn import QSchedule, SurrogateLoss
from setwise.targets import get_target

N_LABELS, N_WORDS, LENGTH = 5, 15, 6

loss = SurrogateLoss("f1", surrogate="comp_sum", q=0.0, reduction="sum")


def compute_loss(outputs, labels, num_items_in_batch=None):
    """The mean loss over the rows of all accumulated batches."""
    rows = len(labels) if num_items_in_batch is None else num_items_in_batch / labels.shape[1]
    return loss(outputs.logits, labels) / rows


def instance_f1(prediction) -> dict[str, float]:
    """F1 of each row, averaged, predicting the labels whose logit is not negative."""
    y_pred = (prediction.predictions >= 0).astype(np.uint8)
    return {"f1": 1.0 - float(get_target("f1").loss(y_pred, prediction.label_ids).mean())}


class FromLogistic(TrainerCallback):
    """Sets q at the beginning of each step: from 0 to 1 over the whole training."""

    def on_step_begin(self, args, state, control, **rest):
        """q of this step."""
        loss.q = QSchedule(state.max_steps)(state.global_step)


class Texts(Dataset):
    """Random words; label i is true where word i occurs."""

    def __init__(self, n_rows: int, seed: int):
        generator = torch.Generator().manual_seed(seed)
        self.words = torch.randint(0, N_WORDS, (n_rows, LENGTH), generator=generator)
        self.labels = (self.words[:, :, None] == torch.arange(N_LABELS)).any(1).float()

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, row: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.words[row], "labels": self.labels[row]}


def main(n_rows: int = 1_000, epochs: float = 15, accumulated: int = 2) -> tuple[float, float]:
    """Instance F1 before and after training."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=N_WORDS,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
        num_labels=N_LABELS,
        problem_type="multi_label_classification",
    )
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            output_dir=folder,
            num_train_epochs=epochs,
            learning_rate=3e-3,
            per_device_train_batch_size=32,
            gradient_accumulation_steps=accumulated,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            seed=0,
        )
        trainer = Trainer(
            model=BertForSequenceClassification(config),
            args=settings,
            train_dataset=Texts(n_rows, seed=1),
            eval_dataset=Texts(500, seed=2),
            compute_loss_func=compute_loss,
            compute_metrics=instance_f1,
            callbacks=[FromLogistic()],
        )
        before = trainer.evaluate()["eval_f1"]
        trainer.train()
        return before, trainer.evaluate()["eval_f1"]


if __name__ == "__main__":
    print("instance F1 before training {:.4f}, after {:.4f}".format(*main()))

"""Hugging Face transformers: a Trainer that takes Loaders as its data sets.

    from shardloader.transformers import LoaderTrainer

    train, val = sl.Loader("out/train", ...), sl.Loader("out/val", ...)
    LoaderTrainer(model, args, train_dataset=train, eval_dataset=val).train()

Batch sizes, shuffling and ranks are the loaders'; `per_device_train_batch_size` and its kind are not used.
The model is called with pixel_values=images and labels=labels. Make loaders with framework="torch" and the
device on which the model trains.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers.trainer
from transformers import Trainer

from ._loader import Loader

__all__ = ["Inputs", "LoaderTrainer"]


_skip_first_batches = transformers.trainer.skip_first_batches


def _skip(batches: Any, num_batches: int = 0) -> Any:
    """What a Trainer calls when it resumes; it makes a DataLoader of anything else."""
    return (
        batches.skip(num_batches)
        if isinstance(batches, Inputs)
        else _skip_first_batches(batches, num_batches)
    )


transformers.trainer.skip_first_batches = _skip


class Inputs:
    """The batches of a loader as the keyword arguments of a model: {"pixel_values":
    images, "labels": labels}. copies: of the images, for whoever keeps more batches than the loader has.

    len(), set_epoch(), batch_size and dataset are the loader's.
    """

    def __init__(
        self, loader: Loader, images: str = "pixel_values", labels: str = "labels", copies: bool = False
    ) -> None:
        self.loader = loader
        self._names = (images, labels)
        self._copies = copies
        self._skipped = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        images, labels = self._names
        copies = self._copies
        return (
            {images: batch.images.clone() if copies else batch.images, labels: batch.labels}
            for batch in self.loader
        )

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration; a Trainer calls it."""
        skipped, self._skipped = self._skipped, 0
        if skipped > 0:
            self.loader._engine.seek(epoch, skipped)
        else:
            self.loader.set_epoch(epoch)

    def skip(self, batches: int) -> Inputs:
        """Without the first batches of the epoch that is set next. They are not loaded."""
        rest = type(self)(self.loader, *self._names, self._copies)
        rest._skipped = batches
        return rest

    @property
    def batch_size(self) -> int:
        """Samples per batch of this rank."""
        return self.loader.batch_size

    @property
    def dataset(self) -> Any:
        """The loader's data set; its length is that of all ranks together."""
        return self.loader.dataset


class LoaderTrainer(Trainer):
    """transformers.Trainer whose train_dataset and eval_dataset are Loaders.

    train(resume_from_checkpoint=...) continues with the batch after the checkpoint's.
    Batches that were seen are not loaded again.
    """

    def get_train_dataloader(self) -> Any:
        """The train loader's batches."""
        # A Trainer collects the batches of a step before it works on the first of them.
        return _inputs(self.train_dataset, "train_dataset", self.args.gradient_accumulation_steps > 1)

    def get_eval_dataloader(self, eval_dataset: str | Loader | None = None) -> Any:
        """The batches of the given loader, of the one with that name, or of eval_dataset."""
        if isinstance(eval_dataset, str):
            eval_dataset = self.eval_dataset[eval_dataset]
        return _inputs(self.eval_dataset if eval_dataset is None else eval_dataset, "eval_dataset")

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        """The batches of the given loader."""
        return _inputs(test_dataset, "test_dataset")


def _inputs(loader: Any, name: str, copies: bool = False) -> Inputs:
    if isinstance(loader, Inputs):
        return loader
    if not isinstance(loader, Loader):
        raise TypeError(f"{name} is a {type(loader).__name__}; LoaderTrainer takes a shardloader.Loader")
    return Inputs(loader, copies=copies)

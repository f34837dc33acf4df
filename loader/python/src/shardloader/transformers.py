"""Hugging Face transformers: a Trainer that takes Loaders as its data sets.

    from shardloader.transformers import LoaderTrainer

    LoaderTrainer(model, args, train_dataset=sl.Loader("out/train", ...), eval_dataset=sl.Loader("out/val", ...)).train()

Batch sizes, shuffling and ranks are the loaders'; `per_device_train_batch_size` and its kind are not used. The model is called with
pixel_values=images and labels=labels. Make loaders with framework="torch" and the device on which the model trains.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional, Union

from transformers import Trainer

from ._loader import Loader

__all__ = ["Inputs", "LoaderTrainer"]


class Inputs:
    """The batches of a loader as the keyword arguments of a model: {"pixel_values": images, "labels": labels}.

    len(), set_epoch(), batch_size and dataset are the loader's.
    """

    def __init__(self, loader: Loader, images: str = "pixel_values", labels: str = "labels") -> None:
        self.loader = loader
        self._names = (images, labels)

    def __iter__(self) -> "Iterator[dict[str, Any]]":
        images, labels = self._names
        return ({images: batch.images, labels: batch.labels} for batch in self.loader)

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration; a Trainer calls it."""
        self.loader.set_epoch(epoch)

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

    To resume in the middle of an epoch, give the Trainer's arguments ignore_data_skip=True and call load_state_dict() of the train
    loader yourself: batches that were seen are then not loaded again.
    """

    def get_train_dataloader(self) -> Any:
        """The train loader's batches."""
        return _inputs(self.train_dataset, "train_dataset")

    def get_eval_dataloader(self, eval_dataset: Optional[Union[str, Loader]] = None) -> Any:
        """The batches of the given loader, of the one with that name, or of eval_dataset."""
        if isinstance(eval_dataset, str):
            eval_dataset = self.eval_dataset[eval_dataset]
        return _inputs(self.eval_dataset if eval_dataset is None else eval_dataset, "eval_dataset")

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        """The batches of the given loader."""
        return _inputs(test_dataset, "test_dataset")


def _inputs(loader: Any, name: str) -> Inputs:
    if isinstance(loader, Inputs):
        return loader
    if not isinstance(loader, Loader):
        raise TypeError(f"{name} is a {type(loader).__name__}; LoaderTrainer takes a shardloader.Loader")
    return Inputs(loader)

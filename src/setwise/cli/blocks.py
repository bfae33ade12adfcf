"""A folder of blocks as the command line trains on it and predicts for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from setwise.blocks import Block, FolderBlocks
from setwise.datasets import Dataset
from setwise.datasets.convert import schema_of
from setwise.estimators.checkpoint import Lasting
from setwise.files import DataError
from setwise.spelling import some
from setwise.taxonomy import Taxonomy


@dataclass(frozen=True, eq=False)
class BlockData:
    """Blocks of a folder with what is known of their columns, in the place of a `Dataset`."""

    blocks: FolderBlocks
    split: None = None

    @classmethod
    def opened(cls, path: Path) -> BlockData:
        """Those of a folder."""
        return cls(FolderBlocks.open(path))

    def __str__(self) -> str:
        return str(self.blocks)

    def __getattr__(self, name: str) -> Any:
        """Names and sizes are those of the blocks."""
        return getattr(self.blocks, name)

    @property
    def is_sparse(self) -> bool:
        """Whether the features are sparse."""
        return "X" not in self.blocks.about["blocks"][0]["files"]

    @cached_property
    def schema(self) -> Any:
        """How the file was read that the blocks were converted from."""
        return schema_of(self.blocks)

    @property
    def hierarchy(self) -> Any:
        """Edges [parent, child] between labels, or None."""
        return self.blocks.about.get("hierarchy_edges")

    @cached_property
    def taxonomy(self) -> Taxonomy:
        """The hierarchy with the names of the labels."""
        lengths = self.blocks.about.get("hierarchy_lengths")
        return Taxonomy(self.hierarchy, self.blocks.names.names, lengths)

    def fitted(self, estimator: Any, checkpoint: Path) -> Any:
        """The estimator, fitted to the blocks, behind an imputer of missing features.

        The checkpoint stays: it is removed once the model is saved.
        """
        means = np.zeros(self.n_features)
        blocks: Any = self.blocks
        if self.n_missing:
            total, count = blocks.sum(_known)
            with np.errstate(invalid="ignore"):
                means = np.where(count > 0, total / count, 0.0)
            blocks = blocks.changed(Filled(means))
        imputer = SimpleImputer(keep_empty_features=True).fit(means[None])
        try:
            fitted = estimator.fit(blocks, checkpoint=Lasting(checkpoint))
            return make_pipeline(imputer, fitted)
        except KeyboardInterrupt as interrupt:
            if checkpoint.exists():
                interrupt.add_note(f"the same command goes on from {checkpoint}")
            raise

    def chunks(self, schema: Any, rows: int) -> Iterator[Dataset]:
        """The rows in parts, as those of a file that the schema reads."""
        for what, own, wanted in (
            ("features", self.blocks.feature_names, schema.feature_names),
            ("labels", self.blocks.about["label_names"], schema.label_names),
        ):
            listed = None if wanted is None else np.asarray(wanted).tolist()
            if own is not None and listed is not None and own != listed:
                differ = [name for name in own if name not in set(listed)] or own
                reason = f"its {what} are not those of the model: {some(differ)}"
                raise DataError(self.blocks.folder, None, reason)
        for number in range(len(self.blocks)):
            block = self.blocks.load(number)
            for first in range(0, len(block.weights), rows):
                part = block.take(slice(first, first + rows))
                yield Dataset(
                    part.inputs, None, schema.feature_names, schema.label_names,
                    hierarchy=self.hierarchy, schema=schema, name=self.name,
                    edge_lengths=self.blocks.about.get("hierarchy_lengths"),
                )  # fmt: skip


@dataclass(frozen=True)
class Filled:
    """Blocks whose missing features are filled in."""

    means: Any

    def __call__(self, number: int, block: Block) -> Block:
        inputs: Any = block.inputs.copy()
        if issparse(inputs):
            lost = np.isnan(inputs.data)
            inputs.data[lost] = self.means[inputs.indices[lost]]
        else:
            lost = np.nonzero(np.isnan(inputs))
            inputs[lost] = self.means[lost[1]]
        return block._replace(inputs=inputs)


def _known(block: Block) -> tuple[Any, Any]:
    """Sum and number of what is not missing of each feature; absent entries are 0."""
    inputs = block.inputs
    values = inputs.data if issparse(inputs) else inputs
    lost, plain = np.isnan(values), np.nan_to_num(values.astype(np.float64))
    if not issparse(inputs):
        return plain.sum(axis=0), (~lost).sum(axis=0)
    d = inputs.shape[1]
    absent = np.bincount(inputs.indices, lost, d).astype(np.int64)
    return np.bincount(inputs.indices, plain, d), inputs.shape[0] - absent

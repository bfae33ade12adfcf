"""Rows in blocks, and sums over them: all that a learner needs of its rows.

A `Block` has inputs, label sets and weights of some rows. `Blocks` are many of them, in memory, in
the files of a folder, or wherever else a back end keeps them; they answer one question, the sum of
a function over all blocks. Sums are taken in an order that depends on nothing but the number of
blocks, so that they are the same to the last bit whoever computed the terms.
"""

from setwise.blocks.block import Block, Blocks
from setwise.blocks.folder import BlockWriter, FolderBlocks
from setwise.blocks.memory import MemoryBlocks

__all__ = ["Block", "BlockWriter", "Blocks", "FolderBlocks", "MemoryBlocks"]

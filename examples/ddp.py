"""Two processes with `DistributedDataParallel` get the gradients of one.

    python examples/ddp.py

Each process has half of the rows; gradients are averaged, so with halves of equal size they are
those of the mean over all rows. The learnt biases of the space are parameters like any others: they
travel inside the module that is wrapped.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from setwise.nn import LearnableSpace, SurrogateLoss
from setwise.spaces import Sized

N_ROWS, N_FEATURES, N_LABELS = 32, 4, 6


class WithLoss(nn.Module):
    """A network and its loss, so that the parameters of both are kept in step."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Linear(N_FEATURES, N_LABELS)
        self.loss = SurrogateLoss("f1", LearnableSpace(Sized(N_LABELS, [0.0] * 4)), "logistic")

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The mean loss of the rows."""
        return self.loss(self.net(x), y)


def rows() -> tuple[Tensor, Tensor]:
    """The same rows in every process."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(N_ROWS, N_FEATURES, generator=generator)
    return x, torch.rand(N_ROWS, N_LABELS, generator=generator) < 0.3


def work(rank: int, world: int, port: int, folder: str) -> None:
    """Forward and backward on this process's share of the rows."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    x, y = (part[rank::world] for part in rows())
    model = DistributedDataParallel(WithLoss())
    model(x, y).backward()
    torch.save([parameter.grad for parameter in model.parameters()], f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def main(start_method: str = "spawn") -> float:
    """The largest difference of a gradient between two processes and one, relative to its size."""
    alone = WithLoss()
    alone(*rows()).backward()
    whole = [parameter.grad for parameter in alone.parameters()]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, (2, port, folder), nprocs=2, start_method=start_method)
        both = [torch.load(f"{folder}/{rank}.pt") for rank in range(2)]
    return max(
        float((part - one).abs().max() / one.abs().max())
        for parts in both
        for part, one in zip(parts, whole, strict=True)
    )


if __name__ == "__main__":
    difference = main()
    print(f"largest relative difference of a gradient: {difference:.2e}")
    sys.exit(difference > 1e-5)

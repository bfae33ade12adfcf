"""A space whose biases or potentials are learnt together with the network."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from setwise.spaces import Space


class LearnableSpace(nn.Module):
    """A space of label sets with its parameters as a torch Parameter.

    For a Sized space the bias of each size, for a Forest the potentials of its edges, for a Catalog
    the bias of each listed set. They start at the values of the given space; -inf stays -inf. Hand
    it to one loss or to several, and give ``loss.parameters()`` to the optimizer.

    Parameters
    ----------
    space : Space
        Sized, Forest or Catalog, with at least two parameters that are not -inf.

    Examples
    --------
    >>> from setwise.spaces import Sized
    >>> space = LearnableSpace(Sized(3, [-np.inf, 0.5, 0.0]))
    >>> space.values
    Parameter containing:
    tensor([0.5000, 0.0000], requires_grad=True)
    >>> space.current()
    Sized(n_labels=3, bias=array([-inf,  0.5,  0. ]))
    """

    places: Tensor

    def __init__(self, space: Space):
        super().__init__()
        if not isinstance(space, Space):
            raise ValueError(f"a space is an object such as Sized(10, bias), not {space!r}")
        finite = np.flatnonzero(np.isfinite(space.parameters))
        if len(finite) < 2:
            raise ValueError(
                f"{space} has nothing to learn; use a Sized space, a Forest or a Catalog"
            )
        self._space = space
        self.values = nn.Parameter(torch.empty(len(finite)))
        self.register_buffer("places", torch.empty(len(finite), dtype=torch.int64))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The values of the space it was made from; for a module that began without memory."""
        own = self._space.parameters
        finite = np.flatnonzero(np.isfinite(own))
        # Copies that torch owns: letting go of NumPy's memory needs the interpreter, and a thread
        # of DistributedDataParallel that holds it last would wait for that forever.
        with torch.no_grad():
            self.values.copy_(torch.tensor(own[finite]))
            self.places.copy_(torch.tensor(finite))

    @property
    def initial(self) -> Space:
        """The space it was made from."""
        return self._space

    def forward(self) -> Tensor:
        """All parameters of the space, -inf where excluded, (p,)."""
        everything = torch.full(
            (len(self._space.parameters),),
            -torch.inf,
            dtype=self.values.dtype,
            device=self.values.device,
        )
        return everything.scatter(0, self.places, self.values)

    def current(self) -> Space:
        """The space with the values learnt so far, for decoding with `setwise.decoders`."""
        return self._space.with_parameters(self().detach().cpu().double().numpy())

    def extra_repr(self) -> str:
        """The space it was made from."""
        return str(self._space)

"""Cases of a law taken in turn by one test, where a test for each would cost more than its case."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from typing import Any


@contextmanager
def told(**case: Any) -> Iterator[None]:
    """What fails inside says for which case."""
    try:
        yield
    except BaseException as error:
        error.add_note("where " + ", ".join(f"{name} is {shown}" for name, shown in case.items()))
        raise


def in_turn(name: str, values: Iterable[Any], ids: Iterable[str] | None = None) -> Callable:
    """Like `pytest.mark.parametrize`, in one test."""
    values = list(values)
    named = list(zip(map(repr, values) if ids is None else ids, values, strict=True))

    def decorate(law: Callable) -> Callable:
        own = signature(law)

        @wraps(law)
        def every(**given: Any) -> None:
            for shown, value in named:
                with told(**{name: shown}):
                    law(**given, **{name: value})

        rest = [parameter for key, parameter in own.parameters.items() if key != name]
        every.__signature__ = own.replace(parameters=rest)  # type: ignore
        return every

    return decorate

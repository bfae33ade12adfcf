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


def in_turn(
    names: str | tuple[str, ...],
    values: Iterable[Any],
    ids: Iterable[str] | Callable[[Any], str] = repr,
) -> Callable:
    """Like `pytest.mark.parametrize`, in one test."""
    values = list(values)
    cases = list(zip(map(ids, values) if callable(ids) else ids, values, strict=True))
    is_one = isinstance(names, str)
    shown = names if is_one else ", ".join(names)

    def decorate(law: Callable) -> Callable:
        own = signature(law)

        @wraps(law)
        def every(**given: Any) -> None:
            for case, value in cases:
                named = {names: value} if is_one else dict(zip(names, value, strict=True))
                with told(**{shown: case}):
                    law(**given, **named)

        taken = {names} if is_one else set(names)
        rest = [parameter for key, parameter in own.parameters.items() if key not in taken]
        every.__signature__ = own.replace(parameters=rest)  # type: ignore
        return every

    return decorate

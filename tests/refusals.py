"""Message of the error that a call raises."""

import pytest


def refusal(error, call, *arguments, **named):
    """The message of the error that a call raises: one line."""
    with pytest.raises(error) as caught:
        call(*arguments, **named)
    said = str(caught.value)
    assert "\n" not in said
    return said

"""Marks of tests that take each rung of the ladder."""

import pytest

from kernels import LADDER

every_rung = pytest.mark.parametrize("variant", LADDER, ids=lambda variant: variant.name)

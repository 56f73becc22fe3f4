"""HMMA, IMMA, DMMA, BMMA and QMMA: values bit for bit, through the machine code of mma.sync.

Vectors were recorded on an H100 (CUDA 13.0).
"""

import numpy as np
import pytest

from toolkit import simulate
from validation.mma import recorded_products
from validation.mma.forms import FORMS, THREADS, arguments, blocks, source, sums_of_registers


def product(form, a, b, c, arch="sm_90"):
    execution = simulate(
        source(form),
        form.name,
        grid=blocks(len(a)),
        block=THREADS,
        arguments=arguments(form, a, b, c),
        arch=arch,
        blocks="all",
        predict=False,
    )
    return sums_of_registers(form, execution.outputs[3])


@pytest.mark.parametrize("name", recorded_products.names())
def test_sums_have_the_bits_of_a_gpu(name):
    wanted = recorded_products.vectors(name)
    sums = wanted.of_tiles(product(wanted.form, *wanted.tiles()))
    np.testing.assert_array_equal(sums, wanted.d)

"""The made-up GPU of tests/toolkit/conftest.py as an installed PyCUDA, for processes of their own.

Whoever puts the folder above on PYTHONPATH gets it; its compiler takes half a second.
"""

import sys
import time

from tests.toolkit import conftest

gpu = conftest.FakeCuda()
driver, compiler = gpu.driver, gpu.compiler()
_compile = compiler.compile


def compile_source(source, **how):
    time.sleep(0.5)
    return _compile(source, **how)


compiler.compile = compile_source
sys.modules["pycuda.driver"], sys.modules["pycuda.compiler"] = driver, compiler
conftest.adapt(setattr)

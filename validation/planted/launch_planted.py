"""Launch one kernel through the driver API and nothing else: what record_sanitizer.py watches."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np


def main() -> int:
    """Run the launch that a file holds; the driver's code of what failed, or 0."""
    launch = np.load(sys.argv[1])
    driver = ctypes.CDLL("libcuda.so.1")
    context, module, function = (ctypes.c_void_p() for _ in range(3))
    ordinal = ctypes.c_int()
    called(driver.cuInit(0))
    called(driver.cuDeviceGet(ctypes.byref(ordinal), 0))
    called(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal))
    called(driver.cuCtxSetCurrent(context))
    image = launch["image"].tobytes()
    called(driver.cuModuleLoadData(ctypes.byref(module), image))
    symbol = str(launch["symbol"]).encode()
    called(driver.cuModuleGetFunction(ctypes.byref(function), module, symbol))
    held = []
    for position, is_buffer in enumerate(launch["is_buffer"]):
        value = np.ascontiguousarray(launch[f"argument_{position}"])
        held.append(buffer(driver, value, launch["unwritten"][position]) if is_buffer else value)
    pointers = (ctypes.c_void_p * len(held))(*(address_of(value) for value in held))
    sizes = [int(x) for x in (*launch["grid"], *launch["block"], launch["shared"])]
    code: int = driver.cuLaunchKernel(function, *sizes, None, pointers, None)
    return code or int(driver.cuCtxSynchronize())


def buffer(driver: ctypes.CDLL, value: np.ndarray, unwritten: bool) -> ctypes.c_uint64:
    """The address of a copy on the device, left as it is where it shall hold nothing."""
    address = ctypes.c_uint64()
    called(driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(value.nbytes)))
    if not unwritten:
        data = value.ctypes.data_as(ctypes.c_void_p)
        called(driver.cuMemcpyHtoD_v2(address, data, ctypes.c_size_t(value.nbytes)))
    return address


def address_of(value: np.ndarray[Any, Any] | ctypes.c_uint64) -> int:
    return value.ctypes.data if isinstance(value, np.ndarray) else ctypes.addressof(value)


def called(code: int) -> None:
    if code:
        raise SystemExit(f"the driver answered {code}")


if __name__ == "__main__":
    sys.exit(main())

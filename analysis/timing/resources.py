"""Resources that can limit the time of a launch."""

from __future__ import annotations

from analysis.vocabulary import Vocabulary


class Resource(Vocabulary):
    """Resource that can limit the time of a launch: a pipe of an SM, a memory, or latency."""

    ISSUE = "issue"
    FP32 = "FP32"
    PRODUCTS = "integer products"
    LOGIC = "integers and logic"
    DOUBLE = "FP64"
    HALF = "half precision"
    SPECIAL = "special functions"
    TENSOR = "tensor cores"
    SHARED_MEMORY = "shared memory"
    CONSTANTS = "constants"
    L1 = "L1"
    L2 = "L2"
    ATOMICS = "atomics at L2"
    STORES = "stores to one address"
    DRAM = "DRAM"
    LATENCY = "latency"  # Little's law: work in flight over its latency

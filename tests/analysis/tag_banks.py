"""The rule of L1's tag banks in Python; toolkit/sass/core/stream.c has it in C."""

import numpy as np

from analysis.coalescing import LINE_BYTES

# Bits of a line's number whose parity is one bit of its tag bank. Found on an H200 by timing loads
# of random lines (recorded/tag_banks_sm_90.json): with lines that lie within 32
# MiB, all recorded patterns take what this says, and with another mask some do not. The three
# highest bits were seen in one buffer only: further apart, hardware may go by physical addresses.
TAG_BANK_MASKS = (0x1AD5DA, 0x1F7AB5)


def tag_cycles(addresses, width_bytes=4):
    """The clocks that L1's tags take for one global load of all lanes with these addresses.

    Four banks look up one line of 128 bytes per clock each; a load whose lines lie in one bank is
    four times as long as one whose lines are spread. On other chips than Hopper's the banks may be
    others. Addresses are as the hardware sees them: the distance of two lanes is not enough.
    """
    first, last = addresses // LINE_BYTES, (addresses + width_bytes - 1) // LINE_BYTES
    touched = np.unique([first, last])
    high, low = (np.bitwise_count(touched & mask) & 1 for mask in TAG_BANK_MASKS)
    return int(np.bincount(2 * high.astype(np.int64) + low, minlength=4).max())

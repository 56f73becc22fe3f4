"""Products of a warpgroup (wgmma): kernels of one instruction, and whole kernels."""

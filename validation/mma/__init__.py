"""Matrix products of a warp (mma.sync): every form, on recorded and on random operands."""

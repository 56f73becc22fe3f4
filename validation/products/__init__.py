"""Products by a fixed law, at which every path of `best` is checked and timed."""

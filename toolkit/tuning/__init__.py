"""Tuning: the configurations of a rung, ranked by prediction, swept by Kernel Tuner, then raced.

`space` lists what is legal, `ranking` predicts it, `sweep` has Kernel Tuner measure the best of it
in a process of its own (`worker`, `guard`), with a cache that outlives Ctrl-C (`cache`), `final`
checks the leaders and races them against cuBLAS. `tuner` runs these stages at one shape, `tune` is
the whole workflow.
"""

"""The workflow of `profile`: a plan, and records from a GPU, from the simulator or from theory.

Comes in: variants, shapes and a device. Goes out: a `Profile`. Start with `profile`. `on_gpu` makes
the records with a GPU, `on_simulator` (with `rung_processes`) those without one, and `in_theory`
those that execute nothing.
"""

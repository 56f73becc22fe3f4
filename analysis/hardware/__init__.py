"""Constants of the hardware: one machine file per architecture, each number with its source.

Start with `sm_constants`.
"""

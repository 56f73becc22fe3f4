"""Figures of one launch as inline SVG: static, so that they print and need no script.

Each figure has two drawings, one for a screen and one of 368 px for a telephone, so that text
keeps its size. Colours are classes of reports/templates/kernel.css.
"""

"""Figures, one per file: `figure(view)`, or of a profile, returns a Plotly figure for a notebook.

Each file also has the title of its figure in `TITLE` and instructions for reading it in `READING`.
Figures that can show a run recorded earlier take it as `recorded`. `named` has them by name, and
`launch` all those of one launch.
"""

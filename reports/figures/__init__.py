"""One figure a file: `figure(view)`, or of a profile, returns a Plotly figure for a notebook.

Each file also says in `TITLE` what its figure is called and in `READING` how it is read. Figures
that can show a run recorded earlier take it as `recorded`.
"""

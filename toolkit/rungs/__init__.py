"""Facts of the ladder alone: parameters, arguments, matrices, and the choice of a rung.

The input is the name of a rung and a shape. The output is a `RungLaunch`, which runs as any other
launch. Start with `launch`.
"""

"""What only the ladder knows: parameters, arguments, matrices, and the choice of a rung.

Comes in: the name of a rung and a shape. Goes out: a `RungLaunch`, which runs as any other
launch. Start with `launch`.
"""

"""The order in which effects are removed from a launch, to divide its time (`costs`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from analysis.timing.effects import Removable, Scene
from analysis.timing.predicted import ALIKE, WAITS_FOR_LOADS, Effect


def without(effects: Sequence[Removable], scene: Scene) -> Scene:
    """The scene with all of these effects removed."""
    for one in effects:
        scene = one.removed(scene)
    return scene


def farthest_first(order: Sequence[Removable], saved: Mapping[Effect, float]) -> list[Removable]:
    """The order with waits for DRAM before those for L2, and L2 before L1, if they save as much.

    A load passes the nearer memories on its way. Which of the waits saves more is otherwise a
    matter of the blocks that are drawn.
    """

    def value(one: Removable) -> float:
        nearness = (Effect.DRAM_LATENCY, Effect.L2_LATENCY, Effect.L1_LATENCY).index(one.effect)
        return ALIKE**nearness * saved[one.effect]

    loads = [one for one in order if one.effect in WAITS_FOR_LOADS]
    by_value = iter(sorted(loads, key=value, reverse=True))
    return [next(by_value) if one in loads else one for one in order]


def waits_beside_sectors(
    present: Sequence[Removable],
    saved_by: Callable[[Scene], float],
    base: Scene,
    saved: Mapping[Effect, float],
    of_loads: float,
) -> list[Removable]:
    """Waits for loads and then uncoalesced accesses, if they hide each other; else empty.

    With few sectors, loads still wait for L2; without these waits, L1 and L2 are still busy with
    the sectors. Both together save much more than each of them. That is charged to the accesses,
    which are the fault, not to the waits, which every kernel has. `saved_by`: clocks that a scene
    saves of `base`; `saved`: of each effect alone, and `of_loads` of all waits for loads.
    """
    loads = [one for one in present if one.effect in WAITS_FOR_LOADS]
    scattered = [one for one in present if one.effect == Effect.UNCOALESCED]
    if not loads or not scattered:
        return []
    both = saved_by(without([*loads, *scattered], base))
    alone = saved.get(Effect.UNCOALESCED, 0.0)
    return [*loads, *scattered] if both - of_loads - alone > max(of_loads, alone) else []

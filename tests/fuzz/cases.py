"""Cases of the fuzzer: bytes that depend on a target's name and on their number alone."""

from random import Random

from tests.fuzz.targets import seeds

MOST_BYTES = 400
COUNTS = {  # of the exhaustive run
    "cubins": 1_000,
    "stored_text": 2_000,
    "profiles": 1_000,
    "launches": 1_000,
    "report": 10,
    "disassembly": 800,
    "operands": 3_600,
    "machine_code": 800,
    "launch": 1_800,
    "command_line": 200,
}
SAMPLES = {"cubins": 2, "profiles": 12, "launches": 12, "command_line": 12}  # of the default run


def case(name, number):
    """The bytes of one case: drawn at random, or one of the target's seeds with changes."""
    random = Random(f"1 {name} {number}")
    if random.random() < 0.5:
        return random.randbytes(random.randint(1, MOST_BYTES))
    data = bytearray(random.choice(seeds(name)))
    for _ in range(random.randint(1, 6)):
        at = random.randint(0, len(data))
        cut = random.choice((0, 1, 1, 2, 8))
        data[at : at + cut] = random.randbytes(random.choice((0, 1, 1, 2, 8)))
    return bytes(data)

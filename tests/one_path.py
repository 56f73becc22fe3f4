"""Launches that are sent through every path, and what each path answers.

`python -m tests.one_path` records the answers anew, in one_path.json: a commit that changes them
says why.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.devices import find_device
from analysis.problem import parse_shape
from kernels.selection import parse_selection
from toolkit import profile, simulate
from toolkit.launch.progress import Progress
from toolkit.tuning.ranking import ranked
from validation import recordings
from validation.corpus.case import Case
from validation.timing.declared import OPTIONS, rng
from validation.timing.timed_launches import SMALL

RECORDED = Path(__file__).with_suffix(".json")
DEVICE = "h200"
SEED = 11

Answer = dict[str, Any]

# The counters that are recorded, also where they are 0. One that is not among them may be added
# without a new recording: of that one, paths are compared with each other alone.
NAMED = (
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed.sum",
    "smsp__thread_inst_executed_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
    "smsp__sass_inst_executed_op_shared_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "smsp__sass_inst_executed_op_shared_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "bulk__sectors_read.sum",
    "bulk__sectors_written.sum",
    "l1tex__m_xbar2l1tex_read_sectors.sum",
    "lts__t_sectors_srcunit_tex_op_read.sum",
    "lts__t_sectors_op_read.sum",
    "lts__t_sectors_op_write.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
)


@dataclass(frozen=True, kw_only=True)
class RungLaunch:
    """One rung at one shape."""

    rung: str
    shape: str

    @property
    def name(self):
        return f"{self.rung} {self.shape}"

    @property
    def selection(self):
        return parse_selection(self.rung)

    @property
    def problem(self):
        return parse_shape(self.shape)

    def answers(self):
        return {
            "profile": self._profile,
            "simulate": self._simulate,
            "tune": self._tune,
            "ordinary": self._ordinary,
        }

    def _profile(self):
        (record,) = profile(
            [self.shape], [self.rung], device=DEVICE, executor="simulate", seed=SEED
        ).records
        return answer(record.predicted, record.simulated.counters)

    def _simulate(self):
        return of_execution(simulate(self.rung, shape=self.shape, seed=SEED, device=DEVICE))

    def _ordinary(self):
        """The rung's source as any other kernel, with all of its blocks executed."""
        found = simulate(self.rung, shape=self.shape, seed=SEED, device=DEVICE, blocks="all")
        return of_execution(found)

    def _tune(self):
        (found,) = ranked(
            [self.selection],
            self.problem,
            find_device(DEVICE),
            seed=SEED,
            most=1,
            progress=Progress(),
        )
        return answer(found.predicted, {})


@dataclass(frozen=True, kw_only=True)
class OtherLaunch:
    """A kernel that is not a rung."""

    case: Case

    @property
    def name(self):
        return self.case.name

    def answers(self):
        return {"simulate": self._simulate}

    def _simulate(self):
        case = self.case
        return of_execution(
            simulate(
                case.source,
                case.kernel,
                grid=case.grid,
                block=case.block,
                dynamic_shared_bytes=case.dynamic_shared_bytes,
                arguments=case.make(rng()),
                options=OPTIONS,
                device=DEVICE,
            )
        )


def of_execution(found):
    return answer(found.predicted, found.counters)


def answer(predicted, counters):
    """Answer of one path, without counters of 0; a launch without a time has None for it."""
    return {
        "time_s": predicted.time_s if predicted else None,
        "limiter": predicted.limiter if predicted else None,
        "counters": {name: count for name, count in sorted(counters.items()) if count},
    }


def named(answer):
    """Part of an answer that is recorded."""
    counters = {name: count for name, count in answer["counters"].items() if name in NAMED}
    return answer | {"counters": counters}


# Blocks of the last five wait for each other or take turns; the first of each kind is the sample.
RUNGS = (
    RungLaunch(rung="naive-coalesced", shape="512"),
    RungLaunch(rung="coarsened-1d", shape="1024"),
    RungLaunch(rung="vectorized", shape="512"),
    RungLaunch(rung="async-copy", shape="1000x1016x520"),
    RungLaunch(rung="one-block", shape="32"),
    RungLaunch(rung="stream-k", shape="512"),
    RungLaunch(rung="stream-k", shape="1024"),
    RungLaunch(rung="split-k:splits=4", shape="1024"),
    RungLaunch(rung="tall-thread-tile", shape="1000x1016x520"),
    RungLaunch(rung="realigned", shape="1024"),
)
OTHERS = tuple(
    OtherLaunch(case=next(case for case in SMALL if case.kernel == kernel))
    for kernel in ("transpose_padded", "softmax", "stencil", "row_sums")
)
LAUNCHES = (*RUNGS, *OTHERS)


def main():
    answers = {}
    for launch in LAUNCHES:
        answers[launch.name] = {path: named(ask()) for path, ask in launch.answers().items()}
        times = {path: found["time_s"] for path, found in answers[launch.name].items()}
        print(launch.name, times, flush=True)
    recordings.write(RECORDED, json.loads(json.dumps(answers, sort_keys=True)))


if __name__ == "__main__":
    main()

"""PyTorch's pipeline schedules and trainc's, against each other.

`torch_schedules.py goldens` writes the orders of PyTorch's generators to testdata/passes/schedule, where trainc's tests compare
them with its own. `torch_schedules.py check TRAINC` has the program write schedules for PyTorch, loads and lowers each with
PyTorch's runtime, and lets PyTorch's own dry run look for deadlocks. No process group is needed: the stages are stand-ins.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import torch
from torch.distributed.pipelining import schedules

GOLDENS = Path(__file__).resolve().parent.parent / "passes" / "schedule"

ONE_STAGE = [(1, 1, 3), (2, 1, 4), (4, 1, 4), (4, 1, 8), (4, 1, 10), (8, 1, 24)]
FEW = [(4, 1, 2), (5, 1, 3)]
LOOPED = [(2, 2, 4), (3, 2, 3), (4, 2, 4), (4, 2, 8), (4, 2, 10), (4, 3, 12), (8, 2, 24)]
LOOPED_FEW = [(4, 2, 3), (4, 3, 1)]
SHAPES = {
    "gpipe": ONE_STAGE + FEW,
    "1f1b": ONE_STAGE,
    "interleaved": LOOPED + LOOPED_FEW,
    "breadth-first": LOOPED + LOOPED_FEW,
    "zb-h1": ONE_STAGE + FEW + LOOPED + LOOPED_FEW,
    "zb-v": [(1, 2, 2), (2, 2, 3), (2, 2, 6), (4, 2, 2), (4, 2, 4), (4, 2, 7), (4, 2, 12), (8, 2, 5), (8, 2, 20)],
    "dual-pipe-v": [(2, 2, 4), (4, 2, 8), (4, 2, 12), (8, 2, 20)],
}
CLASSES = {
    "interleaved": schedules.ScheduleInterleaved1F1B,
    "breadth-first": schedules.ScheduleLoopedBFS,
    "zb-h1": schedules.ScheduleInterleavedZeroBubble,
    "zb-v": schedules.ScheduleZBVZeroBubble,
    "dual-pipe-v": getattr(schedules, "ScheduleDualPipeV", None),
}
# What trainc has and PyTorch has not, for the check alone.
MORE = [
    ("interleaved", (4, 2, 9)), ("interleaved", (3, 3, 11)), ("breadth-first:6", (4, 2, 13)), ("breadth-first:2", (4, 2, 9)), ("1f1b", (4, 1, 2)),
    ("zb-h1", (4, 2, 11)),
]  # fmt: skip


class Stage(SimpleNamespace):
    """Stands in for a stage: knows its place and notes down what it is told to do."""

    def __init__(self, ranks: int, loops: int, rank: int, index: int):
        super().__init__(
            group_size=ranks, group_rank=rank, num_stages=ranks * loops, stage_index=index, submod=torch.nn.Identity(),
            is_first=index == 0, is_last=index == ranks * loops - 1, has_backward=True, done=[],
        )  # fmt: skip

    def forward_one_chunk(self, micro_batch, *_args, **_kwargs):
        self.done.append(f"{self.stage_index}F{micro_batch}")

    def backward_one_chunk(self, micro_batch, *_args, **_kwargs):
        self.done.append(f"{self.stage_index}B{micro_batch}")

    def perform_reduce_grad(self, *_args):
        pass

    def clear_runtime_states(self):
        pass


for name in ("get_fwd_recv_ops", "get_fwd_send_ops", "get_bwd_recv_ops", "get_bwd_send_ops"):
    setattr(Stage, name, lambda self, _micro_batch: [])


def as_run(cls, ranks: int, micro_batches: int) -> list[list[str]]:
    """The orders in which a schedule of one stage per rank runs, which is written as a loop and not as data."""
    rows = []
    nothing = lambda *_args, **_kwargs: None  # noqa: E731
    for rank in range(ranks):
        stage = Stage(ranks, 1, rank, rank)
        schedule = cls(stage, micro_batches)
        replaced = {"_check_inputs": lambda *_args: ([()] * micro_batches, [{}] * micro_batches)}
        for name in ("_initialize_stage", "_maybe_compute_loss", "_maybe_get_loss", "_update_losses"):
            replaced[name] = nothing
        with (
            mock.patch.multiple(schedule, **replaced),
            mock.patch.multiple(
                schedules, _batch_p2p=lambda *_args, **_kwargs: [], _sorted_batch_p2p=lambda *_args, **_kwargs: {},
                _wait_batch_p2p=nothing, _wait_and_release_fwd_send=nothing,
            ),  # fmt: skip
        ):
            schedule._step_microbatches()
        rows.append(stage.done)
    return rows


def as_data(cls, ranks: int, loops: int, micro_batches: int) -> list[list[str]]:
    """The orders of a schedule that is made as data."""
    stages = [Stage(ranks, loops, 0, local * ranks) for local in range(loops)]
    schedule = cls(stages, micro_batches)
    order = schedule.pipeline_order
    schedules._validate_schedule(order, ranks, ranks * loops, micro_batches)
    return [[str(action) for action in order[rank] if action is not None] for rank in range(ranks)]


def write_goldens() -> None:
    GOLDENS.mkdir(parents=True, exist_ok=True)
    for kind, shapes in SHAPES.items():
        text = ""
        for ranks, loops, micro_batches in shapes:
            if kind == "gpipe":
                rows = as_run(schedules.ScheduleGPipe, ranks, micro_batches)
            elif kind == "1f1b":
                rows = as_run(schedules.Schedule1F1B, ranks, micro_batches)
            else:
                rows = as_data(CLASSES[kind], ranks, loops, micro_batches)
            text += f"shape,{ranks},{loops},{micro_batches}\n" + "".join(",".join(row) + "\n" for row in rows)
        (GOLDENS / f"{kind}.csv").write_text(text)
        print(f"{kind}: {len(shapes)} shapes")


def check(trainc: str) -> None:
    checked = 0
    cases = [(kind, shape) for kind, shapes in SHAPES.items() for shape in shapes if kind != "dual-pipe-v"]
    for kind, (ranks, loops, micro_batches) in cases + MORE:
        shape = f"{ranks},{loops},{micro_batches}"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "schedule.csv"
            command = [trainc, "simulate", "--uniform", shape, "--schedule", kind, "--emit", "torch-schedule"]
            path.write_bytes(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            stages = [Stage(ranks, loops, 0, local * ranks) for local in range(loops)]
            runtime = schedules._PipelineScheduleRuntime(stages, micro_batches)
            # Loads, checks and adds communication.
            runtime._load_csv(str(path), format="compute_only")
        lowered = runtime.pipeline_order_with_comms
        # The dry run knows neither parameters nor their gradients.
        transfers = ("F", "B", "I", "W", "SEND_F", "RECV_F", "SEND_B", "RECV_B", "WAIT_SEND_F", "WAIT_SEND_B")
        kept = {r: [a for a in row if a.computation_type.value in transfers] for r, row in lowered.items()}
        schedules._simulate_comms_compute(kept, lambda stage: runtime.stage_index_to_group_rank[stage], ranks * loops)
        checked += 1
    print(f"PyTorch {torch.__version__} loads {checked} schedules")


if __name__ == "__main__":
    if sys.argv[1:] == ["goldens"]:
        write_goldens()
    elif len(sys.argv) == 3 and sys.argv[1] == "check":
        check(sys.argv[2])
    else:
        sys.exit(__doc__)

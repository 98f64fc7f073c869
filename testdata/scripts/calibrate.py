"""Fits the efficiency curves of the cost model to measured layers, and prints the errors of the fit.

    cargo run -q --example calibrate -p trainc-passes < ../passes/plan/cost/layer_latencies.csv > work.csv
    venv/bin/python calibrate.py work.csv             # prints the tables of errors
    venv/bin/python calibrate.py work.csv --write     # ... and writes ir/data/efficiency.toml

`work.csv` has the floating-point operations and bytes of every kernel behind every measurement, counted by trainc itself. What is
fitted is the formula of passes/src/plan/cost.rs in floating point; the test `calibration` of trainc-passes computes the same
errors with the integers that are written. Needs numpy and Python 3.11. Nothing is drawn at random.
"""

import csv
import pathlib
import sys
import tomllib

import numpy as np

ROOT = pathlib.Path(__file__).parents[2]
MEASURED = ROOT / "testdata/passes/plan/cost/layer_latencies.csv"
EFFICIENCY = ROOT / "ir/data/efficiency.toml"
TYPES = {
    "a100x40": "A100-SXM-40GB", "a100x80": "A100-SXM-80GB", "a6000": "RTX-A6000-48GB", "p40": "P40-24GB", "t4": "T4",
    "v100x16": "V100-SXM2-16GB", "v100-pciex16": "V100-PCIe-16GB",
}
# Validation: the middle size of each family, and the whole family that has one size. Never used for fitting.
VALIDATION = {
    "deepspeedbert_large", "deepspeedgpt_2.7b", "deepspeedllama_7b", "deepspeedllamav2_7b", "deepspeedmistral_7b",
    "mistral_7b", "deepspeedvit_g",
}
# Models that are one layer of the same network under two names.
SAME = {"deepspeedvit_e_toy": "deepspeedvit_e", "mistral_7b": "deepspeedmistral_7b"}

# log2 of the work at the points of the curves: FLOP of one product, bytes of one kernel.
PRODUCT, MEMORY = np.array([27, 30, 33, 36, 39, 42]), np.array([17, 20, 23, 26, 29, 32])
LAUNCH = 3e6  # Picoseconds: `launch_us` of gpus.toml.

# What the power limit sustains.
POWER = tomllib.loads(EFFICIENCY.read_text())["gflop_per_joule"]

# The fitted numbers, as logarithms: shares of the rates at the points, then attention in 32 and 16 bits.
P, M = len(PRODUCT), len(MEMORY)
PARTS = {"product_32": slice(0, P), "product_16": slice(P, 2 * P), "memory": slice(2 * P, 2 * P + M)}
ATTENTION_32, ATTENTION_16 = 2 * P + M, 2 * P + M + 1
START = np.log(
    [.5, .7, .8, .85, .85, .8] + [.3, .6, .75, .8, .8, .75] + [.6, .7, .8, .8, .8, .8] + [.5, .5]
)
# Fitted for all types together: share of the shorter of arithmetic and traffic that is not hidden, traffic of row-wise
# and of rearranging kernels against elementwise ones.
SHARED_START, SHARED_LOW, SHARED_HIGH = np.log([.3, 1.3, 1.3]), np.log([.02, 1, 1]), np.log([1, 4, 4])


class Data:
    """The measurements and the kernels behind them."""

    def __init__(self, work_file):
        rows = list(csv.DictReader(open(MEASURED)))
        self.gpu = np.array([r["gpu"] for r in rows])
        self.model = np.array([r["model"] for r in rows])
        self.base = np.array([SAME.get(m, m) for m in self.model])
        half = np.array([r["dtype"] == "float16" for r in rows])
        forward = np.array([float(r["forward_ms"]) for r in rows])
        backward = np.array([float(r["backward_ms"]) for r in rows])
        self.measured = np.stack([forward, backward], 1).ravel() * 1e9
        # No arithmetic in f16 on P40; a forward that takes longer than its own backward, which does twice the products.
        self.used = ~((self.gpu == "p40") & half)
        self.odd = forward > backward
        work = list(csv.DictReader(open(work_file)))
        self.item = np.array([2 * int(w["row"]) + (w["phase"] == "backward") for w in work])
        self.flops = np.array([float(w["flops"]) for w in work])
        self.bytes = np.array([float(w["bytes"]) for w in work])
        self.kind = np.array([w["class"] for w in work])
        self.half = np.array([w["dtype"] == "f16" for w in work])
        self.group = np.array([{"Rows": 1, "Movement": 2}.get(w["class"], 0) for w in work])


class Rows:
    """Measurements on one GPU type, with the kernels behind them ready for prediction."""

    def __init__(self, data, gpu, rows, odd=False):
        self.rows = rows
        items = np.concatenate([2 * rows, 2 * rows + 1])
        self.forward = np.concatenate([np.ones(len(rows), bool), np.zeros(len(rows), bool)])
        if not odd:
            keep = ~(self.forward & np.concatenate([data.odd[rows]] * 2))
            items, self.forward = items[keep], self.forward[keep]
        of = np.isin(data.item, items)
        self.flops, self.bytes, self.half, self.group = data.flops[of], data.bytes[of], data.half[of], data.group[of]
        self.product, self.attention = data.kind[of] == "Matmul", data.kind[of] == "Attention"
        present, self.index = np.unique(data.item[of], return_inverse=True)
        self.order = np.searchsorted(present, items)
        self.n = len(present)
        self.log = np.log(data.measured[items])
        self.gpu = gpu

    def predict(self, x, shared):
        g, e = self.gpu, np.exp(x)
        unhidden, *traffic = np.exp(shared)
        arithmetic = self.flops / g.vector
        for half, part, rate in ((False, "product_32", g.sustained_32), (True, "product_16", g.sustained_16)):
            at = self.product & (self.half == half)
            arithmetic[at] = along(self.flops[at], PRODUCT, rate, e[PARTS[part]])
            at = self.attention & (self.half == half)
            arithmetic[at] = self.flops[at] / (rate * e[ATTENTION_16 if half else ATTENTION_32])
        moved = self.bytes * np.array([1, *traffic])[self.group]
        memory = along(moved, MEMORY, g.bandwidth, e[PARTS["memory"]])
        both = np.where(self.product | self.attention, unhidden, 0) * np.minimum(arithmetic, memory)
        time = np.maximum(arithmetic, memory) + both + LAUNCH
        return np.bincount(self.index, time, minlength=self.n)[self.order]

    def errors(self, x, shared):
        return np.abs(self.predict(x, shared) / np.exp(self.log) - 1)


class Gpu:
    """The datasheet of a type, in units per picosecond."""

    def __init__(self, table):
        key = "compute_capability_8_0" if table["compute_capability"] == "8.0" else table["arch"]
        power = POWER[key] * table["tdp_w"] / 1e3
        self.vector = table["fp32_tflops"]
        self.sustained_32 = min(self.vector, power)
        self.peak_16 = table.get("fp16_tflops", 1.0)
        self.sustained_16 = min(self.peak_16, POWER["half_factor"] * power)
        self.bandwidth = table["memory_gb_per_s"] / 1e3
        # No curve may pass the peak.
        shares = [.97 * self.vector / self.sustained_32] * P + [.97 * self.peak_16 / self.sustained_16] * P
        self.high = np.log(shares + [1.0] * M + [1.0, 1.0])


def along(work, points, rate, share):
    """Time is linear in the work between the points, and proportional to it outside of them."""
    at = 2.0**points
    times = at / (rate * share)
    inside = np.interp(work, at, times)
    return np.where(work < at[0], work * times[0] / at[0], np.where(work > at[-1], work * times[-1] / at[-1], inside))


def least_squares(residuals, x, low, high, rounds=40):
    """Levenberg and Marquardt's method with numeric derivatives."""
    damping = 1e-2
    r = residuals(x)
    cost = r @ r
    for _ in range(rounds):
        jacobian = np.empty((len(r), len(x)))
        for j in range(len(x)):
            step = x.copy()
            step[j] += 1e-4
            jacobian[:, j] = (residuals(step) - r) / 1e-4
        a, g = jacobian.T @ jacobian, jacobian.T @ r
        for _ in range(8):
            y = np.clip(x - np.linalg.solve(a + damping * np.diag(np.diag(a) + 1e-9), g), low, high)
            s = residuals(y)
            if s @ s < cost:
                gain, x, r, cost = (cost - s @ s) / cost, y, s, s @ s
                damping = max(damping / 4, 1e-9)
                break
            damping *= 4
        else:
            return x
        if gain < 1e-6:
            return x
    return x


def robust(r):
    """Pseudo-Huber: errors above a tenth count linearly, because some measurements were disturbed."""
    return np.sign(r) * np.sqrt(2 * (np.sqrt(1 + (r / .1) ** 2) - 1))


def bends(x):
    return np.concatenate([1.0 * np.diff(x[part], 2) for part in PARTS.values()])


def fit_all(sets):
    """One set of curves for all types, up to a factor per type for each part, and what is shared."""
    n, s = len(START), len(SHARED_START)

    def residuals(z):
        x, shared, offsets = z[:n], z[n:n + s], z[n + s:].reshape(-1, 3)
        parts = [bends(x), .3 * (x - START), .3 * (shared - SHARED_START), .3 * offsets.ravel()]
        for rows, offset in zip(sets, offsets):
            y = x.copy()
            for part, by in zip(PARTS.values(), offset):
                y[part] += by
            y = np.minimum(y, rows.gpu.high)
            parts.append(np.sqrt(200 / len(rows.log)) * robust(np.log(rows.predict(y, shared)) - rows.log))
        return np.concatenate(parts)

    free = 3 * len(sets)
    low = np.concatenate([np.log(np.full(n, .05)), SHARED_LOW, np.full(free, -1.0)])
    high = np.concatenate([np.log(np.full(n, 1.5)), SHARED_HIGH, np.full(free, 1.0)])
    z = least_squares(residuals, np.concatenate([START, SHARED_START, np.zeros(free)]), low, high, 25)
    return z[:n], z[n:n + s]


def fit_one(rows, pooled, shared, pull=8.0):
    """Curves of one type, drawn to those of all types where its own measurements say little.

    How strongly was chosen by leaving out each fitted model in turn (the validation models had no part in it).
    """
    weight = np.sqrt(min(1.0, 200 / len(rows.log)))
    pulls = np.full(len(pooled), pull)
    pulls[ATTENTION_32:] *= 2
    start = np.minimum(pooled, rows.gpu.high)

    def residuals(x):
        return np.concatenate(
            [weight * robust(np.log(rows.predict(x, shared)) - rows.log), bends(x), pulls * (x - start)]
        )

    return least_squares(residuals, start, np.log(np.full(len(pooled), .05)), rows.gpu.high)


def line(name, sets):
    """Mean absolute error in percent, forward and backward apart."""
    errors = [(r.forward, e) for r, e in sets]
    forward = np.concatenate([e[f] for f, e in errors])
    backward = np.concatenate([e[~f] for f, e in errors])
    both = np.concatenate([forward, backward])
    print(f"{name:<34}{100 * forward.mean():9.1f}{100 * backward.mean():9.1f}{100 * both.mean():9.1f}{len(both):7}")


def heading(text):
    print(f"\n{text:<34}{'forward':>9}{'backward':>9}{'both':>9}{'n':>7}")


def main():
    data = Data(sys.argv[1])
    tables = {t["name"]: t for t in tomllib.load(open(ROOT / "ir/data/gpus.toml", "rb"))["gpu"]}
    gpus = {short: Gpu(tables[name]) for short, name in TYPES.items()}
    validation = np.isin(data.model, sorted(VALIDATION))

    def of(gpu, condition, odd=False):
        return Rows(data, gpus[gpu], np.flatnonzero((data.gpu == gpu) & data.used & condition), odd)

    fitted = {g: of(g, ~validation) for g in TYPES}
    unseen = {g: of(g, validation) for g in TYPES}
    whole = {g: of(g, True) for g in TYPES}
    pooled, shared = fit_all(list(fitted.values()))
    curves = {g: np.log(np.round(1000 * np.exp(fit_one(fitted[g], pooled, shared))) / 1000) for g in TYPES}
    shared = np.log(np.round(1000 * np.exp(shared)) / 1000)

    heading("models that were fitted")
    for g in TYPES:
        line(TYPES[g], [(fitted[g], fitted[g].errors(curves[g], shared))])
    line("all", [(fitted[g], fitted[g].errors(curves[g], shared)) for g in TYPES])
    heading("models that were not")
    for g in TYPES:
        line(TYPES[g], [(unseen[g], unseen[g].errors(curves[g], shared))])
    line("all", [(unseen[g], unseen[g].errors(curves[g], shared)) for g in TYPES])
    odd = of("p40", validation, odd=True)
    line("P40, slow forwards included", [(odd, odd.errors(curves["p40"], shared))])

    heading("each model left out in turn")
    everything = []
    for g in TYPES:
        sets = []
        for model in dict.fromkeys(data.base[whole[g].rows]):
            x = fit_one(of(g, data.base != model), pooled, shared)
            rows = of(g, data.base == model)
            sets.append((rows, rows.errors(x, shared)))
        line(TYPES[g], sets)
        everything += sets
    line("all", everything)

    heading("types from their datasheet alone")
    everything = []
    for g in TYPES:
        x = mean([curves[h] for h in TYPES if h != g])
        everything.append((whole[g], whole[g].errors(np.minimum(x, gpus[g].high), shared)))
        line(TYPES[g], everything[-1:])
    line("all", everything)
    if "--write" in sys.argv:
        write(curves, shared)


def mean(curves):
    """The curves of a type that was not measured: the mean of those that were."""
    return np.log(np.mean([np.exp(x) for x in curves], axis=0))


def write(curves, shared):
    text = EFFICIENCY.read_text()
    head = text[:text.index("# --- fitted")]
    permille = [round(1000 * v) for v in np.exp(shared)]
    out = [head + "# --- fitted: written by testdata/scripts/calibrate.py, all in thousandths", "[shared]"]
    out += [f"{key} = {value}" for key, value in zip(("unhidden", "row_traffic", "movement_traffic"), permille)]
    for g, name in TYPES.items():
        x = np.round(1000 * np.exp(curves[g])).astype(int)
        out += ["", "[[type]]", f'name = "{name}"']
        for part, at in PARTS.items():
            points = MEMORY if part == "memory" else PRODUCT
            out.append(f"{part} = [{', '.join(f'[{p}, {v}]' for p, v in zip(points, x[at]))}]")
        out += [f"attention_32 = [[33, {x[ATTENTION_32]}]]", f"attention_16 = [[33, {x[ATTENTION_16]}]]"]
    EFFICIENCY.write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()

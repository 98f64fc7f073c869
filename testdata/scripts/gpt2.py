"""Makes the GPT-2 models and goldens: testdata/models/gpt2*.onnx and testdata/goldens/gpt2/.

usage: python gpt2.py [small] [large] [goldens]     (default: all)
"""

import copy
import sys

import onnx

from common import (
    GOLDENS, MODELS, Golden, check_runtime, compare_precision, export_dynamo, export_torchscript, finite_differences,
    gradients, initializer_names, no_packed_sequences, number, perturb, setup,
)

import torch  # noqa: E402  (common sets the threads first)
import transformers  # noqa: E402
from transformers import GPT2Config, GPT2LMHeadModel  # noqa: E402

SEED = 20260901
MICRO_BATCH, MICRO_BATCHES, SEQ, STEPS = 2, 4, 64, 20
ADAMW = dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
IDS = {0: "batch", 1: "seq"}


class Logits(GPT2LMHeadModel):
    """GPT-2 without a loss. A subclass, not a wrapper, so that the parameters keep their names."""

    def forward(self, input_ids):
        return super().forward(input_ids=input_ids, use_cache=False).logits


class Loss(GPT2LMHeadModel):
    """GPT-2 with Hugging Face's loss, which shifts the labels by one inside."""

    def forward(self, input_ids, labels):
        result = super().forward(input_ids=input_ids, labels=labels, use_cache=False)
        return result.loss, result.logits


def config(**size) -> GPT2Config:
    return GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0, use_cache=False, **size)


# Shapes to compare with ONNX Runtime on; the exports see other ones.
CHECKED = [(2, 64), (3, 17), (1, 128)]
SMALL = dict(n_layer=4, n_embd=48, n_head=4, vocab_size=256, n_positions=128)


def small(kind, attention="sdpa"):
    setup(SEED)
    settings = config(**SMALL)
    settings._attn_implementation = attention
    model = kind(settings)
    perturb(model, SEED + 1)
    return model.eval()


def tokens() -> torch.Tensor:
    """All token ids: MICRO_BATCHES * MICRO_BATCH sequences. Bytes of a noisy counter, so that there is something to learn."""
    generator = torch.Generator().manual_seed(SEED + 2)
    rows = MICRO_BATCH * MICRO_BATCHES
    start = torch.randint(256, (rows, 1), generator=generator)
    stride = torch.randint(1, 8, (rows, 1), generator=generator)
    noise = torch.randint(256, (rows, SEQ), generator=generator)
    noisy = torch.rand((rows, SEQ), generator=generator) < 0.2
    ids = (start + stride * torch.arange(SEQ)) % 256
    return torch.where(noisy, noise, ids)


def loss_of(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """The causal language-model loss, written out: position t predicts token t + 1, mean over all targets."""
    return torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))


def check(path, model, with_loss=False) -> None:
    """Compares a file with PyTorch on every shape of CHECKED."""
    for shape in CHECKED:
        ids = torch.randint(256, shape, generator=torch.Generator().manual_seed(SEED + 4))
        logits = model(ids)
        feeds, expected = {"input_ids": ids}, {"logits": logits}
        if with_loss:
            feeds |= {"labels": ids}
            expected |= {"loss": loss_of(logits, ids)}
        print(f"{path.name} {shape} differs from PyTorch by {check_runtime(path, feeds, expected)}")


def make_small() -> None:
    model = small(Logits)
    ids = tokens()[:MICRO_BATCH]
    parameters = dict(model.named_parameters())
    args, dims = {"input_ids": ids[:, :32]}, {"input_ids": IDS}

    proto = export_dynamo(model, args, dims, ["logits"], MODELS / "gpt2.onnx")
    print("dynamo names that differ:", initializer_names(proto, parameters))
    check(MODELS / "gpt2.onnx", model)

    eager = small(Logits, "eager")
    # Before opset 17 layer normalization is decomposed.
    for file, opset in [("gpt2_torchscript.onnx", 17), ("gpt2_opset13.onnx", 13)]:
        path = MODELS / file
        with no_packed_sequences():
            proto = export_torchscript(eager, args, {"input_ids": IDS, "logits": IDS}, ["logits"], path, opset)
        print(f"{file} names that differ:", initializer_names(proto, parameters))
        check(path, model)

    with_loss = small(Loss)
    args = {"input_ids": ids[:, :32], "labels": ids[:, :32]}
    path = MODELS / "gpt2_loss.onnx"
    proto = export_dynamo(with_loss, args, {"input_ids": IDS, "labels": IDS}, ["loss", "logits"], path)
    print("loss variant names that differ:", initializer_names(proto, parameters))
    check(path, model, with_loss=True)


def make_large() -> None:
    """GPT-2 small's shape. Weights of 1 kB and more are external data in a file that is not kept."""
    setup(SEED)
    with torch.device("meta"):
        model = Logits(config(n_layer=12, n_embd=768, n_head=12, vocab_size=50257, n_positions=1024))
    model = model.to_empty(device="cpu")
    model.tie_weights()
    assert not list(model.buffers()), "buffers would be undefined"
    with torch.no_grad():
        for index, parameter in enumerate(model.parameters()):
            parameter.fill_(index + 1.0)  # all different, so that the exporter shares only what the model shares
    path = MODELS / "gpt2_12l_768_noweights.onnx"
    weights = "gpt2_12l_768.weights"
    proto = export_dynamo(model.eval(), {"input_ids": torch.zeros(2, 32, dtype=torch.int64)}, {"input_ids": IDS}, ["logits"], path)
    (MODELS / weights).unlink(missing_ok=True)
    onnx.save_model(
        proto, str(path), save_as_external_data=True, all_tensors_to_one_file=True, location=weights, size_threshold=1024, convert_attribute=False,
    )
    size = (MODELS / weights).stat().st_size
    (MODELS / weights).unlink()
    print(f"{path.name}: {path.stat().st_size} bytes, weights left out: {size} bytes")


def make_goldens() -> None:
    model = small(Logits)
    ids = tokens()
    first = ids[:MICRO_BATCH]
    names = {
        file: initializer_names(onnx.load(MODELS / file), dict(model.named_parameters()))
        for file in ("gpt2.onnx", "gpt2_torchscript.onnx", "gpt2_opset13.onnx", "gpt2_loss.onnx")
    }

    losses = {"first_micro_batch": loss_of(model(first), first), "full_batch": loss_of(model(ids), ids)}
    grads = {name: gradients(model, loss) for name, loss in losses.items()}

    double = copy.deepcopy(model).double()
    exact = {"first_micro_batch": loss_of(double(first), first), "full_batch": loss_of(double(ids), ids)}
    agreement = {name: compare_precision(grads[name], gradients(double, loss)) for name, loss in exact.items()}
    assert max(agreement.values()) < 1e-5, agreement
    print("float32 against float64 gradients:", agreement)
    print("finite differences, largest relative error:", finite_differences(double, lambda: loss_of(double(first), first), SEED + 3))
    # Equal micro-batches: the mean of their losses is the loss of the batch.
    parts = [loss_of(model(part), part) for part in ids.split(MICRO_BATCH)]
    torch.testing.assert_close(torch.stack(parts).mean(), losses["full_batch"], rtol=1e-6, atol=0)

    trained = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(trained.parameters(), **ADAMW, foreach=False, fused=False)
    curve = []
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(trained(ids), ids)
        curve.append(number(loss))
        loss.backward()
        optimizer.step()
    assert curve[-1] < curve[0] - 0.1, curve

    golden = Golden("gpt2")
    golden.json |= {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "config": SMALL,
        "precision": "float32",
        "batch": {"micro_batch": MICRO_BATCH, "micro_batches": MICRO_BATCHES, "seq": SEQ},
        "loss": "cross entropy of logits[:, :-1] against input_ids[:, 1:], mean over all targets of the batch",
        "inputs": {"input_ids": golden.tensor(ids)},
        "losses": {name: number(loss) for name, loss in losses.items()},
        "losses_f64": {name: number(loss) for name, loss in exact.items()},
        "micro_batch_losses": [number(part) for part in parts],
        "adamw": {
            "lr": ADAMW["lr"], "beta1": ADAMW["betas"][0], "beta2": ADAMW["betas"][1], "eps": ADAMW["eps"],
            "weight_decay": ADAMW["weight_decay"], "decay": "all parameters", "clip": None, "batch": "full_batch",
            "losses": curve,
        },
        # For each file, the parameters whose initializer has another name than the gradient tables use.
        "renamed_initializers": names,
        "gradient_norm": {name: number(torch.sqrt(sum((g.double() ** 2).sum() for g in of.values()))) for name, of in grads.items()},
        "gradients": {name: golden.table(of) for name, of in grads.items()},
    }
    golden.write()


if __name__ == "__main__":
    parts = sys.argv[1:] or ["small", "large", "goldens"]
    MODELS.mkdir(exist_ok=True)
    GOLDENS.mkdir(exist_ok=True)
    for part in parts:
        {"small": make_small, "large": make_large, "goldens": make_goldens}[part]()

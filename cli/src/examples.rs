//! What `--help` shows below the options: command lines to begin with.

/// Of trainc itself.
pub(crate) const TRAINC: &str = "\
Begin with:
  trainc inspect model.onnx --bind '*=8'                      what trainc makes of a model
  trainc estimate model.onnx --cluster cluster.toml --bind batch=8,seq=1024
  trainc compile model.onnx --cluster cluster.toml --bind batch=8,seq=1024 -o out
  trainc run out --steps 100                                  train it on this machine's CPU
A cluster description of ten lines is enough: see docs/cluster.md. `trainc COMMAND --help` has
examples of each command; `trainc explain CODE` says what to do about an error.";

/// Of `compile`.
pub(crate) const COMPILE: &str = "\
Examples:
  A plan for 16 micro-batches of 8 samples, with as many stages as are fastest:
    trainc compile gpt2.onnx --cluster cluster.toml --bind batch=8,seq=1024 --micro-batches 16 \\
      -o out
  The same step, by its size; two stages; every block computed again in the backward:
    trainc compile gpt2.onnx --cluster cluster.toml --bind seq=1024 --global-batch 128 \\
      --micro-batches 16 --pp 2 --recompute full -o out
  Only the adapters are trained, with another loss and optimizer:
    trainc compile m.onnx --cluster c.toml --bind '*=8' --train '*lora*' --loss mse:score \\
      --optimizer sgd:momentum=0.9 -o out
  The graph after a pass, with nothing written:
    trainc compile gpt2.onnx --bind '*=8' --stop-after fuse";

/// Of `estimate`.
pub(crate) const ESTIMATE: &str = "\
Examples:
  What a model needs, and how fast it trains:
    trainc estimate gpt2.onnx --cluster cluster.toml --bind batch=8,seq=1024
  The same for a script:
    trainc estimate gpt2.onnx --cluster cluster.toml --bind batch=8,seq=1024 --message-format json";

/// Of `inspect`.
pub(crate) const INSPECT: &str = "\
Examples:
  The inputs, the units between which a pipeline may be cut, and the operators before and after fusion:
    trainc inspect gpt2.onnx --bind batch=8,seq=1024
  The model of a plan, as it was compiled; its training graph as text:
    trainc inspect out
    trainc inspect out --emit training";

/// Of `verify`.
pub(crate) const VERIFY: &str = "\
Examples:
  Whether a plan computes a training step of its model:
    trainc verify out
  The same where the model was moved:
    trainc verify out/plan.pb --model elsewhere/gpt2.onnx";

/// Of `simulate`.
pub(crate) const SIMULATE: &str = "\
Examples:
  What the time of a step goes to:
    trainc simulate out --cluster cluster.toml
  The timeline, to be opened in https://ui.perfetto.dev:
    trainc simulate out --cluster cluster.toml --trace trace.json
  What another network would do to this plan:
    trainc simulate out --cluster faster-network.toml";

/// Of `diff`.
pub(crate) const DIFF: &str = "\
Examples:
  What changed, the most important first:
    trainc diff old new
  In a test: fail where memory or time grew too much:
    trainc diff kept.json new/summary.json --fail-if 'peak>+2%,step>+5%'

Metrics of conditions: peak, arena, saved, parameters (bytes); step, recompute, exposed-recompute
(times); bubble; gpus, stages. A number with a sign is the change from the first plan to the second,
one without is the second plan's value.";

/// Of `run`.
pub(crate) const RUN: &str = "\
Examples:
  Train on a synthetic corpus, which needs no data:
    trainc run out --steps 100
  Train on tokens that nanoGPT's prepare.py wrote:
    trainc run out --data train.bin --steps 1000 --lr 3e-4";

/// Of `explain`.
pub(crate) const EXPLAIN: &str = "\
Examples:
  trainc explain E0117     a diagnostic
  trainc explain P21       a rule that plans must keep
  trainc explain           all of them, a line each";

/// Of `completions`.
pub(crate) const COMPLETIONS: &str = "\
Examples:
  trainc completions bash > ~/.local/share/bash-completion/completions/trainc
  trainc completions zsh > ~/.zfunc/_trainc
  trainc completions fish > ~/.config/fish/completions/trainc.fish";

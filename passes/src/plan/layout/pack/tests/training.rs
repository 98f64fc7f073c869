//! Lifetimes like those of a training step, as input for tests and benches.

use super::Item;

/// The shape of one pipeline stage's step.
pub(super) struct Step {
    pub(super) layers: u32,
    pub(super) micro_batches: u32,
    /// How many micro-batches this stage starts before its first backward pass (1F1B).
    pub(super) in_flight: u32,
    /// The last stage has the logits.
    pub(super) has_head: bool,
    /// Tokens of one micro-batch.
    pub(super) tokens: u64,
    pub(super) hidden: u64,
    pub(super) vocabulary: u64,
}

/// Points of time that one layer call takes.
const CALL: u32 = 24;
const ALIGN: u64 = 256;

/// The buffers of one rank, in a fixed order.
///
/// * Saved activations: one buffer for each layer, tensor and slot of an in-flight micro-batch, alive
///   from the forward to the backward call of every micro-batch that uses the slot.
/// * Temporaries inside a layer call: one buffer for each kernel, shared by the calls of all layers and
///   micro-batches, so with a life for each call.
/// * Streams between layers: the activation forward and the gradient backward, a buffer for each layer.
/// * Weight gradients before they are added to the accumulators, and the logits with their gradient.
pub(super) fn buffers(step: &Step) -> Vec<Item> {
    let schedule = one_forward_one_backward(step.micro_batches, step.in_flight);
    let pass = (step.layers + 1) * CALL;
    // The begin of the forward and of the backward pass of each micro-batch.
    let mut begins = vec![[0u32; 2]; step.micro_batches as usize];
    for (place, &(micro_batch, backward)) in (0u32..).zip(&schedule) {
        begins[micro_batch as usize][usize::from(backward)] = place * pass;
    }
    let forward = |micro_batch: u32, layer: u32| begins[micro_batch as usize][0] + layer * CALL;
    let backward = |micro_batch: u32, layer: u32| begins[micro_batch as usize][1] + (step.layers - layer) * CALL;
    let unit = step.tokens * step.hidden * 2;
    let mut items = Vec::new();
    let mut add = |bytes: u64, lives: Vec<std::ops::Range<u32>>| {
        items.push(Item::with_lives(bytes, ALIGN, lives));
    };
    let all = || 0..step.micro_batches;

    // (size, first use in the forward call, last use in the backward call) of what a layer saves.
    let saved = [
        (unit, 0, 23),
        (step.tokens * 8, 1, 23),
        (3 * unit, 4, 18),
        (unit, 7, 15),
        (step.tokens * 64, 7, 17),
        (unit, 9, 12),
        (step.tokens * 8, 10, 11),
        (unit, 11, 10),
        (4 * unit, 13, 7),
        (4 * unit, 15, 5),
    ];
    for layer in 0..step.layers {
        for (bytes, first, last) in saved {
            for slot in 0..step.in_flight {
                let users = all().filter(|micro_batch| micro_batch % step.in_flight == slot);
                add(bytes, users.map(|m| forward(m, layer) + first..backward(m, layer) + last + 1).collect());
            }
        }
    }
    // (size, first use, last use) of the temporaries of a forward and of a backward call.
    let temporaries_forward = [(unit, 2, 4), (unit, 3, 9), (unit / 2, 6, 7), (4 * unit, 12, 14), (unit, 16, 18)];
    let temporaries_backward = [
        (4 * unit, 3, 6),
        (4 * unit, 5, 8),
        (step.hidden * step.hidden * 16, 4, 6),
        (step.hidden * step.hidden * 16, 8, 10),
        (unit, 9, 13),
        (3 * unit, 14, 19),
        (step.hidden * step.hidden * 4, 14, 16),
        (step.hidden * step.hidden * 12, 18, 20),
        (2 * unit, 16, 18),
        (unit, 20, 23),
        (step.tokens * 4, 21, 22),
    ];
    let calls = || all().flat_map(|m| (0..step.layers).map(move |layer| (m, layer)));
    for (bytes, first, last) in temporaries_forward {
        add(bytes, calls().map(|(m, layer)| forward(m, layer) + first..forward(m, layer) + last + 1).collect());
    }
    for (bytes, first, last) in temporaries_backward {
        add(bytes, calls().map(|(m, layer)| backward(m, layer) + first..backward(m, layer) + last + 1).collect());
    }
    for layer in 0..step.layers {
        add(unit, all().map(|m| forward(m, layer) + 19..forward(m, layer + 1) + 11).collect());
        add(unit, all().map(|m| backward(m, layer) + 12..backward(m, layer) + CALL + 10).collect());
    }
    if step.has_head {
        let logits = step.tokens * step.vocabulary;
        let end = |m: u32| begins[m as usize][0] + step.layers * CALL;
        let begin = |m: u32| begins[m as usize][1];
        add(2 * logits, all().map(|m| end(m) + 2..begin(m) + 3).collect());
        add(4 * logits, all().map(|m| end(m) + 5..end(m) + 9).collect());
        add(4 * logits, all().map(|m| begin(m)..begin(m) + 3).collect());
        add(2 * logits, all().map(|m| begin(m) + 2..begin(m) + 9).collect());
        add(4 * step.hidden * step.vocabulary, all().map(|m| begin(m) + 6..begin(m) + 12).collect());
        add(unit, all().map(|m| begin(m) + 5..begin(m) + CALL + 10).collect());
    }
    items
}

/// The order of (micro-batch, is backward): `in_flight - 1` forwards, then one of each in turn.
fn one_forward_one_backward(micro_batches: u32, in_flight: u32) -> Vec<(u32, bool)> {
    let warm_up = micro_batches.min(in_flight - 1);
    let mut order: Vec<(u32, bool)> = (0..warm_up).map(|m| (m, false)).collect();
    for micro_batch in 0..micro_batches {
        if warm_up + micro_batch < micro_batches {
            order.push((warm_up + micro_batch, false));
        }
        order.push((micro_batch, true));
    }
    order
}

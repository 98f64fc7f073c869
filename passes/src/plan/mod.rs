//! Plans: how a program is laid out over devices, time and memory.

pub mod layout;

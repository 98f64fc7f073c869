//! The host device: every operation of the IR on CPU memory, with results that do not depend on the number of threads.

mod kernels;

//! Gradients: of every op against differences, of gradients, through models; and what must hold around them.

mod buffers;
mod checkpoint;
mod functions;
mod memory;
mod model;
mod ops;
mod support;

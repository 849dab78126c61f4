//! Tests of the emulator against plain Rust, faulty kernels, and PTX that compilers wrote.

mod command;
mod corpus;
mod faults;
mod hostile;
mod instructions;
mod interface;
mod support;

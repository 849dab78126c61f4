//! `#[derive(Module)]`: walks a struct's or enum's fields, and prints it as a tree.
#![forbid(unsafe_code)]

use proc_macro::TokenStream;

mod attributes;
mod expand;
mod root;

/// Implements `Module` for a struct or enum, and `Display` as a tree of its layers.
///
/// Every field is a module (another model, a layer, a `Param`, `Buffer` or `Tensor`, a `Vec`, `Option`, `Box` or tuple
/// of modules) or plain data (numbers, strings). Field names make the paths; fields of tuple structs are numbered; the
/// only field of an enum's tuple variant lends its own paths. Options:
///
/// - `#[module(skip)]` on a field: not part of the model; neither moved nor saved.
/// - `#[module(describe = path)]` on the type: a `fn(&Self) -> String` whose text stands for the type when the model is
///   printed; its name by default.
/// - `#[module(display = false)]` on the type: no `Display`.
/// - `#[module(crate = "path")]` on the type: where the `nn` crate is found, if not as a dependency `nn` or `consort`.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::module(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

//! The options in `#[module(..)]`.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Attribute, LitBool, LitStr, Path, Result, meta::ParseNestedMeta};

/// Options of the type.
pub(crate) struct TypeOptions {
    pub(crate) display: bool,
    pub(crate) describe: Option<Path>,
    pub(crate) root: TokenStream,
}

impl TypeOptions {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let (mut display, mut describe, mut root) = (true, None, None);
        each_option(attributes, |option| {
            if option.path.is_ident("display") {
                display = option.value()?.parse::<LitBool>()?.value;
            } else if option.path.is_ident("describe") {
                describe = Some(option.value()?.parse()?);
            } else if option.path.is_ident("crate") {
                root = Some(option.value()?.parse::<LitStr>()?.parse::<Path>()?.into_token_stream());
            } else if option.path.is_ident("skip") {
                return Err(option.error("`skip` belongs above a field: write `#[module(skip)]` there"));
            } else {
                return Err(option.error(
                    "unknown option: write `#[module(display = false)]`, `#[module(describe = path)]` or `#[module(crate = \"path\")]`",
                ));
            }
            Ok(())
        })?;
        Ok(Self { display, describe, root: root.unwrap_or_else(crate::root::path) })
    }
}

/// Whether a field is left out.
pub(crate) fn is_skipped(attributes: &[Attribute]) -> Result<bool> {
    let mut skip = false;
    each_option(attributes, |option| {
        if option.path.is_ident("skip") {
            skip = true;
            return Ok(());
        }
        Err(option.error("unknown option of a field: write `#[module(skip)]`"))
    })?;
    Ok(skip)
}

fn each_option(attributes: &[Attribute], mut f: impl FnMut(ParseNestedMeta<'_>) -> Result<()>) -> Result<()> {
    attributes.iter().filter(|a| a.path().is_ident("module")).try_for_each(|a| a.parse_nested_meta(&mut f))
}

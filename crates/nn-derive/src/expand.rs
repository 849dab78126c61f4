//! The implementations of `Module` and `Display`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, GenericParam, Result, Type};

use crate::attributes::{TypeOptions, is_skipped};

/// A visited field.
struct Part<'a> {
    /// What the pattern binds it to.
    binding: Ident,
    /// Its name in paths.
    name: String,
    ty: &'a Type,
}

/// One arm of the matches: a struct has one, an enum one per variant.
struct Arm<'a> {
    pattern: TokenStream,
    parts: Vec<Part<'a>>,
    description: String,
    /// The only field of an enum's tuple variant is visited in the variant's place.
    is_transparent: bool,
}

pub(crate) fn module(input: &DeriveInput) -> Result<TokenStream> {
    let options = TypeOptions::parse(&input.attrs)?;
    let arms = arms(input)?;
    let root = &options.root;
    let name = &input.ident;
    let (impl_generics, ty_generics, _) = input.generics.split_for_impl();
    let where_clause = bounds(input, &arms, root);

    let describe = match &options.describe {
        Some(path) => quote!(#path(self)),
        None => describe(&arms, root),
    };
    let read = visit(&arms, root, &format_ident!("visit"), &format_ident!("visit_as"));
    let write = visit(&arms, root, &format_ident!("visit_mut"), &format_ident!("visit_as_mut"));
    let display = options.display.then(|| {
        quote! {
            #[automatically_derived]
            impl #impl_generics ::core::fmt::Display for #name #ty_generics #where_clause {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    ::core::fmt::Display::fmt(&#root::tree(self), f)
                }
            }
        }
    });
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics #root::Module for #name #ty_generics #where_clause {
            fn describe(&self) -> ::std::string::String {
                #describe
            }

            fn visit<'visit>(&'visit self, visitor: &mut dyn #root::Visitor<'visit>) {
                #read
            }

            fn visit_mut<'visit>(&'visit mut self, visitor: &mut dyn #root::VisitorMut<'visit>) {
                #write
            }
        }

        #display
    })
}

fn arms(input: &DeriveInput) -> Result<Vec<Arm<'_>>> {
    match &input.data {
        Data::Struct(data) => Ok(vec![arm(quote!(Self), &data.fields, input.ident.to_string(), false)?]),
        Data::Enum(data) => data
            .variants
            .iter()
            .map(|variant| {
                let name = &variant.ident;
                let is_transparent = matches!(&variant.fields, Fields::Unnamed(fields) if fields.unnamed.len() == 1);
                arm(quote!(Self::#name), &variant.fields, format!("{}::{name}", input.ident), is_transparent)
            })
            .collect(),
        Data::Union(data) => Err(Error::new(
            data.union_token.span,
            "a union cannot be a module: write a struct, or an enum with one variant per case",
        )),
    }
}

fn arm(path: TokenStream, fields: &Fields, description: String, is_transparent: bool) -> Result<Arm<'_>> {
    let mut parts = Vec::new();
    let mut patterns = Vec::new();
    for (i, field) in fields.iter().enumerate() {
        if is_skipped(&field.attrs)? {
            continue;
        }
        if let Type::Reference(reference) = &field.ty
            && reference.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident != "static")
        {
            return Err(Error::new(
                field.ty.span(),
                "a module owns its parts: store the value instead of a reference, or write `#[module(skip)]`",
            ));
        }
        let binding = format_ident!("part_{i}");
        let (member, name) = match &field.ident {
            // Only raw identifiers differ: `r#type` is `type` in paths.
            Some(ident) => (quote!(#ident), ident.to_string().trim_start_matches("r#").to_string()),
            None => {
                let index = syn::Index::from(i);
                (quote!(#index), i.to_string())
            }
        };
        patterns.push(quote!(#member: #binding));
        parts.push(Part { binding, name, ty: &field.ty });
    }
    let is_transparent = is_transparent && parts.len() == 1;
    Ok(Arm { pattern: quote!(#path { #(#patterns,)* .. }), parts, description, is_transparent })
}

/// `match self { … }`, or what stands for it in an enum without variants.
fn match_self(arms: Vec<TokenStream>) -> TokenStream {
    if arms.is_empty() { quote!(match *self {}) } else { quote!(match self { #(#arms)* }) }
}

fn describe(arms: &[Arm<'_>], root: &TokenStream) -> TokenStream {
    let arms = arms.iter().map(|Arm { pattern, parts, description, is_transparent }| match &parts[..] {
        [part] if *is_transparent => {
            let binding = &part.binding;
            quote_spanned!(part.ty.span()=> #pattern => #root::Module::describe(#binding),)
        }
        _ => {
            // Fields are bound by name elsewhere; here only the variant matters.
            let bindings = parts.iter().map(|part| &part.binding);
            quote!(#pattern => { #(let _ = #bindings;)* ::std::string::String::from(#description) })
        }
    });
    match_self(arms.collect())
}

/// Calls `field` on every part, or `whole` where a variant's only field stands for it.
fn visit(arms: &[Arm<'_>], root: &TokenStream, whole: &Ident, field: &Ident) -> TokenStream {
    let arms = arms.iter().map(|arm| {
        let pattern = &arm.pattern;
        let calls = arm.parts.iter().map(|Part { binding, name, ty }| {
            // A field that is not a module is an error at its type.
            let span = Span::call_site().located_at(ty.span());
            let (root, whole, field) = (at(span, root), at(span, whole), at(span, field));
            if arm.is_transparent {
                quote_spanned!(span=> #root::Module::#whole(#binding, visitor);)
            } else {
                quote_spanned!(span=> #root::Module::#field(#binding, #name, visitor);)
            }
        });
        quote!(#pattern => { #(#calls)* })
    });
    let body = match_self(arms.collect());
    quote! {
        let _ = &visitor;
        #body
    }
}

/// The tokens, as if they stood at `span`.
fn at(span: Span, tokens: &impl ToTokens) -> TokenStream {
    let tokens = tokens.to_token_stream().into_iter();
    tokens
        .map(|mut token| {
            token.set_span(span);
            token
        })
        .collect()
}

/// The type's own bounds, and that every visited field whose type names a type parameter is a module.
fn bounds(input: &DeriveInput, arms: &[Arm<'_>], root: &TokenStream) -> TokenStream {
    let parameters: Vec<&Ident> = input
        .generics
        .params
        .iter()
        .filter_map(|p| if let GenericParam::Type(p) = p { Some(&p.ident) } else { None })
        .collect();
    let own = input.generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let mut generic: Vec<&Type> = Vec::new();
    for part in arms.iter().flat_map(|arm| &arm.parts) {
        let names_one = |tokens: TokenStream| mentions(tokens, &parameters);
        let ty = part.ty;
        if names_one(quote!(#ty)) {
            generic.push(ty);
        }
    }
    quote!(where #(#own,)* #(#generic: #root::Module,)*)
}

/// Whether one of the identifiers occurs among the tokens.
fn mentions(tokens: TokenStream, names: &[&Ident]) -> bool {
    use proc_macro2::TokenTree;
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => names.contains(&&ident),
        TokenTree::Group(group) => mentions(group.stream(), names),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::module;

    #[track_caller]
    fn check(input: &str, expected: &str) {
        let input = syn::parse_str(input).expect("a type");
        assert_eq!(module(&input).expect_err("not a module").to_string(), expected);
    }

    #[test]
    fn errors_say_what_to_write() {
        check(
            "union Model { a: u32, b: f32 }",
            "a union cannot be a module: write a struct, or an enum with one variant per case",
        );
        let reference = "a module owns its parts: store the value instead of a reference, or write `#[module(skip)]`";
        check("struct Model<'a> { weight: &'a Param }", reference);
        check("enum Model<'a> { A, B(&'a mut Param) }", reference);
        check("#[module(skip)] struct Model(Param);", "`skip` belongs above a field: write `#[module(skip)]` there");
        check(
            "#[module(hidden)] struct Model(Param);",
            "unknown option: write `#[module(display = false)]`, `#[module(describe = path)]` or `#[module(crate = \"path\")]`",
        );
        check("struct Model(#[module(constant)] Param);", "unknown option of a field: write `#[module(skip)]`");
    }

    #[test]
    fn what_is_skipped_may_be_anything() {
        let input = syn::parse_str("struct Model<'a, T> { #[module(skip)] settings: &'a T, name: &'static str }");
        let expanded = module(&input.expect("a type")).expect("a module").to_string();
        assert!(!expanded.contains("settings"));
        assert!(!expanded.contains("T : :: nn"), "no bound for a type that is not visited");
    }
}

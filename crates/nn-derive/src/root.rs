//! Where the expanded code finds the `nn` crate.

use proc_macro2::TokenStream;
use quote::quote;

/// `::nn` where the crate being compiled depends on it (or is it), else `::consort::nn` through the facade.
pub(crate) fn path() -> TokenStream {
    let manifest = std::env::var("CARGO_MANIFEST_DIR")
        .ok()
        .and_then(|dir| std::fs::read_to_string(std::path::Path::new(&dir).join("Cargo.toml")).ok());
    let is_nn = std::env::var("CARGO_PKG_NAME").is_ok_and(|name| name == "nn");
    if is_nn || manifest.is_some_and(|text| depends_on(&text, "nn")) { quote!(::nn) } else { quote!(::consort::nn) }
}

/// Whether a manifest names a dependency, in any of its dependency tables.
fn depends_on(manifest: &str, name: &str) -> bool {
    let mut in_dependencies = false;
    manifest.lines().map(str::trim).any(|line| {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']').trim();
            in_dependencies = header.ends_with("dependencies");
            return header.rsplit_once("dependencies.").is_some_and(|(_, dependency)| dependency == name);
        }
        in_dependencies && line.split(['=', '.']).next().is_some_and(|key| key.trim().trim_matches('"') == name)
    })
}

#[cfg(test)]
mod tests {
    use super::depends_on;

    #[test]
    fn dependencies_are_found_in_every_form_of_table() {
        let check = |manifest: &str, expected: bool| assert_eq!(depends_on(manifest, "nn"), expected, "{manifest}");
        check("[dependencies]\nnn = \"1\"", true);
        check("[dependencies]\nnn.workspace = true", true);
        check("[dev-dependencies]\nnn = { path = \"../nn\" }", true);
        check("[dependencies.nn]\nversion = \"1\"", true);
        check("[target.'cfg(unix)'.dependencies]\nnn = \"1\"", true);
        check("[dependencies]\nconsort = \"1\"", false);
        check("[package]\nnn = \"1\"", false);
        check("[dependencies]\nnn-derive = \"1\"", false);
        check("[dependencies]\n# nn = \"1\"", false);
    }
}

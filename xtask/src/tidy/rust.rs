//! Rules about Rust code. They see tokens, so comments and strings do not set them off.

use super::Rule;
use super::source::{Source, Token};

/// The only files that may hold `unsafe` code.
const UNSAFE_FILES: &[&str] = &[
    "crates/backend-cpu/src/simd.rs",
    "crates/backend-cuda/src/driver/nvidia.rs",
    "crates/backend-cuda/src/driver/nvidia/library.rs",
    "crates/ptx-emulator/src/fma.rs",
];
/// Where a `match` over `Op` names every op: a new op must be an error there until it is handled.
const EXHAUSTIVE: &[&str] = &["crates/backend-"];

pub(super) const RULES: &[Rule] = &[
    Rule { name: "rust", what: "every .rs file is Rust", find: not_rust, warning: false },
    Rule {
        name: "unsafe",
        what: "`unsafe` only in the files that are reviewed for it",
        find: unsafe_code,
        warning: false,
    },
    Rule {
        name: "forbid-unsafe",
        what: "every other crate says #![forbid(unsafe_code)]",
        find: forbids_unsafe,
        warning: false,
    },
    Rule { name: "unfinished", what: "no todo!, unimplemented!, dbg!", find: unfinished, warning: false },
    Rule { name: "hidden-test", what: "no #[ignore], no #[should_panic]", find: hidden_tests, warning: false },
    Rule {
        name: "unwrap",
        what: "libraries return errors, or state an invariant in `expect(\"invariant: …\")`",
        find: unwraps,
        warning: false,
    },
    Rule {
        name: "op-wildcard",
        what: "a backend's match over Op has no wildcard arm",
        find: wildcards,
        warning: false,
    },
];

type Findings = Vec<(usize, String)>;

fn not_rust(file: &Source) -> Findings {
    file.tokens.as_ref().err().map(|error| (1, error.clone())).into_iter().collect()
}

fn unsafe_code(file: &Source) -> Findings {
    if UNSAFE_FILES.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let places = ["unsafe", "allow ( unsafe_code"].into_iter().flat_map(|sequence| file.places(sequence));
    places.map(|at| (at[0].line, format!("`unsafe` is allowed only in {}", UNSAFE_FILES.join(", ")))).collect()
}

fn forbids_unsafe(file: &Source) -> Findings {
    let root = ["/src/lib.rs", "/src/main.rs"].into_iter().find_map(|root| file.path.strip_suffix(root));
    let folder = root.unwrap_or_default();
    let exempt = folder.is_empty() || UNSAFE_FILES.iter().any(|path| path.starts_with(&format!("{folder}/")));
    if exempt || file.places("# ! [ forbid ( unsafe_code ) ]").next().is_some() {
        return Vec::new();
    }
    vec![(1, "add `#![forbid(unsafe_code)]`".into())]
}

fn unfinished(file: &Source) -> Findings {
    let find = |name: &'static str| {
        let places = file.places(name).filter(|at| at.get(1).is_some_and(|next| next.text == "!"));
        places.map(move |at| (at[0].line, format!("`{name}!` is left in the code; return an error or finish it")))
    };
    ["todo", "unimplemented", "dbg"].into_iter().flat_map(find).collect()
}

fn hidden_tests(file: &Source) -> Findings {
    let find = |name: &'static str| {
        let places = file.places("# [").filter(move |at| at.get(2).is_some_and(|next| next.text == name));
        places.map(move |at| (at[0].line, format!("`#[{name}]` hides a test; say as data what is not supported")))
    };
    ["ignore", "should_panic"].into_iter().flat_map(find).collect()
}

fn unwraps(file: &Source) -> Findings {
    if !file.is_library() {
        return Vec::new();
    }
    let states_invariant = |at: &[Token]| at.get(3).is_some_and(|text| text.text.starts_with("\"invariant: "));
    // A parser's own `expect` returns its error: `self.expect("{")?`.
    let returns = |at: &[Token]| {
        let close = at.iter().skip(3).position(|t| t.text == ")" && t.depth == at[2].depth);
        close.is_some_and(|i| at.get(3 + i + 1).is_some_and(|next| next.text == "?"))
    };
    let unwraps = file.places(". unwrap ( )").filter(|at| !at[0].test);
    let expects = file.places(". expect (").filter(|at| !at[0].test && !states_invariant(at) && !returns(at));
    let message = "return the error, or state why it cannot happen with expect(\"invariant: …\")";
    unwraps.chain(expects).map(|at| (at[1].line, message.into())).collect()
}

fn wildcards(file: &Source) -> Findings {
    if !EXHAUSTIVE.iter().any(|start| file.path.starts_with(start)) {
        return Vec::new();
    }
    let mut findings = Findings::new();
    for at in file.places("match") {
        let patterns = patterns(at);
        let over_op = patterns
            .iter()
            .any(|pattern| pattern.windows(3).any(|w| w[0].text == "Op" && w[1].text == ":" && w[2].text == ":"));
        let catch_alls = patterns.iter().filter(|pattern| over_op && catches_all(pattern));
        findings.extend(catch_alls.map(|pattern| {
            (pattern[0].line, "a wildcard arm over `Op` hides ops that are added later; name them".into())
        }));
    }
    findings
}

/// The patterns of a `match` that starts here.
fn patterns(tokens: &[Token]) -> Vec<&[Token]> {
    let outer = tokens[0].depth;
    let Some(open) = tokens.iter().position(|t| t.text == "{" && t.depth == outer) else {
        return Vec::new();
    };
    let body = &tokens[open + 1..];
    let end = body.iter().position(|t| t.depth <= outer).unwrap_or(body.len());
    let (body, depth) = (&body[..end], outer + 1);

    let mut patterns = Vec::new();
    let mut start = 0;
    let is = |at: usize, text: &str| body.get(at).is_some_and(|t| t.text == text && t.depth == depth);
    while let Some(arrow) = (start..body.len()).find(|&at| is(at, "=") && is(at + 1, ">")) {
        patterns.push(&body[start..arrow]);
        let arm = arrow + 2;
        let last = if is(arm, "{") { "}" } else { "," };
        let Some(stop) = (arm..body.len()).find(|&at| is(at, last)) else {
            break;
        };
        start = stop + 1 + usize::from(last == "}" && is(stop + 1, ","));
    }
    patterns
}

/// Whether a pattern matches whatever the ones before it left.
fn catches_all(pattern: &[Token]) -> bool {
    let name = pattern[0].text.as_str();
    let binds = name.starts_with(|first: char| first == '_' || first.is_lowercase());
    binds && (pattern.len() == 1 || pattern[1].text == "if")
}

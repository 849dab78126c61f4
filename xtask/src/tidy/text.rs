//! Rules about files as text: their length, their words, the links of the pages.

use super::Rule;
use super::source::Source;
use crate::process::root;

/// A file is one idea: longer than this is a warning, or an error.
const LONG: usize = 400;
const TOO_LONG: usize = 600;

/// Words that say a change is not finished, or tie the project to one machine.
const WORDS: &[&str] = &["FIXME", "HACK", "TODO", "WIP", "XXX", "<<<<<<<", ">>>>>>>", "/home/", "/root/", "/Users/"];
/// The file that has to spell them.
const WORDS_FILE: &str = "xtask/src/tidy/text.rs";

pub(super) const RULES: &[Rule] = &[
    Rule { name: "long-file", what: "code files over 400 lines", find: long, warning: true },
    Rule { name: "too-long-file", what: "no code file over 600 lines", find: too_long, warning: false },
    Rule { name: "words", what: "no note to oneself, no path of one machine", find: words, warning: false },
    Rule { name: "links", what: "links between pages lead somewhere", find: broken_links, warning: false },
];

type Findings = Vec<(usize, String)>;

fn lines_over(file: &Source, limit: usize) -> Option<usize> {
    let is_code = file.path.ends_with(".rs") || file.path.ends_with(".py");
    Some(file.text.lines().count()).filter(|&n| is_code && n > limit)
}

fn long(file: &Source) -> Findings {
    let lines = lines_over(file, LONG).filter(|&n| n <= TOO_LONG);
    lines.map(|n| (n, format!("{n} lines; a file is one idea"))).into_iter().collect()
}

fn too_long(file: &Source) -> Findings {
    let lines = lines_over(file, TOO_LONG);
    lines.map(|n| (n, format!("{n} lines, over {TOO_LONG}; split it by idea"))).into_iter().collect()
}

fn words(file: &Source) -> Findings {
    if file.path == WORDS_FILE {
        return Vec::new();
    }
    let lines = (1..).zip(file.text.lines());
    let finds = lines.flat_map(|(n, line)| {
        let said = WORDS.iter().filter(move |word| says(line, word));
        said.map(move |word| (n, format!("`{word}` does not belong in the repository")))
    });
    finds.collect()
}

/// Whether the line has the word, not as a part of a longer one.
fn says(line: &str, word: &str) -> bool {
    let extends = |c: Option<char>, by: Option<char>| {
        c.is_some_and(char::is_alphanumeric) && by.is_some_and(char::is_alphanumeric)
    };
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !extends(before, word.chars().next()) && !extends(after, word.chars().next_back())
    })
}

fn broken_links(file: &Source) -> Findings {
    if !file.path.ends_with(".md") {
        return Vec::new();
    }
    links(&file.text).into_iter().filter_map(|(line, target)| Some((line, breach(file, target)?))).collect()
}

/// What is wrong with a link to this target, if anything. Other sites are not asked.
fn breach(file: &Source, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let folder = root().join(&file.path).parent()?.to_owned();
    let to = folder.join(path);
    if !path.is_empty() && !to.exists() {
        return Some(format!("the link `{target}` leads nowhere"));
    }
    let text = if path.is_empty() { file.text.clone() } else { std::fs::read_to_string(&to).unwrap_or_default() };
    let found = heading.is_empty() || headings(&text).any(|have| have == heading);
    (!found).then(|| format!("the link `{target}` names a heading that is not there"))
}

/// The targets of a page's inline links, code left out, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (n, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            let in_code = line[..at].matches('`').count() % 2 == 1;
            let target = line[at + 2..].split_once(')').map(|(target, _)| target);
            found.extend(target.filter(|_| !in_code).map(|target| (n, target)));
        }
    }
    found
}

/// The anchors of a page's headings, spelt as code hosts spell them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let titles = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    titles.map(|title| {
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
    })
}

//! The kernels' files: each must be part of a text that was assembled, and name one target.

use super::usage;
use crate::process::Result;
use std::path::{Path, PathBuf};

/// A file of `kernels/`: the lines that its texts have, and the target that it names, if it is more than a part.
pub(super) struct Skeleton {
    name: String,
    lines: Vec<String>,
    target: Option<u32>,
    /// The target in the comment at the top.
    stated: Option<u32>,
}

/// All files of a folder.
pub(super) fn read(folder: &Path) -> Result<Vec<Skeleton>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        paths.extend(Some(path).filter(|path| path.extension().is_some_and(|extension| extension == "ptx")));
    }
    paths.sort();
    paths.iter().map(|path| Ok(Skeleton::new(&name(path), &std::fs::read_to_string(path)?))).collect()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What is wrong with the files, one line each: no text is made of one, or its comment names another target than its code.
pub(super) fn breaches(skeletons: &[Skeleton], texts: &[PathBuf]) -> Vec<String> {
    let mut unseen: Vec<&Skeleton> = skeletons.iter().collect();
    for path in texts {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        unseen.retain(|skeleton| !skeleton.is_part_of(&text));
    }
    let missing = unseen.iter().map(|file| format!("{}: no text that was assembled is made of it", file.name));
    let is_odd = |file: &&Skeleton| file.target.is_some() && file.target != file.stated;
    let odd = skeletons.iter().filter(is_odd).map(|file| {
        let said = file.stated.map_or("none".into(), |target| format!("sm_{target}"));
        let code = file.target.unwrap_or_default();
        format!("{}: the comment names target {said}, the code sm_{code}; write `Target: sm_{code}.`", file.name)
    });
    missing.chain(odd).collect()
}

impl Skeleton {
    fn new(name: &str, text: &str) -> Self {
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
        let is_fixed = |line: &&str| !line.contains("{{");
        let lines = text.lines().filter(is_code).filter(is_fixed).map(String::from).collect();
        let stated = text
            .split_once("Target: sm_")
            .and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
        Self { name: name.into(), lines, target: usage::target(text), stated }
    }

    /// Whether a text has all the lines, in this order.
    fn is_part_of(&self, text: &str) -> bool {
        let mut lines = text.lines();
        self.lines.iter().all(|wanted| lines.any(|line| line == wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "// Adds.\n// Target: sm_75.\n.target sm_75\n.entry {{NAME}}\n    add;\n{{BODY}}\n    ret;\n";

    #[test]
    fn a_text_is_made_of_a_file_with_its_lines_in_order() {
        let file = Skeleton::new("add.ptx", FILE);
        assert!(file.is_part_of(".target sm_75\n.entry sum\n    add;\n    mul;\n    ret;\n"));
        assert!(!file.is_part_of(".target sm_75\n    ret;\n    add;\n"));
    }

    #[test]
    fn files_without_a_text_and_with_two_targets_are_named() -> Result {
        let folder = tempfile::tempdir()?;
        let text = folder.path().join("sum-0.ptx");
        std::fs::write(&text, ".target sm_75\n    add;\n    ret;\n")?;
        let other = FILE.replace("Target: sm_75", "Target: sm_80").replace("add", "sub");
        let files = [Skeleton::new("add.ptx", FILE), Skeleton::new("sub.ptx", &other)];
        assert_eq!(
            breaches(&files, &[text]),
            [
                "sub.ptx: no text that was assembled is made of it",
                "sub.ptx: the comment names target sm_80, the code sm_75; write `Target: sm_75.`"
            ]
        );
        Ok(())
    }
}

//! Names with `*` in them.

/// Whether a name fits a pattern, in which `*` stands for anything.
pub(super) fn is_like(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name
            .strip_prefix(head)
            .is_some_and(|tail| (0..=tail.len()).any(|i| tail.is_char_boundary(i) && is_like(rest, &tail[i..]))),
    }
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, is) in
            [("conv*", "conv2d", true), ("*pool*", "max_pool2d", true), ("add", "add", true), ("add", "addmm", false)]
        {
            assert_eq!(is_like(pattern, name), is, "{pattern} {name}");
        }
    }
}

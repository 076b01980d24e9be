//! The list in `tests/README.md` names tests that exist.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Where the module `path` may be written, and what is left of it inside that file.
fn files(path: &[&str]) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (root, path) =
        if path[0] == "src" { (root.join("src"), &path[1..]) } else { (root.join("tests"), path) };
    // A module may also stand inside its parent's file.
    (1..=path.len())
        .rev()
        .flat_map(|n| {
            let base = root.join(path[..n].join("/"));
            [base.with_extension("rs"), base.join("mod.rs"), base.join("tests.rs")]
        })
        .collect()
}

fn exists(test: &str) -> bool {
    let path: Vec<_> = test.split("::").collect();
    let (name, module) = path.split_last().unwrap();
    let defined = format!("fn {name}(");
    files(module).iter().any(|file| read_to_string(file).is_ok_and(|text| text.contains(&defined)))
}

#[test]
fn every_case_has_its_tests_or_a_reason() {
    let readme = include_str!("README.md");
    let cases: Vec<_> = readme.lines().filter(|line| line.starts_with("| B")).collect();
    assert_eq!(cases.len(), 85);
    for case in cases {
        let here = case.split(" | ").nth(2).unwrap();
        let tests: Vec<_> = here.split('`').skip(1).step_by(2).filter(|word| word.contains("::")).collect();
        assert!(!tests.is_empty() || here.contains("waits for"), "neither test nor reason: {case}");
        for test in tests {
            assert!(exists(test), "no such test: {test}");
        }
    }
}

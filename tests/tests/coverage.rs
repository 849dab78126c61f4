//! Every method of the tensor surface is judged by the oracle, or has a test of its own that is named here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use integration::oracle::cases;

/// The surface that programs are written against: methods of a tensor, functions that make one, and losses.
const SURFACE: &str = "
    zeros ones full arange linspace eye rand randn randint bernoulli from_vec from_slice from_ndarray to_vec item to_ndarray
    shape dims rank len dtype device is_contiguous to copy_to cast
    add sub mul div rem pow maximum minimum eq ne lt le gt ge logical_and logical_or logical_not select
    neg abs sign exp exp_m1 ln ln_1p sqrt rsqrt recip square sin cos tan tanh erf floor ceil round clamp is_nan is_finite
    relu leaky_relu elu selu celu gelu gelu_tanh silu mish softplus sigmoid log_sigmoid hard_swish hard_tanh softsign
    map zip zip_n operators allclose
    sum mean prod max min var std any all norm argmax argmin
    sum_keepdim mean_keepdim prod_keepdim max_keepdim min_keepdim var_keepdim std_keepdim any_keepdim all_keepdim
    norm_keepdim argmax_keepdim argmin_keepdim logsumexp_keepdim
    cumsum cumprod cummax sort argsort topk softmax log_softmax logsumexp
    matmul matmul_with conv1d conv2d conv3d conv_with conv_transpose1d conv_transpose2d conv_transpose3d
    max_pool1d max_pool2d max_pool3d max_pool_with_positions avg_pool1d avg_pool2d avg_pool3d
    adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
    reshape permute transpose t expand expand_as squeeze unsqueeze flatten narrow slice flip chunk split cat stack pad repeat
    roll contiguous index_select gather scatter_add index_add slice_assign masked_fill one_hot tril triu diag nonzero einsum
    attention cross_entropy normalize rms_normalize
    loss::mse loss::mae loss::huber loss::smooth_l1 loss::cross_entropy loss::nll loss::binary_cross_entropy
    loss::binary_cross_entropy_with_logits
";

/// What PyTorch cannot judge, and the test that does.
const ELSEWHERE: &[(&str, &str)] = &[
    ("from_vec from_slice from_host from_ndarray to_vec to_host to_ndarray item", "surface.rs: values_come_and_go"),
    (
        "shape dims rank len is_empty dtype device meta is_contiguous zeros_like ones_like",
        "surface.rs: tensors_describe_themselves",
    ),
    ("to copy_to is_same", "devices.rs: a_move_keeps_what_is_already_there_and_a_copy_never_does"),
    ("rand uniform randn normal randint bernoulli", "surface.rs: random_numbers_have_their_distribution"),
    ("operators", "surface.rs: operators_take_tensors_and_numbers_on_both_sides"),
    ("allclose", "surface.rs: closeness_is_relative_and_absolute"),
    ("stop_gradient", "surface.rs: constants_have_no_gradient"),
    ("custom", "surface.rs: a_custom_op_runs_and_is_differentiated"),
];

/// What backends and interpreters call, not programs.
const INNER: &str = "from_storage with_layout storage unique_storage layout place view resolve";

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

fn covered() -> BTreeSet<String> {
    let elsewhere = ELSEWHERE.iter().flat_map(|(names, _)| words(names)).map(str::to_string);
    cases().into_iter().map(|case| case.op).chain(elsewhere).collect()
}

/// The files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

#[test]
fn every_method_of_the_surface_is_covered() {
    let covered = covered();
    let missing: Vec<&str> = words(SURFACE).filter(|&name| !covered.contains(name)).collect();
    assert!(missing.is_empty(), "no test covers {missing:?}");
}

/// A method that someone adds has to be covered, too.
#[test]
fn every_public_method_is_covered() {
    let known = covered();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/tensor-core/src");
    let is_known = |name: &str| known.contains(name) || words(INNER).any(|inner| inner == name);
    let mut missing = Vec::new();
    for file in sources(&folder.join("tensor")).into_iter().chain([folder.join("tensor.rs")]) {
        let text = std::fs::read_to_string(&file).expect("a text");
        // Names of methods, and of free functions that are exported: options are set by methods of theirs.
        let is_options = file.ends_with("window.rs");
        let declared =
            text.lines().filter_map(|line| line.trim_start().strip_prefix("pub fn ")).filter(|_| !is_options);
        let names =
            declared.map(|rest| rest.split(['(', '<']).next().unwrap_or(rest)).filter(|name| !name.starts_with('$'));
        missing.extend(names.filter(|name| !is_known(name)).map(|name| format!("{name} of {}", file.display())));
    }
    assert!(missing.is_empty(), "no test covers {missing:#?}");
}

#[test]
fn the_tests_that_are_named_exist() {
    for (names, test) in ELSEWHERE {
        let (file, function) = test.split_once(": ").expect("a file and a test");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(text.contains(&format!("fn {function}(")), "{names}: {file} has no test {function}");
    }
}

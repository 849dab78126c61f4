//! Building: interning, numbers as arguments, and symbols that leave their closure.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::expr::{Prim, build};
use crate::{Expr, Number, Sym};

fn message(f: impl FnOnce() -> Expr) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("the closure panics");
    payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(|s| s.to_string()))
        .unwrap_or_default()
}

#[test]
fn equal_structures_are_one_object() {
    let build_it = |n: f64| build(move |[x, y]| (x * n + y).tanh() * x);
    let (a, b) = (build_it(3.0), build_it(4.5));
    assert_eq!(a.code.id(), b.code.id());
    assert_eq!((a.args[0], b.args[0]), (Number::Float(3.0), Number::Float(4.5)));
    assert_ne!(a.code.id(), build_it(2.0).code.id(), "2 is part of the structure");
    assert_ne!(a.code.id(), build(|[x, y]| (x * 3.0 + y).tanh() * y).code.id());
    let ids: std::collections::HashSet<u64> =
        (0..50).map(|i| build(|[x]| x * Sym::lit(f64::from(i))).code.id()).collect();
    assert_eq!(ids.len(), 50);
}

#[test]
fn unused_nodes_and_repeated_ones_leave_no_trace() {
    let expr = build(|[x, y]| {
        let _ = (x * y).exp();
        (x + y) * (x + y)
    });
    let prims: Vec<Prim> = expr.code.nodes().iter().map(|n| n.prim).collect();
    assert_eq!(prims.len(), 4, "{prims:?}");
    assert_eq!(expr.eval_f64(&[2.0, 3.0]), 25.0);
}

#[test]
fn small_numbers_are_part_of_the_structure() {
    for v in [0.0, 1.0, -1.0, 2.0, 0.5] {
        assert!(build(|[x]| x * v).args.is_empty(), "{v}");
    }
    for v in [-0.0, 3.0, f64::NAN, f64::INFINITY] {
        assert_eq!(build(|[x]| x * v).args.len(), 1, "{v}");
    }
    assert_eq!(build(|[x]| x * -0.0).eval_f64(&[1.0]).to_bits(), (-0.0f64).to_bits());
}

#[test]
fn a_symbol_of_another_closure_is_refused() {
    let inside = || {
        build(|[x]| {
            let inner = build(|[y]: [Sym; 1]| x + y);
            drop(inner);
            x
        })
    };
    assert_eq!(message(inside), "a symbol was used outside the closure that received it");
    let kept = std::cell::Cell::new(None);
    build(|[x]| {
        kept.set(Some(x));
        x
    });
    let stale = kept.get().expect("set above");
    assert_eq!(message(|| build(|[x]| x + stale)), "a symbol was used outside the closure that received it");
    assert_eq!(message(|| build(|[_]: [Sym; 1]| stale)), "a formula returned a symbol of another closure");
}

#[test]
fn a_panic_restores_the_closure_around_it() {
    let expr = build(|[x]| {
        let inner = catch_unwind(|| build(|[y]: [Sym; 1]| if true { panic!("inside") } else { y }));
        assert!(inner.is_err());
        x * 3.0
    });
    assert_eq!(expr.eval_f64(&[2.0]), 6.0);
    // And a nested build that succeeds.
    let expr = build(|[x]| {
        let inner = build(|[y]| y + 10.0);
        x + inner.eval_f64(&[1.0])
    });
    assert_eq!(expr.eval_f64(&[1.0]), 12.0);
}

#[test]
fn identity_is_recognised() {
    assert!(Expr::identity().is_identity());
    assert!(build(|[x]| x).is_identity());
    assert!(!build(|[x]| -x).is_identity());
    assert!(!build(|[x, _]: [Sym; 2]| x).is_identity());
}

//! Programs whose functions call themselves, directly or through others.

use super::{adds_up, difference, explain, first, pair};
use crate::programs::has_valgrind;
use crate::support::Place;

/// What all programs begin with; `work(n)` executes a number of instructions that grows with n.
const HEAD: &str = "#include <stdlib.h>\n#define FUNCTION __attribute__((noinline, noclone)) static\n\
    volatile unsigned sink;\n\
    FUNCTION unsigned work(unsigned n) {\n\
      unsigned s = n; for (unsigned i = 0; i < n; i++) s = s * 31 + i; return s;\n}\n";

/// Checks that all of the difference is attributed to a function, in both directions.
fn is_attributed_to(function: &str, old: &str, new: &str) {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    pair(&place, &format!("{HEAD}{old}"), &format!("{HEAD}{new}"));
    for sides in [["./old", "./new"], ["./new", "./old"]] {
        let answer = explain(&place, &sides);
        adds_up(&answer);
        let ((name, _, delta), whole) = (first(&answer), difference(&answer));
        assert_eq!(name, function, "{}", answer.exchange());
        assert!((delta - whole).abs() < 0.02 * whole.abs(), "{delta} of {whole}: {}", answer.exchange());
    }
}

#[test]
fn a_removed_recursive_call_costs_what_such_calls_cost_and_not_what_the_outer_call_does() {
    // The outer call evaluates a set, which is expensive; those of `compare` evaluate one element each. Step 3 calls
    // step 2.
    let text = |compare: &str, step: u32| {
        format!(
            "static unsigned evaluate(int step, int i);\n\
             FUNCTION unsigned attribute(int i) {{ return work(5 + i % 3); }}\n\
             FUNCTION unsigned compare(int i) {{ return {compare} > 7; }}\n\
             FUNCTION unsigned filter(int n) {{ unsigned k = 0; for (int i = 0; i < n; i++) k += compare(i); return k; }}\n\
             FUNCTION unsigned evaluate(int step, int i) {{\n\
               if (step == 0) return attribute(i) + work(2);\n\
               if (step == 1) {{ for (int j = 0; j < 300; j++) sink += work(20); return filter(200); }}\n\
               return evaluate(step - 1, i) + work(9);\n}}\n\
             int main(void) {{ for (int i = 0; i < 20; i++) sink += evaluate({step}, 0); return 0; }}\n"
        )
    };
    for step in [1, 3] {
        is_attributed_to("compare", &text("evaluate(0, i)", step), &text("attribute(i)", step));
    }
}

/// A program that evaluates a tree of depth 7. Each inner element is evaluated through `dispatch`.
fn evaluates_tree(binary: &str, leaf: &str) -> String {
    format!(
        "struct node {{ struct node *a, *b; unsigned value; }};\n\
         static unsigned evaluate(struct node *x);\n\
         FUNCTION unsigned leaf(struct node *x) {{ return {leaf}; }}\n\
         FUNCTION unsigned binary(struct node *x) {{ unsigned r = evaluate(x->a) + 3; {binary} r += evaluate(x->b); return r; }}\n\
         FUNCTION unsigned dispatch(struct node *x) {{ sink += work(4); return x->a ? binary(x) : leaf(x); }}\n\
         FUNCTION unsigned evaluate(struct node *x) {{ return x ? dispatch(x) : 0; }}\n\
         static struct node *make(int depth) {{\n\
           struct node *x = calloc(1, sizeof *x); x->value = depth * 13;\n\
           if (depth) {{ x->a = make(depth - 1); x->b = make(depth - 1); }}\n  return x;\n}}\n\
         int main(void) {{ sink = evaluate(make(7)); return 0; }}\n"
    )
}

#[test]
fn one_more_recursive_call_is_attributed_to_the_function_that_makes_it() {
    let leaf = "work(x->value % 7)";
    is_attributed_to("binary", &evaluates_tree("", leaf), &evaluates_tree("r ^= evaluate(x->b);", leaf));
}

#[test]
fn a_dearer_function_below_a_recursion_is_the_origin() {
    is_attributed_to("leaf", &evaluates_tree("", "work(3)"), &evaluates_tree("", "work(9)"));
}

#[test]
fn a_deeper_recursion_is_attributed_to_the_function_that_asks_for_it() {
    let text = |depth: u32| {
        format!(
            "FUNCTION int walk(int depth) {{ sink += work(3); return depth ? walk(depth - 1) + 1 : 0; }}\n\
             FUNCTION int count(void) {{ return walk({depth}); }}\n\
             int main(void) {{ for (int i = 0; i < 40; i++) sink += count(); return 0; }}\n"
        )
    };
    is_attributed_to("count", &text(60), &text(90));
}

/// The array of a quicksort, and the partition of a part of it.
const PARTITION: &str = "static unsigned a[2000];\n\
    FUNCTION int partition(int l, int h, unsigned p) {\n\
      int i = l, j = h;\n\
      while (i <= j) {\n\
        while (a[i] < p) i++;\n    while (a[j] > p) j--;\n\
        if (i <= j) { unsigned t = a[i]; a[i++] = a[j]; a[j--] = t; }\n  }\n  return i;\n}\n";

#[test]
fn another_pivot_is_attributed_to_the_function_that_chooses_it() {
    let text = |pivot: &str| {
        format!(
            "{PARTITION}\
             FUNCTION void sort(int l, int h) {{\n\
               if (l >= h) return;\n  int i = partition(l, h, {pivot});\n  sort(l, i - 1); sort(i, h);\n}}\n\
             int main(void) {{\n\
               for (int i = 0; i < 2000; i++) a[i] = i < 1000 ? i : 3000 - i;\n  sort(0, 1999);\n  return 0;\n}}\n"
        )
    };
    is_attributed_to("sort", &text("a[(l + h) / 2]"), &text("a[l + (h - l) / 4]"));
}

#[test]
fn a_function_that_does_other_work_is_named_beside_the_one_that_changed() {
    if !has_valgrind() {
        return;
    }
    // The partition has most of the difference, and the same code; the code that chooses the pivot changed.
    let text = |pivot: &str| {
        format!(
            "{PARTITION}\
             FUNCTION unsigned pivot(int l, int h) {{ {pivot} }}\n\
             FUNCTION void sort(int l, int h) {{\n\
               if (l >= h) return;\n  int i = partition(l, h, pivot(l, h));\n  sort(l, i - 1); sort(i, h); sink++;\n}}\n\
             int main(void) {{\n\
               for (int i = 0; i < 2000; i++) a[i] = i < 1000 ? i : 3000 - i;\n  sort(0, 1999);\n  return 0;\n}}\n"
        )
    };
    let place = Place::new();
    let flags = ["-g", "-O1", "-fno-ipa-ra"];
    place.compile("old", &format!("{HEAD}{}", text("return a[(l + h) / 2];")), &flags);
    let other = text("sink++; sink++; sink++; return a[l + (h - l) / 8];");
    place.compile("new", &format!("{HEAD}{other}"), &flags);
    let answer = place.run(["explain", "--no-time", "./old", "./new"]);
    let said = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("Most of it shows in partition ("), "{}", answer.exchange());
    let first =
        "so its input or the state must differ; the first function whose code changed is pivot: own code";
    assert!(said.contains(first), "{}", answer.exchange());
}

//! Stable sorting, and sorted collections, with few copies of their code.
//!
//! The standard library compiles 5 KB of machine code for each type and each comparison that is sorted stably, for each
//! type that is collected into a sorted set, and for each type of a sorted map. In this program that was a sixth of the
//! machine code. Vectors whose equal elements cannot be distinguished are sorted by `sort_unstable`.

use std::cmp::Ordering;
use std::collections::BTreeSet;

pub use sorted_map::{MapEntry, SortedMap};

mod sorted_map;

/// Sorts by a comparison. Elements that compare as equal keep their order.
pub fn by<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let places = sorted_places(items.len(), &mut |one, other| compare(&items[one], &items[other]));
    move_to(items, places);
}

/// Sorts in ascending order.
pub fn ascending<T: Ord>(items: &mut [T]) {
    by(items, T::cmp);
}

/// Sorts by a key. Elements with equal keys keep their order.
pub fn by_key<T, K: Ord>(items: &mut [T], mut key: impl FnMut(&T) -> K) {
    by(items, |one, other| key(one).cmp(&key(other)));
}

/// Collects elements into a sorted set. [`distinct`] is enough, and less code, if nothing is added or removed later.
pub fn set<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    items.into_iter().for_each(|item| {
        set.insert(item);
    });
    set
}

/// Returns the elements in ascending order, each once.
pub fn distinct<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    ascending(&mut items);
    items.dedup();
    items
}

/// Returns the elements in the order in which they first come, each once. Each is compared with all that came before and differ.
pub fn each_once<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

/// Returns the places of the elements in sorted order. The place decides between equal elements.
fn sorted_places(length: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..length).collect();
    places.sort_unstable_by(|one, other| compare(*one, *other).then(one.cmp(other)));
    places
}

/// Moves the element at `places[i]` to `i`, for every `i`. Each cycle of moves is followed by swaps.
fn move_to<T>(items: &mut [T], mut places: Vec<usize>) {
    for first in 0..places.len() {
        let mut place = first;
        loop {
            let from = std::mem::replace(&mut places[place], place);
            if from == first || from == place {
                break;
            }
            items.swap(place, from);
            place = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Pcg;

    #[test]
    fn sorting_is_that_of_the_standard_library() {
        let mut pcg = Pcg::with_stream(1, 2);
        for length in 0..200 {
            let mut items: Vec<(u32, usize)> = (0..length).map(|place| (pcg.below(20), place)).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|(key, _)| std::cmp::Reverse(*key));
            by_key(&mut items, |(key, _)| std::cmp::Reverse(*key));
            assert_eq!(items, expected);
        }
    }

    #[test]
    fn a_set_holds_each_element_once() {
        assert_eq!(set(["b", "a", "b"]), BTreeSet::from(["a", "b"]));
        assert_eq!(distinct(["b", "a", "b"]), ["a", "b"]);
        assert!(distinct(Vec::<u32>::new()).is_empty());
    }
}

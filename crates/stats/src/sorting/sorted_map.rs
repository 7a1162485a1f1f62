//! A sorted map with one copy of its tree for each type of key.

use std::borrow::Borrow;
use std::collections::{BTreeMap, btree_map};
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Index, RangeBounds};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// A map whose pairs are sorted by key, with the interface of [`BTreeMap`].
///
/// The tree holds the places of the values in a vector. All maps whose keys have one type thus share the machine code of
/// the tree, which the standard library compiles once for each pair of types.
#[derive(Clone)]
pub struct SortedMap<K, V> {
    places: BTreeMap<K, usize>,
    values: Vec<V>,
}

impl<K, V> SortedMap<K, V> {
    /// Returns an empty map.
    pub const fn new() -> SortedMap<K, V> {
        SortedMap { places: BTreeMap::new(), values: Vec::new() }
    }

    /// Returns the number of pairs.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether the map has no pairs.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Removes all pairs.
    pub fn clear(&mut self) {
        *self = SortedMap::new();
    }

    /// Iterates over the pairs, sorted by key.
    pub fn iter(&self) -> MapPairs<'_, K, V> {
        MapPairs { places: self.places.iter(), values: &self.values }
    }

    /// Iterates over the pairs, sorted by key. The values can be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        let mut values: Vec<Option<&mut V>> = self.values.iter_mut().map(Some).collect();
        self.places.iter().filter_map(move |(key, place)| Some((key, values[*place].take()?)))
    }

    /// Iterates over the keys, sorted.
    pub fn keys(&self) -> btree_map::Keys<'_, K, usize> {
        self.places.keys()
    }

    /// Iterates over the values, sorted by key.
    pub fn values(&self) -> MapValues<'_, K, V> {
        MapValues(self.iter())
    }

    /// Iterates over the values, in the order in which their keys were inserted. The values can be changed.
    pub fn values_mut(&mut self) -> std::slice::IterMut<'_, V> {
        self.values.iter_mut()
    }

    /// Returns the keys, sorted.
    pub fn into_keys(self) -> btree_map::IntoKeys<K, usize> {
        self.places.into_keys()
    }

    /// Returns the values, sorted by key.
    pub fn into_values(self) -> impl Iterator<Item = V> {
        self.into_iter().map(|(_, value)| value)
    }

    /// Returns the pair with the least key.
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    /// Returns the pair with the greatest key.
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next_back()
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    /// Returns the value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.places.get(key).map(|place| &self.values[*place])
    }

    /// Returns the value of a key. It can be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.places.get(key).map(|place| &mut self.values[*place])
    }

    /// Returns whether the map has a value for a key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.places.contains_key(key)
    }

    /// Iterates over the pairs with a key in a range, sorted by key.
    pub fn range<R: RangeBounds<K>>(&self, range: R) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.places.range(range).map(|(key, place)| (key, &self.values[*place]))
    }

    /// Sets the value of a key. Returns the value that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.places.entry(key) {
            btree_map::Entry::Occupied(place) => {
                Some(std::mem::replace(&mut self.values[*place.get()], value))
            }
            btree_map::Entry::Vacant(place) => {
                place.insert(self.values.len());
                self.values.push(value);
                None
            }
        }
    }

    /// Removes the value of a key and returns it. This takes as long as reading all pairs.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let place = self.places.remove(key)?;
        let value = self.values.swap_remove(place);
        let moved = self.values.len();
        if let Some(last) = self.places.values_mut().find(|place| **place == moved) {
            *last = place;
        }
        Some(value)
    }

    /// Removes the pairs for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let pairs = std::mem::take(self).into_iter();
        self.extend(pairs.filter_map(|(key, mut value)| keep(&key, &mut value).then_some((key, value))));
    }

    /// Returns the entry of a key, to be filled where the map has no value for it.
    pub fn entry(&mut self, key: K) -> MapEntry<'_, K, V> {
        MapEntry { place: self.places.entry(key), values: &mut self.values }
    }
}

/// The entry of a key in a [`SortedMap`], which may have a value.
pub struct MapEntry<'a, K, V> {
    place: btree_map::Entry<'a, K, usize>,
    values: &'a mut Vec<V>,
}

impl<'a, K: Ord, V> MapEntry<'a, K, V> {
    /// Changes the value, where there is one.
    #[must_use]
    pub fn and_modify(self, change: impl FnOnce(&mut V)) -> Self {
        if let btree_map::Entry::Occupied(place) = &self.place {
            change(&mut self.values[*place.get()]);
        }
        self
    }

    /// Returns the value, where there is none after `value` was inserted.
    pub fn or_insert(self, value: V) -> &'a mut V {
        self.or_insert_with(|| value)
    }

    /// Returns the value, where there is none after the result of `value` was inserted.
    pub fn or_insert_with(self, value: impl FnOnce() -> V) -> &'a mut V {
        let place = match self.place {
            btree_map::Entry::Occupied(place) => *place.get(),
            btree_map::Entry::Vacant(place) => {
                self.values.push(value());
                *place.insert(self.values.len() - 1)
            }
        };
        &mut self.values[place]
    }

    /// Returns the value, where there is none after the result of `value` for the key was inserted.
    pub fn or_insert_with_key(self, value: impl FnOnce(&K) -> V) -> &'a mut V {
        let new = match &self.place {
            btree_map::Entry::Occupied(_) => None,
            btree_map::Entry::Vacant(place) => Some(value(place.key())),
        };
        self.or_insert_with(|| new.expect("a vacant entry"))
    }

    /// Returns the value, where there is none after the default was inserted.
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }
}

/// Iterates over the pairs of a [`SortedMap`], sorted by key.
pub struct MapPairs<'a, K, V> {
    places: btree_map::Iter<'a, K, usize>,
    values: &'a [V],
}

impl<K, V> Clone for MapPairs<'_, K, V> {
    fn clone(&self) -> Self {
        MapPairs { places: self.places.clone(), values: self.values }
    }
}

impl<'a, K, V> Iterator for MapPairs<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        self.places.next().map(|(key, place)| (key, &self.values[*place]))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for MapPairs<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.places.next_back().map(|(key, place)| (key, &self.values[*place]))
    }
}

impl<K, V> ExactSizeIterator for MapPairs<'_, K, V> {}

impl<K, V> FusedIterator for MapPairs<'_, K, V> {}

/// Iterates over the values of a [`SortedMap`], sorted by key.
pub struct MapValues<'a, K, V>(MapPairs<'a, K, V>);

impl<K, V> Clone for MapValues<'_, K, V> {
    fn clone(&self) -> Self {
        MapValues(self.0.clone())
    }
}

impl<'a, K, V> Iterator for MapValues<'a, K, V> {
    type Item = &'a V;

    fn next(&mut self) -> Option<&'a V> {
        self.0.next().map(|(_, value)| value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<'a, K, V> DoubleEndedIterator for MapValues<'a, K, V> {
    fn next_back(&mut self) -> Option<&'a V> {
        self.0.next_back().map(|(_, value)| value)
    }
}

impl<K, V> ExactSizeIterator for MapValues<'_, K, V> {}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        SortedMap::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SortedMap<K, V> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self).finish()
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for SortedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<K: Eq, V: Eq> Eq for SortedMap<K, V> {}

impl<K: PartialOrd, V: PartialOrd> PartialOrd for SortedMap<K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.iter().partial_cmp(other.iter())
    }
}

impl<K: Ord, V: Ord> Ord for SortedMap<K, V> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.iter().cmp(other.iter())
    }
}

impl<K: std::hash::Hash, V: std::hash::Hash> std::hash::Hash for SortedMap<K, V> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_usize(self.len());
        self.iter().for_each(|pair| pair.hash(state));
    }
}

/// Panics where the map has no value for the key.
impl<K: Borrow<Q> + Ord, Q: Ord + ?Sized, V> Index<&Q> for SortedMap<K, V> {
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("a value for the key")
    }
}

impl<K: Ord, V> Extend<(K, V)> for SortedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, pairs: I) {
        pairs.into_iter().for_each(|(key, value)| {
            self.insert(key, value);
        });
    }
}

/// Of several pairs with one key, the last one counts.
impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut map = SortedMap::new();
        map.extend(pairs);
        map
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for SortedMap<K, V> {
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        let mut values: Vec<Option<V>> = self.values.into_iter().map(Some).collect();
        let pairs = self.places.into_iter().filter_map(|(key, place)| Some((key, values[place].take()?)));
        pairs.collect::<Vec<_>>().into_iter()
    }
}

impl<'a, K, V> IntoIterator for &'a SortedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = MapPairs<'a, K, V>;

    fn into_iter(self) -> MapPairs<'a, K, V> {
        self.iter()
    }
}

impl<K: Serialize, V: Serialize> Serialize for SortedMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for SortedMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor(PhantomData))
    }
}

struct PairsVisitor<K, V>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for PairsVisitor<K, V> {
    type Value = SortedMap<K, V>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Self::Value, A::Error> {
        let mut map = SortedMap::new();
        while let Some((key, value)) = pairs.next_entry()? {
            map.insert(key, value);
        }
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Pcg;

    #[test]
    fn the_map_is_that_of_the_standard_library() {
        let mut pcg = Pcg::with_stream(1, 2);
        for length in 0..100 {
            let pairs: Vec<(u32, u32)> = (0..length).map(|value| (pcg.below(60), value)).collect();
            let mut expected: BTreeMap<u32, u32> = pairs.iter().copied().collect();
            let mut map: SortedMap<u32, u32> = pairs.iter().copied().collect();
            for (key, value) in &pairs {
                *map.entry(key / 2).and_modify(|old| *old += 1).or_insert_with_key(|key| key + 5) += value;
                *expected.entry(key / 2).and_modify(|old| *old += 1).or_insert_with_key(|key| key + 5) +=
                    value;
                assert_eq!(map.insert(key + 1, *value), expected.insert(key + 1, *value));
                assert_eq!(map.remove(&(value / 3)), expected.remove(&(value / 3)));
            }
            map.retain(|key, _| key % 7 != 0);
            expected.retain(|key, _| key % 7 != 0);
            map.iter_mut().for_each(|(key, value)| *value += key);
            expected.iter_mut().for_each(|(key, value)| *value += key);
            assert!(map.iter().eq(&expected));
            assert!(map.iter().rev().eq(expected.iter().rev()));
            assert!(map.values().eq(expected.values()) && map.keys().eq(expected.keys()));
            assert!(map.range(10..20).eq(expected.range(10..20)));
            assert_eq!(map.first_key_value(), expected.first_key_value());
            assert_eq!(map.last_key_value(), expected.last_key_value());
            assert_eq!(format!("{map:?}"), format!("{expected:?}"));
            assert!((0..70).all(|key| map.get(&key) == expected.get(&key)));
            assert_eq!(map.len(), expected.len());
            let text = serde_json::to_string(&map).expect("JSON");
            assert_eq!(text, serde_json::to_string(&expected).expect("JSON"));
            assert_eq!(serde_json::from_str::<SortedMap<u32, u32>>(&text).expect("a map"), map);
            assert!(map.into_iter().eq(expected));
        }
    }

    #[test]
    fn maps_are_equal_whatever_the_order_of_insertion() {
        assert_eq!(SortedMap::from([("a", 1), ("b", 2)]), SortedMap::from([("b", 2), ("a", 1)]));
        assert_ne!(SortedMap::from([("a", 1)]), SortedMap::from([("a", 2)]));
    }
}

//! The longest common subsequence of two lists.

/// The largest length of sequences that are compared line by line. Time and memory grow with the product of the
/// lengths.
const LONGEST: usize = 3000;

/// Returns a longest common subsequence as pairs of indices (Wagner and Fischer, "The string-to-string correction
/// problem", 1974). For sequences that are too long, returns only the common beginning and end.
pub(super) fn pairs<T: PartialEq>(first: &[T], second: &[T]) -> Vec<(usize, usize)> {
    let begin = first.iter().zip(second).take_while(|(a, b)| a == b).count();
    let (one, other) = (&first[begin..], &second[begin..]);
    let end = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[..one.len() - end], &other[..other.len() - end]);
    let mut pairs: Vec<(usize, usize)> = (0..begin).map(|at| (at, at)).collect();
    if one.len() <= LONGEST && other.len() <= LONGEST {
        let width = other.len() + 1;
        let mut lengths = vec![0_u16; (one.len() + 1) * width];
        for a in (0..one.len()).rev() {
            for b in (0..other.len()).rev() {
                lengths[a * width + b] = match one[a] == other[b] {
                    true => lengths[(a + 1) * width + b + 1] + 1,
                    false => lengths[(a + 1) * width + b].max(lengths[a * width + b + 1]),
                };
            }
        }
        let (mut a, mut b) = (0, 0);
        while a < one.len() && b < other.len() {
            if one[a] == other[b] {
                pairs.push((begin + a, begin + b));
                (a, b) = (a + 1, b + 1);
            } else if lengths[(a + 1) * width + b] >= lengths[a * width + b + 1] {
                a += 1;
            } else {
                b += 1;
            }
        }
    }
    let tail = (0..end).map(|at| (begin + one.len() + at, begin + other.len() + at));
    pairs.extend(tail);
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_lines_stand_beside_each_other() {
        let found = pairs(b"abcxdef", b"abyycdeg");
        assert_eq!(found, [(0, 0), (1, 1), (2, 4), (4, 5), (5, 6)]);
        assert_eq!(pairs::<u8>(b"", b"a"), []);
    }
}

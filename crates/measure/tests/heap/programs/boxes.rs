// Boxes, vectors and maps through Rust's system allocator.
use std::collections::HashMap;

fn main() {
    let mut map = HashMap::new();
    for i in 0..1000u32 {
        map.insert(i, vec![i; i as usize % 50]);
    }
    let boxes: Vec<Box<[u8; 77]>> = (0..500).map(|i| Box::new([i as u8; 77])).collect();
    std::hint::black_box((&map, &boxes));
}

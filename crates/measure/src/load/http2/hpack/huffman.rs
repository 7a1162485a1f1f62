//! Huffman coding of header strings (RFC 7541, section 5.2). The code is canonical, so the lengths of its codes
//! define it.

use scruple_stats::sorting;
use std::sync::LazyLock;

/// The length in bits of the code of each byte, and of the end-of-string symbol (RFC 7541, appendix B).
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The end-of-string symbol, which no string contains.
const END: u16 = 256;

/// The largest length in bits of codes that are looked up in a table.
const SHORT: u32 = 10;

const LONGEST: usize = 30;

struct HuffmanCode {
    codes: [u32; 257],
    /// The symbol and the length of its code, by the first bits of the code; the length is 0 if the code is longer.
    short: Vec<(u16, u8)>,
    /// For each length, the first code of that length, shifted to the upper end of 32 bits, and the index of its
    /// symbol.
    first: [(u32, usize); LONGEST + 2],
    symbols: Vec<u16>,
}

static CODE: LazyLock<HuffmanCode> = LazyLock::new(|| {
    let mut symbols: Vec<u16> = (0..=END).collect();
    sorting::by_key(&mut symbols, |symbol| LENGTHS[usize::from(*symbol)]);
    let mut code = HuffmanCode {
        codes: [0; 257],
        short: vec![(0, 0); 1 << SHORT],
        first: [(u32::MAX, 0); LONGEST + 2],
        symbols: Vec::new(),
    };
    let (mut next, mut length) = (0_u32, 0_u32);
    for (place, symbol) in symbols.iter().enumerate() {
        let own = u32::from(LENGTHS[usize::from(*symbol)]);
        next <<= own - length;
        for between in length + 1..=own {
            code.first[between as usize] = (next << (32 - own), place);
        }
        length = own;
        code.codes[usize::from(*symbol)] = next;
        if own <= SHORT {
            let from = (next << (SHORT - own)) as usize;
            code.short[from..from + (1 << (SHORT - own))].fill((*symbol, own as u8));
        }
        next += 1;
    }
    code.symbols = symbols;
    code
});

impl HuffmanCode {
    /// The symbol whose code begins these bits, and the length of the code.
    fn symbol(&self, bits: u32) -> (u16, u32) {
        let (symbol, length) = self.short[(bits >> (32 - SHORT)) as usize];
        if length > 0 {
            return (symbol, u32::from(length));
        }
        let longer = (SHORT as usize + 1..=LONGEST).find(|length| bits < self.first[length + 1].0);
        let length = longer.unwrap_or(LONGEST);
        let (first, place) = self.first[length];
        let offset = (bits.wrapping_sub(first) >> (32 - length)) as usize;
        (self.symbols.get(place + offset).copied().unwrap_or(END), length as u32)
    }
}

/// Appends the decoded text to `out`; `None` if it is malformed.
pub(super) fn decode(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let code = &*CODE;
    let (mut bits, mut held) = (0_u64, 0_u32);
    let mut rest = bytes.iter();
    loop {
        while held <= 56 {
            let Some(byte) = rest.next() else { break };
            bits |= u64::from(*byte) << (56 - held);
            held += 8;
        }
        let (symbol, length) = code.symbol((bits >> 32) as u32);
        if symbol == END || length > held {
            // The last byte is padded with ones, which begin the code of the end-of-string symbol.
            let filled = held == 0 || bits >> (64 - held) == (1 << held) - 1;
            return (held < 8 && filled).then_some(());
        }
        out.push(symbol as u8);
        bits <<= length;
        held -= length;
    }
}

/// The number of bytes that a text takes when coded.
pub(super) fn length(text: &[u8]) -> usize {
    text.iter().map(|byte| usize::from(LENGTHS[usize::from(*byte)])).sum::<usize>().div_ceil(8)
}

/// Appends the coded text to `out`.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let code = &*CODE;
    let (mut bits, mut held) = (0_u64, 0_u32);
    for byte in text {
        let length = u32::from(LENGTHS[usize::from(*byte)]);
        bits = bits << length | u64::from(code.codes[usize::from(*byte)]);
        held += length;
        while held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    if held > 0 {
        out.push((bits << (8 - held)) as u8 | ((1 << (8 - held)) - 1) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_and_every_symbol_is_known() {
        let all: Vec<u8> = (0..=255).collect();
        for text in [&all[..], b"", b"a", b"www.example.com", b"Mon, 21 Oct 2013 20:13:21 GMT"] {
            let (mut coded, mut back) = (Vec::new(), Vec::new());
            encode(text, &mut coded);
            assert_eq!(coded.len(), length(text));
            assert_eq!(decode(&coded, &mut back), Some(()));
            assert_eq!(back, text);
        }
        let mut coded = Vec::new();
        encode(b"www.example.com", &mut coded);
        // RFC 7541, C.4.1.
        assert_eq!(coded, [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff]);
    }

    #[test]
    fn an_end_in_the_middle_and_wrong_filling_are_malformed() {
        let decoded = |bytes: &[u8]| decode(bytes, &mut Vec::new());
        assert_eq!(decoded(&[0xff; 4]), None);
        assert_eq!(decoded(&[0xff]), None);
        assert_eq!(decoded(&[0b0001_1000]), None);
        assert_eq!(decoded(&[0b0001_1111]), Some(()));
    }
}

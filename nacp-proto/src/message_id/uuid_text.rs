//! The canonical text of a UUID, eight hex digits at a time in one word.

/// `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`
pub(super) const LEN: usize = 36;

/// The canonical text of 16 bytes.
#[inline]
pub(super) fn write(bytes: [u8; 16]) -> [u8; LEN] {
    let [a, b, c, d] = words(bytes).map(digits);
    let mut text = [b'-'; LEN];
    text[..8].copy_from_slice(&a);
    text[9..13].copy_from_slice(&b[..4]);
    text[14..18].copy_from_slice(&b[4..]);
    text[19..23].copy_from_slice(&c[..4]);
    text[24..28].copy_from_slice(&c[4..]);
    text[28..].copy_from_slice(&d);
    text
}

/// The 16 bytes whose canonical text this is; `None` if it is that of none.
#[inline]
pub(super) fn read(text: &[u8]) -> Option<[u8; 16]> {
    let text: &[u8; LEN] = text.try_into().ok()?;
    let (mut b, mut c) = ([0; 8], [0; 8]);
    b[..4].copy_from_slice(&text[9..13]);
    b[4..].copy_from_slice(&text[14..18]);
    c[..4].copy_from_slice(&text[19..23]);
    c[4..].copy_from_slice(&text[24..28]);
    let (a, d) = (text.first_chunk()?, text.last_chunk()?);
    let mut is_canonical = [text[8], text[13], text[18], text[23]] == *b"----";
    let mut bytes = [0; 16];
    for (word, text) in bytes.chunks_exact_mut(4).zip([a, &b, &c, d]) {
        let value = value(*text);
        // What is no digit, or a capital, does not come out again.
        is_canonical &= digits(value) == *text;
        word.copy_from_slice(&value);
    }
    is_canonical.then_some(bytes)
}

#[inline]
fn words(bytes: [u8; 16]) -> [[u8; 4]; 4] {
    let (words, _) = bytes.as_chunks();
    [words[0], words[1], words[2], words[3]]
}

/// The digits of four bytes.
#[inline]
fn digits(bytes: [u8; 4]) -> [u8; 8] {
    let word = u64::from(u32::from_le_bytes(bytes));
    let halves = (word | word << 16) & 0x0000_ffff_0000_ffff;
    let apart = (halves | halves << 8) & 0x00ff_00ff_00ff_00ff;
    let nibbles = (apart >> 4 & 0x000f_000f_000f_000f) | (apart & 0x000f_000f_000f_000f) << 8;
    let letters = (nibbles + EACH * 6) >> 4 & EACH;
    (nibbles + EACH * u64::from(b'0') + letters * u64::from(b'a' - b'0' - 10)).to_le_bytes()
}

/// The four bytes of these digits; anything of what are none.
#[inline]
fn value(digits: [u8; 8]) -> [u8; 4] {
    let text = u64::from_le_bytes(digits);
    let letters = text >> 6 & EACH;
    let nibbles = (text & (EACH * 0xf)) + letters * 9;
    let apart = (nibbles << 4 | nibbles >> 8) & 0x00ff_00ff_00ff_00ff;
    let halves = (apart | apart >> 8) & 0x0000_ffff_0000_ffff;
    ((halves | halves >> 16) as u32).to_le_bytes()
}

/// One in each byte.
const EACH: u64 = 0x0101_0101_0101_0101;

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{read, write};

    /// Every value of every byte, among others that change with it.
    fn samples() -> impl Iterator<Item = [u8; 16]> {
        (0..16).flat_map(|at| {
            (0..=255_u8).map(move |value| {
                let mut bytes = [value.wrapping_mul(31) ^ 0x5a; 16];
                bytes[at] = value;
                bytes
            })
        })
    }

    #[test]
    fn the_text_is_the_canonical_one_and_reads_back() {
        for bytes in samples() {
            let text = write(bytes);
            assert_eq!(
                text.as_slice(),
                Uuid::from_bytes(bytes).to_string().as_bytes()
            );
            assert_eq!(read(&text), Some(bytes));
        }
    }

    #[test]
    fn no_other_byte_at_any_place_is_read() {
        let text = write([0xa5; 16]);
        for at in 0..text.len() {
            for byte in 0..=255_u8 {
                let mut other = text;
                other[at] = byte;
                let is_digit = matches!(byte, b'0'..=b'9' | b'a'..=b'f');
                let is_canonical = if text[at] == b'-' {
                    byte == b'-'
                } else {
                    is_digit
                };
                assert_eq!(read(&other).is_some(), is_canonical, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn no_other_length_is_read() {
        let text = write([7; 16]);
        assert_eq!(read(&text[..35]), None);
        assert_eq!(read(&[&text[..], b"0"].concat()), None);
        assert_eq!(read(b""), None);
    }
}

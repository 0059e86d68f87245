//! CBOR heads in their shortest forms.

use bytes::{BufMut, BytesMut};

pub(crate) const UNSIGNED: u8 = 0x00;
pub(crate) const BYTES: u8 = 0x40;
pub(crate) const TEXT: u8 = 0x60;
pub(crate) const ARRAY: u8 = 0x80;
pub(crate) const MAP: u8 = 0xa0;

/// The longest head.
pub(crate) const MAX_HEAD: usize = 9;

#[inline]
pub(crate) fn head(out: &mut BytesMut, major: u8, argument: u64) {
    match argument {
        0..=23 => out.put_u8(major | argument as u8),
        24..=0xff => out.put_slice(&[major | 24, argument as u8]),
        0x100..=0xffff => {
            out.put_u8(major | 25);
            out.put_u16(argument as u16);
        }
        0x1_0000..=0xffff_ffff => {
            out.put_u8(major | 26);
            out.put_u32(argument as u32);
        }
        _ => {
            out.put_u8(major | 27);
            out.put_u64(argument);
        }
    }
}

#[inline]
pub(crate) fn text(out: &mut BytesMut, text: impl AsRef<[u8]>) {
    let text = text.as_ref();
    head(out, TEXT, text.len() as u64);
    out.put_slice(text);
}

#[inline]
pub(crate) fn boolean(out: &mut BytesMut, value: bool) {
    out.put_u8(0xf4 | u8::from(value));
}

/// Always the 64-bit form.
#[inline]
pub(crate) fn float(out: &mut BytesMut, value: f64) {
    out.put_u8(0xfb);
    out.put_f64(value);
}

/// 16 bytes as a text of 32 lower-case hex digits.
pub(crate) fn hex(out: &mut BytesMut, bytes: &[u8; 16]) {
    let mut buffer = [0; 32];
    text(
        out,
        uuid::Uuid::from_bytes(*bytes)
            .simple()
            .encode_lower(&mut buffer),
    );
}

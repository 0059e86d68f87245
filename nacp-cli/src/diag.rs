//! CBOR in diagnostic notation (RFC 8949, section 8): every detail of the bytes, for people.

use std::fmt::Write;

use ciborium_ll::{Decoder, Error, Header, simple};
use thiserror::Error;

/// Arrays, maps and tags in each other, as deep as the protocol lets them be.
const MAX_DEPTH: usize = 128;

/// Why bytes cannot be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum DiagError {
    #[error("no item begins or goes on with the byte at {at}")]
    Syntax { at: usize },
    #[error("the item is not complete after {at} bytes")]
    Truncated { at: usize },
    #[error("nested too deep at {at}")]
    TooDeep { at: usize },
}

/// Shows the first item of `cbor`, and says where it ends.
pub(crate) fn diag(cbor: &[u8]) -> Result<(String, usize), DiagError> {
    let mut writer = Writer {
        decoder: Decoder::from(cbor),
        out: String::new(),
        len: cbor.len(),
    };
    let header = writer.pull()?;
    writer.item(header, MAX_DEPTH)?;
    let end = writer.decoder.offset();
    Ok((writer.out, end))
}

struct Writer<'a> {
    decoder: Decoder<&'a [u8]>,
    out: String,
    len: usize,
}

impl Writer<'_> {
    fn pull(&mut self) -> Result<Header, DiagError> {
        self.decoder.pull().map_err(|error| fault(error, self.len))
    }

    fn item(&mut self, header: Header, depth: usize) -> Result<(), DiagError> {
        let at = self.decoder.offset();
        match header {
            Header::Positive(value) => self.put(value),
            Header::Negative(value) => self.put(-1 - i128::from(value)),
            Header::Float(float) => self.float(float),
            Header::Simple(simple::FALSE) => self.put("false"),
            Header::Simple(simple::TRUE) => self.put("true"),
            Header::Simple(simple::NULL) => self.put("null"),
            Header::Simple(simple::UNDEFINED) => self.put("undefined"),
            Header::Simple(value) => self.put(format_args!("simple({value})")),
            Header::Bytes(length) => self.bytes(length)?,
            Header::Text(length) => self.text(length)?,
            Header::Break => return Err(DiagError::Syntax { at }),
            Header::Tag(tag) => {
                self.put(format_args!("{tag}("));
                let inner = self.pull()?;
                self.item(inner, deeper(depth, at)?)?;
                self.put(")");
            }
            Header::Array(length) => self.list(length, "[", "]", deeper(depth, at)?, false)?,
            Header::Map(length) => self.list(length, "{", "}", deeper(depth, at)?, true)?,
        }
        Ok(())
    }

    fn list(
        &mut self,
        length: Option<usize>,
        open: &str,
        close: &str,
        depth: usize,
        is_map: bool,
    ) -> Result<(), DiagError> {
        self.put(open);
        if length.is_none() {
            self.put("_ ");
        }
        let mut index = 0;
        while length.is_none_or(|length| index < length) {
            let header = self.pull()?;
            if length.is_none() && header == Header::Break {
                break;
            }
            if index > 0 {
                self.put(", ");
            }
            self.item(header, depth)?;
            if is_map {
                self.put(": ");
                let value = self.pull()?;
                self.item(value, depth)?;
            }
            index += 1;
        }
        self.put(close);
        Ok(())
    }

    fn float(&mut self, float: f64) {
        if float.is_nan() {
            self.put("NaN");
        } else if float.is_infinite() {
            self.put(if float > 0.0 { "Infinity" } else { "-Infinity" });
        } else {
            self.put(format_args!("{float:?}"));
        }
    }

    fn bytes(&mut self, length: Option<usize>) -> Result<(), DiagError> {
        let mut chunks = Vec::new();
        let mut segments = self.decoder.bytes(length);
        let mut read = || -> Result<(), Error<std::io::Error>> {
            while let Some(mut segment) = segments.pull()? {
                let mut chunk = String::new();
                let mut buffer = [0; 1024];
                while let Some(bytes) = segment.pull(&mut buffer)? {
                    chunk.push_str(&hex::encode(bytes));
                }
                chunks.push(format!("h'{chunk}'"));
            }
            Ok(())
        };
        read().map_err(|error| fault(error, self.len))?;
        self.string(length, &chunks, "h''");
        Ok(())
    }

    fn text(&mut self, length: Option<usize>) -> Result<(), DiagError> {
        let mut chunks = Vec::new();
        let mut segments = self.decoder.text(length);
        let mut read = || -> Result<(), Error<std::io::Error>> {
            while let Some(mut segment) = segments.pull()? {
                let mut chunk = String::new();
                let mut buffer = [0; 1024];
                while let Some(text) = segment.pull(&mut buffer)? {
                    chunk.push_str(text);
                }
                chunks.push(serde_json::Value::from(chunk).to_string());
            }
            Ok(())
        };
        read().map_err(|error| fault(error, self.len))?;
        self.string(length, &chunks, "\"\"");
        Ok(())
    }

    fn string(&mut self, length: Option<usize>, chunks: &[String], empty: &str) {
        match (length, chunks) {
            (Some(_), []) => self.put(empty),
            (Some(_), chunks) => self.put(chunks.concat()),
            (None, chunks) => self.put(format_args!("(_ {})", chunks.join(", "))),
        }
    }

    fn put(&mut self, text: impl std::fmt::Display) {
        // Writing into a string does not fail.
        let _ = write!(self.out, "{text}");
    }
}

fn deeper(depth: usize, at: usize) -> Result<usize, DiagError> {
    depth.checked_sub(1).ok_or(DiagError::TooDeep { at })
}

fn fault(error: Error<std::io::Error>, len: usize) -> DiagError {
    match error {
        Error::Io(_) => DiagError::Truncated { at: len },
        Error::Syntax(at) => DiagError::Syntax { at },
    }
}

#[cfg(test)]
mod tests {
    use super::{DiagError, diag};

    fn shown(hex: &str) -> String {
        diag(&hex::decode(hex).unwrap()).unwrap().0
    }

    #[test]
    fn the_examples_of_rfc_8949_come_out_as_it_writes_them() {
        for (hex, notation) in [
            ("1bffffffffffffffff", "18446744073709551615"),
            ("3bffffffffffffffff", "-18446744073709551616"),
            ("c249010000000000000000", "2(h'010000000000000000')"),
            ("f90000", "0.0"),
            ("f98000", "-0.0"),
            ("f97e00", "NaN"),
            ("f97c00", "Infinity"),
            ("f7", "undefined"),
            ("f0", "simple(16)"),
            ("c11a514b67b0", "1(1363896240)"),
            ("44010203 04".replace(' ', "").as_str(), "h'01020304'"),
            ("62225c", r#""\"\\""#),
            ("5f42010243030405ff", "(_ h'0102', h'030405')"),
            ("7f657374726561646d696e67ff", r#"(_ "strea", "ming")"#),
            ("9f018202039f0405ffff", "[_ 1, [2, 3], [_ 4, 5]]"),
            ("bf61610161629f0203ffff", r#"{_ "a": 1, "b": [_ 2, 3]}"#),
            ("a201020304", "{1: 2, 3: 4}"),
        ] {
            assert_eq!(shown(hex), notation, "{hex}");
        }
    }

    #[test]
    fn depth_and_length_are_not_believed() {
        let deep = [0x81; 100_000];
        assert_eq!(diag(&deep), Err(DiagError::TooDeep { at: 129 }));
        assert_eq!(
            diag(&[0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            Err(DiagError::Truncated { at: 9 })
        );
    }
}

//! Reads CBOR into serde's types, the way the page of [`Payload`](super::Payload) tells.

mod access;
mod error;
mod number;
mod tagged;
mod typed_array;

use std::borrow::Cow;

use serde::de::{self, DeserializeOwned, Visitor};

use super::UINT8_ARRAY;
use crate::scan::{Head, Major, Scanner};

pub use error::PayloadReadError;

use access::Entries;
use error::unexpected;
use number::Number;
use tagged::Tagged;
use typed_array::TypedArray;

type Result<T> = std::result::Result<T, PayloadReadError>;

/// Reads one item that was scanned before, so that its depth is bounded.
pub(super) fn read<T: DeserializeOwned>(cbor: &[u8]) -> Result<T> {
    let mut reader = Reader {
        scanner: Scanner::new(cbor),
    };
    let value = T::deserialize(&mut reader)?;
    reader.scanner.finish()?;
    Ok(value)
}

struct Reader<'de> {
    scanner: Scanner<'de>,
}

impl<'de> Reader<'de> {
    /// The next head that is no tag.
    fn head(&mut self) -> Result<Head> {
        loop {
            let head = self.scanner.head()?;
            if !head.is(Major::Tag) {
                return Ok(head);
            }
        }
    }

    /// The next head, which stays where it is.
    fn peek(&self) -> Result<Head> {
        Ok(self.scanner.clone().head()?)
    }

    fn number(&mut self, expected: &dyn de::Expected) -> Result<Number> {
        Number::read(&mut self.scanner, expected)
    }

    fn unsigned<T: TryFrom<u128>>(&mut self, expected: &dyn de::Expected) -> Result<T> {
        let number = self.number(expected)?.unsigned(expected)?;
        T::try_from(number).map_err(|_| PayloadReadError::TooWide)
    }

    fn signed<T: TryFrom<i128>>(&mut self, expected: &dyn de::Expected) -> Result<T> {
        let number = self.number(expected)?.signed(expected)?;
        T::try_from(number).map_err(|_| PayloadReadError::TooWide)
    }

    fn text<V: Visitor<'de>>(&mut self, head: Head, visitor: V) -> Result<V::Value> {
        match self.scanner.string(head)? {
            Cow::Borrowed(text) => match std::str::from_utf8(text) {
                Ok(text) => visitor.visit_borrowed_str(text),
                Err(_) => Err(PayloadReadError::NotUtf8),
            },
            Cow::Owned(text) => match String::from_utf8(text) {
                Ok(text) => visitor.visit_string(text),
                Err(_) => Err(PayloadReadError::NotUtf8),
            },
        }
    }

    fn bytes<V: Visitor<'de>>(&mut self, head: Head, visitor: V) -> Result<V::Value> {
        match self.scanner.string(head)? {
            Cow::Borrowed(bytes) => visitor.visit_borrowed_bytes(bytes),
            Cow::Owned(bytes) => visitor.visit_byte_buf(bytes),
        }
    }

    fn seq<V: Visitor<'de>>(&mut self, head: Head, visitor: V) -> Result<V::Value> {
        let mut items = Entries::new(self, head);
        let value = visitor.visit_seq(&mut items)?;
        items.finish(value)
    }

    fn expect_seq<V: Visitor<'de>>(&mut self, head: Head, visitor: V) -> Result<V::Value> {
        if head.is(Major::Array) {
            self.seq(head, visitor)
        } else {
            Err(unexpected(head, &visitor))
        }
    }

    fn map<V: Visitor<'de>>(&mut self, head: Head, visitor: V) -> Result<V::Value> {
        let mut entries = Entries::new(self, head);
        let value = visitor.visit_map(&mut entries)?;
        entries.finish(value)
    }

    /// Behind a head that is no tag.
    fn any<V: Visitor<'de>>(&mut self, head: Head, visitor: V) -> Result<V::Value> {
        match head.major {
            Major::Unsigned => visitor.visit_u64(head.argument),
            Major::Negative => Number::negative(head.argument).visit(visitor),
            Major::Bytes => self.bytes(head, visitor),
            Major::Text => self.text(head, visitor),
            Major::Array => self.seq(head, visitor),
            Major::Map => self.map(head, visitor),
            Major::Simple | Major::Tag => match head.float() {
                Some(float) => visitor.visit_f64(float),
                None if head.is_nothing() => visitor.visit_unit(),
                None => match head.bool() {
                    Some(value) => visitor.visit_bool(value),
                    None => Err(unexpected(head, &"false, true, null or undefined")),
                },
            },
        }
    }

    fn any_tagged<V: Visitor<'de>>(&mut self, tag: u64, visitor: V) -> Result<V::Value> {
        if let Some(number) = Number::read_big(tag, &mut self.scanner)? {
            return number.visit(visitor);
        }
        let inner = self.peek()?;
        if tag == UINT8_ARRAY && inner.is(Major::Bytes) {
            let head = self.scanner.head()?;
            return self.bytes(head, visitor);
        }
        visitor.visit_enum(Tagged::new(self, Some(tag)))
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $read:ident),+ $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            let value = self.$read(&visitor)?;
            visitor.$visit(value)
        })+
    };
}

impl<'de> de::Deserializer<'de> for &mut Reader<'de> {
    type Error = PayloadReadError;

    integers! {
        deserialize_u8 visit_u8 unsigned,
        deserialize_u16 visit_u16 unsigned,
        deserialize_u32 visit_u32 unsigned,
        deserialize_u64 visit_u64 unsigned,
        deserialize_u128 visit_u128 unsigned,
        deserialize_i8 visit_i8 signed,
        deserialize_i16 visit_i16 signed,
        deserialize_i32 visit_i32 signed,
        deserialize_i64 visit_i64 signed,
        deserialize_i128 visit_i128 signed,
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let head = self.scanner.head()?;
        if head.is(Major::Tag) {
            self.any_tagged(head.argument, visitor)
        } else {
            self.any(head, visitor)
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let head = self.head()?;
        match head.bool() {
            Some(value) => visitor.visit_bool(value),
            None => Err(unexpected(head, &visitor)),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let value = self.number(&visitor)?.f32()?;
        visitor.visit_f32(value)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let value = self.number(&visitor)?.f64()?;
        visitor.visit_f64(value)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let head = self.head()?;
        if head.is(Major::Text) {
            self.text(head, visitor)
        } else {
            Err(unexpected(head, &visitor))
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let head = self.head()?;
        if head.is(Major::Bytes) {
            self.bytes(head, visitor)
        } else {
            self.expect_seq(head, visitor)
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if !self.peek()?.is_nothing() {
            return visitor.visit_some(self);
        }
        self.scanner.head()?;
        visitor.visit_none()
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let head = self.head()?;
        if head.is_nothing() {
            visitor.visit_unit()
        } else {
            Err(unexpected(head, &visitor))
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let mut tag = None;
        let mut head = self.scanner.head()?;
        while head.is(Major::Tag) {
            tag = Some(head.argument);
            head = self.scanner.head()?;
        }
        if !head.is(Major::Bytes) {
            return self.expect_seq(head, visitor);
        }
        let bytes = self.scanner.string(head)?;
        visitor.visit_seq(TypedArray::new(tag, &bytes)?)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let head = self.head()?;
        if head.is(Major::Map) {
            self.map(head, visitor)
        } else {
            Err(unexpected(head, &visitor))
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        if name == tagged::ENUM {
            return tagged::visit(self, visitor);
        }
        let before = self.scanner.clone();
        let head = self.head()?;
        if head.is(Major::Text) {
            self.scanner = before;
            return visitor.visit_enum(access::UnitVariant(self));
        }
        if !head.is(Major::Map) {
            return Err(unexpected(head, &visitor));
        }
        let mut entries = Entries::new(self, head);
        let value = visitor.visit_enum(&mut entries)?;
        entries.finish(value)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let head = self.head()?;
        if head.is(Major::Unsigned) {
            return visitor.visit_u64(head.argument);
        }
        if head.is(Major::Text) {
            self.text(head, visitor)
        } else {
            Err(unexpected(head, &visitor))
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.scanner.skip_item(crate::scan::MAX_DEPTH)?;
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

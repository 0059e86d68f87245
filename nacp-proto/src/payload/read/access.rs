//! The parts of arrays, maps and enums.

use serde::de::{self, DeserializeSeed, Visitor};

use super::{PayloadReadError, Reader, Result};
use crate::scan::Head;

/// The items of an array, or the entries of a map, that are still to come.
pub(super) struct Entries<'a, 'de> {
    reader: &'a mut Reader<'de>,
    head: Head,
    done: u64,
    ended: bool,
}

impl<'a, 'de> Entries<'a, 'de> {
    pub(super) fn new(reader: &'a mut Reader<'de>, head: Head) -> Self {
        Self {
            reader,
            head,
            done: 0,
            ended: false,
        }
    }

    fn more(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        self.ended = !self.reader.scanner.more(self.head, self.done)?;
        self.done += 1;
        Ok(!self.ended)
    }

    /// Gives `value` back if its visitor has taken everything.
    pub(super) fn finish<T>(mut self, value: T) -> Result<T> {
        if self.more()? {
            return Err(de::Error::custom("more items than expected"));
        }
        Ok(value)
    }

    fn left(&self) -> Option<usize> {
        if self.head.is_indefinite() {
            return None;
        }
        usize::try_from(self.head.argument.saturating_sub(self.done)).ok()
    }
}

impl<'de> de::SeqAccess<'de> for &mut Entries<'_, 'de> {
    type Error = PayloadReadError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if self.more()? {
            seed.deserialize(&mut *self.reader).map(Some)
        } else {
            Ok(None)
        }
    }

    fn size_hint(&self) -> Option<usize> {
        self.left()
    }
}

impl<'de> de::MapAccess<'de> for &mut Entries<'_, 'de> {
    type Error = PayloadReadError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if self.more()? {
            seed.deserialize(&mut *self.reader).map(Some)
        } else {
            Ok(None)
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        seed.deserialize(&mut *self.reader)
    }

    fn size_hint(&self) -> Option<usize> {
        self.left()
    }
}

/// A map of one entry: a variant with its content.
impl<'de> de::EnumAccess<'de> for &mut Entries<'_, 'de> {
    type Error = PayloadReadError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self)> {
        if !self.more()? {
            return Err(de::Error::custom("a map without the name of a variant"));
        }
        Ok((seed.deserialize(&mut *self.reader)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for &mut Entries<'_, 'de> {
    type Error = PayloadReadError;

    fn unit_variant(self) -> Result<()> {
        de::Deserialize::deserialize(&mut *self.reader)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value> {
        seed.deserialize(&mut *self.reader)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        de::Deserializer::deserialize_seq(&mut *self.reader, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        de::Deserializer::deserialize_map(&mut *self.reader, visitor)
    }
}

/// A text: the name of a variant without content.
pub(super) struct UnitVariant<'a, 'de>(pub(super) &'a mut Reader<'de>);

impl<'de> de::EnumAccess<'de> for UnitVariant<'_, 'de> {
    type Error = PayloadReadError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self)> {
        Ok((seed.deserialize(&mut *self.0)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for UnitVariant<'_, 'de> {
    type Error = PayloadReadError;

    fn unit_variant(self) -> Result<()> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value> {
        Err(without_content())
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value> {
        Err(without_content())
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value> {
        Err(without_content())
    }
}

fn without_content() -> PayloadReadError {
    de::Error::custom("the variant has no content")
}

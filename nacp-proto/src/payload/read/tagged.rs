//! Tags, in the form in which ciborium's `Value` and its types of `ciborium::tag` ask for them: as an
//! enum with reserved names.

use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor, value::StrDeserializer};

use super::{PayloadReadError, Reader, Result};
use crate::scan::Major;

/// The name of the enum by which a type asks for tags.
pub(super) const ENUM: &str = "@@TAG@@";
const TAGGED: &str = "@@TAGGED@@";
const UNTAGGED: &str = "@@UNTAGGED@@";

/// Shows the next item to a type that wants to see its tag.
pub(super) fn visit<'de, V: Visitor<'de>>(
    reader: &mut Reader<'de>,
    visitor: V,
) -> Result<V::Value> {
    let head = reader.peek()?;
    let tag = head.is(Major::Tag).then_some(head.argument);
    if tag.is_some() {
        reader.scanner.head()?;
    }
    visitor.visit_enum(Tagged::new(reader, tag))
}

/// An item behind its tag, or one without.
pub(super) struct Tagged<'a, 'de> {
    reader: &'a mut Reader<'de>,
    tag: Option<u64>,
}

impl<'a, 'de> Tagged<'a, 'de> {
    pub(super) fn new(reader: &'a mut Reader<'de>, tag: Option<u64>) -> Self {
        Self { reader, tag }
    }
}

impl<'de> de::EnumAccess<'de> for Tagged<'_, 'de> {
    type Error = PayloadReadError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self)> {
        let name = if self.tag.is_some() { TAGGED } else { UNTAGGED };
        let name: StrDeserializer<'_, PayloadReadError> = name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Tagged<'_, 'de> {
    type Error = PayloadReadError;

    fn unit_variant(self) -> Result<()> {
        de::Deserialize::deserialize(self.reader)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value> {
        seed.deserialize(self.reader)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        visitor.visit_seq(TagThenItem {
            reader: Some(self.reader),
            tag: self.tag,
        })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        de::Deserializer::deserialize_map(self.reader, visitor)
    }
}

struct TagThenItem<'a, 'de> {
    reader: Option<&'a mut Reader<'de>>,
    tag: Option<u64>,
}

impl<'de> de::SeqAccess<'de> for TagThenItem<'_, 'de> {
    type Error = PayloadReadError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if let Some(tag) = self.tag.take() {
            return seed.deserialize(tag.into_deserializer()).map(Some);
        }
        self.reader
            .take()
            .map(|reader| seed.deserialize(reader))
            .transpose()
    }
}

use std::str::FromStr;

use nacp::Notification;

use crate::escape::escaped;

/// Text with places for the parts of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Name,
    App,
    Pattern,
    Missed,
    Payload,
    /// A part of the payload, by a JSON pointer (RFC 6901).
    Pointer(String),
}

impl FromStr for Template {
    type Err = String;

    /// A brace is written twice to stand for itself.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            push_text(&mut parts, before);
            if from.starts_with("{{") || from.starts_with("}}") {
                push_text(&mut parts, &from[..1]);
                rest = &from[2..];
                continue;
            }
            let inside = from.strip_prefix('{').and_then(|from| from.split_once('}'));
            let (place, behind) = inside.ok_or("the template has a brace without its partner")?;
            parts.push(place_of(place)?);
            rest = behind;
        }
        push_text(&mut parts, rest);
        Ok(Self(parts))
    }
}

fn push_text(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        Some(Part::Text(before)) => before.push_str(text),
        _ if text.is_empty() => {}
        _ => parts.push(Part::Text(text.to_owned())),
    }
}

fn place_of(place: &str) -> Result<Part, String> {
    Ok(match place {
        "name" => Part::Name,
        "app" => Part::App,
        "pattern" => Part::Pattern,
        "missed" => Part::Missed,
        "payload" => Part::Payload,
        pointer if pointer.starts_with('/') => Part::Pointer(pointer.to_owned()),
        unknown => {
            return Err(format!(
                "the template has no place for `{}`",
                escaped(unknown)
            ));
        }
    })
}

impl Template {
    /// Texts of the payload come without quotes, and what is not there is empty.
    pub(super) fn fill(
        &self,
        event: &Notification,
        payload: &serde_json::Value,
        pattern: &str,
    ) -> String {
        let parts = self.0.iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Name => escaped(&event.name),
            Part::App => event.from.to_string(),
            Part::Pattern => escaped(pattern),
            Part::Missed => event
                .missed
                .map_or_else(String::new, |missed| missed.to_string()),
            Part::Payload => payload.to_string(),
            Part::Pointer(pointer) => payload.pointer(pointer).map_or_else(String::new, bare),
        });
        parts.collect()
    }
}

fn bare(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), escaped)
}

#[cfg(test)]
mod tests {
    use super::{Part, Template};

    #[test]
    fn places_and_text_alternate_and_double_braces_are_text() {
        let template: Template = "{{{name}}} {/a/b}!".parse().unwrap();
        let text = |text: &str| Part::Text(text.to_owned());
        let pointer = Part::Pointer("/a/b".to_owned());
        assert_eq!(
            template.0,
            [text("{"), Part::Name, text("} "), pointer, text("!")]
        );
    }

    #[test]
    fn what_is_no_place_is_refused() {
        assert!("{nmae}".parse::<Template>().is_err());
        assert!("{name".parse::<Template>().is_err());
        assert!("name}".parse::<Template>().is_err());
    }
}

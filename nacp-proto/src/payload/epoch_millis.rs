use ciborium::tag::Required;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

/// A moment in milliseconds since 1970, negative before: what JavaScript calls a `Date`.
///
/// In a payload it is CBOR's epoch date, tag 1 with seconds as an integer or a float. Reading rounds to
/// the nearest millisecond, also before 1970. In a format for people it is the plain number.
///
/// ```
/// use nacp_proto::{EpochMillis, Payload};
///
/// let payload = Payload::new(&EpochMillis(1_700_000_000_123))?;
/// assert_eq!(payload.decode::<EpochMillis>()?, EpochMillis(1_700_000_000_123));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Serializing fails beyond ±4.3 × 10^15, about 139 000 years from 1970, where a float of
/// seconds no longer holds a millisecond. Deserializing fails if there is no tag 1, for the `Date` that
/// JavaScript calls invalid, and for a moment that an `i64` does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a number with a unit")]
pub struct EpochMillis(pub i64);

impl EpochMillis {
    /// The float that holds the same moment in seconds, if it holds it.
    fn seconds(self) -> Option<f64> {
        let seconds = self.0 as f64 / 1000.0;
        (Self::from_seconds(seconds)? == self).then_some(seconds)
    }

    fn from_seconds(seconds: f64) -> Option<Self> {
        const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
        let millis = (seconds * 1000.0).round();
        (-TWO_TO_63..TWO_TO_63)
            .contains(&millis)
            .then_some(Self(millis as i64))
    }
}

impl Serialize for EpochMillis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return self.0.serialize(serializer);
        }
        // The reference reads an integer of 64 bits as a BigInt, of which it makes no Date.
        if self.0 % 1000 == 0
            && let Ok(seconds) = u32::try_from(self.0 / 1000)
        {
            return Required::<_, 1>(seconds).serialize(serializer);
        }
        match self.seconds() {
            Some(seconds) => Required::<_, 1>(seconds).serialize(serializer),
            None => Err(ser::Error::custom("the date is too far from 1970")),
        }
    }
}

impl<'de> Deserialize<'de> for EpochMillis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            return i64::deserialize(deserializer).map(Self);
        }
        let Required(seconds) = Required::<Seconds, 1>::deserialize(deserializer)?;
        let millis = match seconds {
            Seconds::Whole(seconds) => seconds.checked_mul(1000).map(Self),
            Seconds::Float(seconds) => Self::from_seconds(seconds),
        };
        millis.ok_or_else(|| de::Error::custom("no moment that 64 bits of milliseconds hold"))
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Whole(i64),
    Float(f64),
}

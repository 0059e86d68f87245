use std::time::Duration;

use crate::args::ProxyArgs;

/// What is wrong with the line at the moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Faults {
    pub(super) delay: Option<Duration>,
    /// Bytes a second.
    pub(super) slow: Option<u32>,
    pub(super) blackhole: bool,
    /// Grows with each cut of all connections.
    pub(super) cuts: u64,
    asked: Asked,
}

/// What was asked for, to be switched on again.
#[derive(Debug, Clone, Copy)]
struct Asked {
    delay: Duration,
    slow: u32,
}

/// What a key switches on if nothing was asked for.
const DELAY: Duration = Duration::from_millis(200);
const SLOW: u32 = 16_000;

impl Faults {
    pub(super) fn new(args: &ProxyArgs) -> Self {
        Self {
            delay: args.delay,
            slow: args.slow,
            blackhole: false,
            cuts: 0,
            asked: Asked {
                delay: args.delay.unwrap_or(DELAY),
                slow: args.slow.unwrap_or(SLOW),
            },
        }
    }

    /// What a key has done, in words.
    pub(super) fn press(&mut self, key: char) -> Option<String> {
        let switched = |is_on: bool| if is_on { "on" } else { "off" };
        Some(match key {
            'c' => {
                self.cuts += 1;
                "cut".to_owned()
            }
            'b' => {
                self.blackhole = !self.blackhole;
                format!("black hole {}", switched(self.blackhole))
            }
            'd' => {
                self.delay = self.delay.xor(Some(self.asked.delay));
                format!(
                    "delay of {:?} {}",
                    self.asked.delay,
                    switched(self.delay.is_some())
                )
            }
            's' => {
                self.slow = self.slow.xor(Some(self.asked.slow));
                format!(
                    "{} bytes a second {}",
                    self.asked.slow,
                    switched(self.slow.is_some())
                )
            }
            _ => return None,
        })
    }
}

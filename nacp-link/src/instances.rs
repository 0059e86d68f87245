use nacp_proto::Instance;

/// Instances of one app that a record was accepted for, one bit each.
pub(crate) type Takers = u8;

const SLOTS: usize = 7;
/// Stands for every start of an app that does not name its instance.
const NAMELESS: Takers = 1 << SLOTS;

/// The instances that an app has had lately. Two that live at once may take turns.
#[derive(Debug, Default)]
pub(crate) struct Instances {
    slots: [Option<Instance>; SLOTS],
    /// Where the next new one goes. A record that one before it was given to in that place counts
    /// as given to the new one, and so goes to nobody twice.
    next: usize,
    current: Option<usize>,
}

impl Instances {
    /// The app is this instance now.
    pub(crate) fn enter(&mut self, instance: Option<Instance>) {
        self.current = instance.map(|_| {
            let known = self.slots.iter().position(|slot| *slot == instance);
            known.unwrap_or_else(|| {
                let free = self.next;
                self.slots[free] = instance;
                self.next = (free + 1) % SLOTS;
                free
            })
        });
    }

    /// The present instance, as who takes a record.
    pub(crate) fn taker(&self) -> Takers {
        self.current.map_or(NAMELESS, |at| 1 << at)
    }

    /// The present instance among takers; none if it cannot be told from others.
    pub(crate) fn known(&self) -> Takers {
        self.taker() & !NAMELESS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(entered: &[Option<u8>]) -> Instances {
        let mut instances = Instances::default();
        for instance in entered {
            instances.enter(instance.map(|byte| Instance([byte; 16])));
        }
        instances
    }

    #[test]
    fn an_instance_that_returns_is_known_and_a_new_one_is_not() {
        let takers = after(&[Some(1)]).taker();
        assert_eq!(after(&[Some(1), Some(2), Some(1)]).known(), takers);
        assert_ne!(after(&[Some(1), Some(2), Some(3)]).known(), takers);
    }

    #[test]
    fn past_its_places_it_takes_a_new_instance_for_a_known_one_and_never_the_reverse() {
        let first = after(&[Some(0)]).taker();
        for count in 1..30 {
            let entered: Vec<_> = (0..=count).map(Some).collect();
            assert_eq!(after(&entered).known() == first, count % 7 == 0, "{count}");
        }
    }

    #[test]
    fn a_nameless_start_is_never_known() {
        let nameless = after(&[None]);
        assert_ne!(nameless.taker(), 0);
        assert_eq!(nameless.known(), 0);
        assert_eq!(nameless.taker() & after(&[None, Some(1)]).known(), 0);
    }
}

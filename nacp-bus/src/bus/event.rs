/// What a listener is called with.
#[derive(Debug)]
pub struct Event<'a, P> {
    name: &'a str,
    payload: &'a P,
}

impl<'a, P> Event<'a, P> {
    pub(super) fn new(name: &'a str, payload: &'a P) -> Self {
        Self { name, payload }
    }

    /// The name under which the event was emitted.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// What was emitted.
    #[must_use]
    pub fn payload(&self) -> &'a P {
        self.payload
    }
}

impl<P> Clone for Event<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Event<'_, P> {}

/// Whom an event reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emitted {
    called: usize,
    panicked: usize,
}

impl Emitted {
    pub(super) fn count(&mut self, was_called: bool) {
        self.called += usize::from(was_called);
    }

    pub(super) fn count_panic(&mut self) {
        self.called += 1;
        self.panicked += 1;
    }

    /// How many listeners were called, those that panicked included.
    #[must_use]
    pub fn called(self) -> usize {
        self.called
    }

    /// How many of them panicked.
    #[must_use]
    pub fn panicked(self) -> usize {
        self.panicked
    }
}

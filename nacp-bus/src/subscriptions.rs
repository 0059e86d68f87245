use std::borrow::Borrow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::Hash;
use std::num::NonZeroUsize;

use thiserror::Error;

use crate::ListenerId;

/// Who holds which subscriptions: by owner, and by the id that the owner gave to each.
///
/// Keyed by owner *and* id. Two subscriptions for one name are two entries, equal ids of two owners
/// have nothing to do with each other, and nobody removes what is not theirs. Taking out all
/// entries of one owner costs what that owner has, whatever the others hold.
///
/// The table ties things together but does nothing to them: `V` is what the entry stands for, by
/// default the [`ListenerId`] to switch off when the entry goes.
///
/// # Example
///
/// ```
/// use nacp_bus::{EventBus, Pattern, Subscriptions};
///
/// let bus = EventBus::<u32>::new();
/// let mut table = Subscriptions::new();
/// for (owner, id) in [("ann", 1), ("ann", 2), ("bob", 1)] {
///     let listener = bus.listen(&Pattern::parse("x:*")?, |_| {});
///     table.insert(owner, id, listener)?;
/// }
///
/// let gone = table.remove(&"ann", &1).into_iter().chain(table.remove_owner(&"bob").map(|e| e.1));
/// assert_eq!(bus.off_all(gone), 2);
/// assert_eq!(table.remove(&"ann", &1), None, "it is gone already");
/// assert_eq!((table.len(), bus.len()), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Subscriptions<Owner, Id, V = ListenerId> {
    owners: HashMap<Owner, HashMap<Id, V>>,
    len: usize,
    limit: NonZeroUsize,
}

/// Why [`Subscriptions::insert`] did not take an entry. Each gives the value back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InsertError<V> {
    /// The owner has an entry under this id already; that one stays.
    #[error("the owner has a subscription with this id already")]
    IdInUse(V),
    /// The owner has as many entries as one may have.
    #[error("the owner has as many subscriptions as the limit of {limit} allows")]
    LimitReached {
        /// What was to be inserted.
        value: V,
        /// The most entries one owner may have.
        limit: NonZeroUsize,
    },
}

impl<V> InsertError<V> {
    /// What was to be inserted.
    pub fn into_value(self) -> V {
        match self {
            Self::IdInUse(value) | Self::LimitReached { value, .. } => value,
        }
    }
}

impl<Owner, Id, V> Subscriptions<Owner, Id, V> {
    /// An empty table, without a limit.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(NonZeroUsize::MAX)
    }

    /// An empty table that takes at most `limit` entries from each owner.
    #[must_use]
    pub fn with_limit(limit: NonZeroUsize) -> Self {
        Self {
            owners: HashMap::new(),
            len: 0,
            limit,
        }
    }

    /// How many entries there are, of all owners.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many owners have entries.
    #[must_use]
    pub fn owner_count(&self) -> usize {
        self.owners.len()
    }

    /// Takes out all entries of all owners, in no particular order.
    pub fn drain(&mut self) -> impl Iterator<Item = V> + use<Owner, Id, V> {
        self.len = 0;
        let owners = std::mem::take(&mut self.owners);
        owners.into_values().flat_map(HashMap::into_values)
    }
}

impl<Owner: Eq + Hash, Id: Eq + Hash, V> Subscriptions<Owner, Id, V> {
    /// Adds an entry.
    ///
    /// # Errors
    ///
    /// [`InsertError::IdInUse`] if the owner has one with this id,
    /// [`InsertError::LimitReached`] if the owner may not have more. The table is as it was, and
    /// the value comes back.
    pub fn insert(&mut self, owner: Owner, id: Id, value: V) -> Result<(), InsertError<V>> {
        let limit = self.limit;
        let ids = self.owners.entry(owner).or_default();
        let count = ids.len();
        match ids.entry(id) {
            Entry::Occupied(_) => Err(InsertError::IdInUse(value)),
            Entry::Vacant(_) if count >= limit.get() => {
                Err(InsertError::LimitReached { value, limit })
            }
            Entry::Vacant(entry) => {
                entry.insert(value);
                self.len += 1;
                Ok(())
            }
        }
    }

    /// What the owner has under this id.
    #[must_use]
    pub fn get<O, I>(&self, owner: &O, id: &I) -> Option<&V>
    where
        Owner: Borrow<O>,
        Id: Borrow<I>,
        O: Eq + Hash + ?Sized,
        I: Eq + Hash + ?Sized,
    {
        self.owners.get(owner)?.get(id)
    }

    /// How many entries the owner has.
    #[must_use]
    pub fn count_of<O>(&self, owner: &O) -> usize
    where
        Owner: Borrow<O>,
        O: Eq + Hash + ?Sized,
    {
        self.owners.get(owner).map_or(0, HashMap::len)
    }

    /// Takes one entry out; `None` if the owner has none under this id.
    pub fn remove<O, I>(&mut self, owner: &O, id: &I) -> Option<V>
    where
        Owner: Borrow<O>,
        Id: Borrow<I>,
        O: Eq + Hash + ?Sized,
        I: Eq + Hash + ?Sized,
    {
        let ids = self.owners.get_mut(owner)?;
        let value = ids.remove(id)?;
        self.len -= 1;
        if ids.is_empty() {
            self.owners.remove(owner);
        }
        Some(value)
    }

    /// Takes out all entries of one owner, in no particular order.
    ///
    /// They are out when this returns, also if the iterator is not used.
    pub fn remove_owner<O>(
        &mut self,
        owner: &O,
    ) -> impl Iterator<Item = (Id, V)> + use<Owner, Id, V, O>
    where
        Owner: Borrow<O>,
        O: Eq + Hash + ?Sized,
    {
        let ids = self.owners.remove(owner).unwrap_or_default();
        self.len -= ids.len();
        ids.into_iter()
    }
}

impl<Owner, Id, V> Default for Subscriptions<Owner, Id, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Owner, Id, V> fmt::Debug for Subscriptions<Owner, Id, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriptions")
            .field("owners", &self.owner_count())
            .field("entries", &self.len)
            .field("limit", &self.limit)
            .finish()
    }
}

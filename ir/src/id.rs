//! Typed ids and the tables they index: one `u32` newtype per kind of entity, never a bare integer.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

/// A dense, typed index. Implemented by the [`id!`](macro@crate::id) macro only.
pub trait Id: Copy + Eq + Ord + fmt::Debug {
    /// The id of the entity at position `index`.
    ///
    /// # Panics
    /// When `index` does not fit in 32 bits.
    fn from_index(index: usize) -> Self;
    /// The position of this entity in its table.
    fn index(self) -> usize;
}

/// The representation every id shares: the index plus one, so that `Option<Id>` is four bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RawId(NonZeroU32);

impl RawId {
    /// Packs an index.
    pub fn new(index: usize) -> Self {
        let raw = u32::try_from(index + 1).expect("a table holds fewer than 2^32 - 1 entities");
        Self(NonZeroU32::new(raw).expect("index + 1 is not zero"))
    }

    /// The index that was packed.
    pub fn get(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Declares an id type. The prefix is its spelling in the text form: `id!(ValueId, "v")` prints `v7`.
#[macro_export]
macro_rules! id {
    ($(#[$meta:meta])* $name:ident, $prefix:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($crate::id::RawId);

        impl $name {
            /// The spelling of this kind of id in the text form, before the number.
            pub const PREFIX: &'static str = $prefix;
        }

        impl $crate::id::Id for $name {
            fn from_index(index: usize) -> Self {
                Self($crate::id::RawId::new(index))
            }
            fn index(self) -> usize {
                self.0.get()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}{}", $prefix, self.0.get())
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_u32(self.0.get() as u32)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let index = <u32 as serde::Deserialize>::deserialize(d)?;
                if index == u32::MAX {
                    return Err(serde::de::Error::custom("id out of range"));
                }
                Ok(Self($crate::id::RawId::new(index as usize)))
            }
        }
    };
}

/// Owns the entities of one kind; the only place that makes their ids.
#[derive(Clone, PartialEq, Eq)]
pub struct Table<I: Id, T> {
    rows: Vec<T>,
    marker: PhantomData<I>,
}

impl<I: Id, T> Table<I, T> {
    /// An empty table.
    pub fn new() -> Self {
        Self { rows: Vec::new(), marker: PhantomData }
    }

    /// Adds an entity and names it.
    pub fn push(&mut self, row: T) -> I {
        self.rows.push(row);
        I::from_index(self.rows.len() - 1)
    }

    /// The id that the next [`push`](Self::push) will return.
    pub fn next_id(&self) -> I {
        I::from_index(self.rows.len())
    }

    /// How many entities there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The entity, or `None` where the id belongs to another table.
    pub fn get(&self, id: I) -> Option<&T> {
        self.rows.get(id.index())
    }

    /// Ids in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.rows.len()).map(I::from_index)
    }

    /// Entities in id order, with their ids.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.rows.iter().enumerate().map(|(i, row)| (I::from_index(i), row))
    }

    /// Entities in id order, mutable, with their ids.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (I, &mut T)> + ExactSizeIterator {
        self.rows.iter_mut().enumerate().map(|(i, row)| (I::from_index(i), row))
    }

    /// Entities in id order.
    pub fn values(&self) -> std::slice::Iter<'_, T> {
        self.rows.iter()
    }
}

impl<I: Id, T> Default for Table<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> FromIterator<T> for Table<I, T> {
    fn from_iter<It: IntoIterator<Item = T>>(rows: It) -> Self {
        Self { rows: rows.into_iter().collect(), marker: PhantomData }
    }
}

impl<I: Id, T> Index<I> for Table<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.rows[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for Table<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.rows[id.index()]
    }
}

impl<I: Id, T: fmt::Debug> fmt::Debug for Table<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<I: Id, T: serde::Serialize> serde::Serialize for Table<I, T> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.rows.serialize(s)
    }
}

impl<'de, I: Id, T: serde::Deserialize<'de>> serde::Deserialize<'de> for Table<I, T> {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Vec::deserialize(d).map(|rows| Self { rows, marker: PhantomData })
    }
}

/// Attaches a fact to every entity of a table that someone else owns; entities without one read as the default. Two
/// tables are equal if every entity reads the same, whether its fact was set or not.
#[derive(Clone)]
pub struct SideTable<I: Id, T> {
    rows: Vec<T>,
    default: T,
    marker: PhantomData<I>,
}

impl<I: Id, T: Clone> SideTable<I, T> {
    /// A table in which every entity has the value `default`.
    pub fn new(default: T) -> Self {
        Self { rows: Vec::new(), default, marker: PhantomData }
    }

    /// Sets the fact of one entity.
    pub fn set(&mut self, id: I, value: T) {
        self[id] = value;
    }
}

impl<I: Id, T: PartialEq> PartialEq for SideTable<I, T> {
    fn eq(&self, other: &Self) -> bool {
        let len = self.rows.len().max(other.rows.len());
        self.default == other.default && (0..len).map(I::from_index).all(|id| self[id] == other[id])
    }
}

impl<I: Id, T: Eq> Eq for SideTable<I, T> {}

impl<I: Id, T: Clone + Default> Default for SideTable<I, T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<I: Id, T> Index<I> for SideTable<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        self.rows.get(id.index()).unwrap_or(&self.default)
    }
}

impl<I: Id, T: Clone> IndexMut<I> for SideTable<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        if self.rows.len() <= id.index() {
            self.rows.resize(id.index() + 1, self.default.clone());
        }
        &mut self.rows[id.index()]
    }
}

impl<I: Id, T: fmt::Debug> fmt::Debug for SideTable<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows.iter().enumerate();
        f.debug_map().entries(rows.map(|(i, row)| (I::from_index(i), row))).finish()
    }
}

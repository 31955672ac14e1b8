//! Attributes that are kept, as Python has them.

use hashbrown::hash_map::Entry;
use hashbrown::HashMap;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::checks::{self, deeper, each, member, pair, Room};
use crate::forgone::{Forgoing, HeldBack};
use crate::texts::{Sizes, Texts, Wanted};
use crate::wire::{text, Unusual, Usual};

/// The longest text, and the longest bytes, that are kept.
pub const LONGEST: usize = 1 << 20;

/// What makes Python's objects out of one request, and how much of it they take.
pub struct Making<'a, 'm, 'py> {
    pub py: Python<'py>,
    pub texts: &'a mut Texts,
    /// The long texts of this request by their bytes, and what each takes: what one span says its parent often repeats.
    pub long: HashMap<&'m [u8], (Bound<'py, PyString>, usize)>,
    pub sizes: &'a Sizes,
    /// Of the span that is being read, in bytes.
    pub size: usize,
}

impl<'m, 'py> Making<'_, 'm, 'py> {
    /// Reads attributes, or those that are wanted; None where there are none.
    ///
    /// What may be left out is held back: None stands for it.
    pub fn attributes(
        &mut self,
        pairs: &[&'m [u8]],
        wanted: Option<&Wanted>,
        room: &mut Room,
        mut held_back: Option<(&Forgoing, &mut HeldBack<'m>)>,
    ) -> Usual<Option<Bound<'py, PyDict>>> {
        let mut read: Option<Bound<'py, PyDict>> = None;
        let (mut count, mut characters) = (0, 0);
        for message in pairs {
            let (key, held) = pair(message)?;
            let known = match wanted {
                None => Some(self.texts.text(self.py, key)?),
                Some(wanted) => wanted.key(self.py, key, self.texts)?,
            };
            let Some(name) = known else {
                held.map_or(Ok(()), |held| checks::value(held, 0, room))?;
                continue;
            };
            ascii(key)?;
            let value = match &mut held_back {
                Some((forgoing, back)) if forgoing.may_leave_out(key) => {
                    back.let_go(key);
                    self.value_unless_text(key, held, room, back)?
                }
                _ => self.value(held, 0, room)?,
            };
            let mapping = read.get_or_insert_with(|| PyDict::new(self.py));
            mapping.set_item(name, value).map_err(|_| Unusual)?;
            if mapping.len() > count {
                count += 1; // of two equal keys the last counts, in the place of the first
                characters += key.len();
                if let Some((_, back)) = &mut held_back {
                    back.keys.push(key);
                }
            }
        }
        if read.is_some() {
            self.size += self.sizes.of_values(count, characters);
        }
        Ok(read)
    }

    /// Returns the value of an attribute; None for a text, which is held back.
    fn value_unless_text(
        &mut self,
        key: &'m [u8],
        message: Option<&'m [u8]>,
        room: &mut Room,
        back: &mut HeldBack<'m>,
    ) -> Usual<Bound<'py, PyAny>> {
        let held = message.map(member).transpose()?.flatten();
        let Some((1, content)) = held else {
            return self.value(message, 0, room);
        };
        let bytes = content.bytes()?;
        if bytes.len() > LONGEST {
            return Err(Unusual);
        }
        let held = text(bytes)?;
        self.size += self.sizes.of_text(held)?;
        back.hold(key, held);
        Ok(self.py.None().into_bound(self.py))
    }

    /// Returns the value of an attribute.
    fn value(
        &mut self,
        message: Option<&'m [u8]>,
        depth: u32,
        room: &mut Room,
    ) -> Usual<Bound<'py, PyAny>> {
        let Some(held) = message.map(member).transpose()?.flatten() else {
            return Ok(self.py.None().into_bound(self.py));
        };
        match held {
            (1, content) => self.string(content.bytes()?),
            (2, content) => Ok(PyBool::new(self.py, content.varint()? != 0)
                .to_owned()
                .into_any()),
            (3, content) => self.integer(content.varint()? as i64),
            (4, content) => self.float(f64::from_bits(content.fixed64()?)),
            (5, content) => self.array(content.bytes()?, deeper(depth)?, room),
            (6, content) => self.mapping(content.bytes()?, deeper(depth)?, room),
            (7, content) => self.bytes(content.bytes()?),
            _ => Err(Unusual),
        }
    }

    fn string(&mut self, bytes: &'m [u8]) -> Usual<Bound<'py, PyAny>> {
        if bytes.len() > LONGEST {
            return Err(Unusual);
        }
        let (made, size) = self.text(bytes)?;
        self.size += size;
        Ok(made.into_any())
    }

    /// Returns a text and what it takes: the one object of a short one, and of a long one in this request.
    pub fn text(&mut self, bytes: &'m [u8]) -> Usual<(Bound<'py, PyString>, usize)> {
        if bytes.len() > self.sizes.short {
            return match self.long.entry(bytes) {
                Entry::Occupied(known) => Ok(known.get().clone()),
                Entry::Vacant(place) => {
                    let held = text(bytes)?;
                    let made = PyString::new(self.py, held);
                    Ok(place.insert((made, self.sizes.of_text(held)?)).clone())
                }
            };
        }
        if let Some(kept) = self.texts.kept(self.py, bytes) {
            return Ok((kept, bytes.len()));
        }
        let held = text(bytes)?;
        let size = self.sizes.of_text(held)?;
        Ok((self.texts.made(self.py, held), size))
    }

    fn integer(&self, value: i64) -> Usual<Bound<'py, PyAny>> {
        Ok(PyInt::new(self.py, value).into_any())
    }

    fn float(&self, value: f64) -> Usual<Bound<'py, PyAny>> {
        if value.is_nan() {
            return Err(Unusual); // there is one object for all of them
        }
        Ok(PyFloat::new(self.py, value).into_any())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Usual<Bound<'py, PyAny>> {
        if bytes.len() > LONGEST {
            return Err(Unusual);
        }
        self.size += self.sizes.bytes + bytes.len();
        Ok(PyBytes::new(self.py, bytes).into_any())
    }

    fn array(
        &mut self,
        message: &'m [u8],
        depth: u32,
        room: &mut Room,
    ) -> Usual<Bound<'py, PyAny>> {
        let items = PyList::empty(self.py);
        each(message, room, |item, room| {
            let made = self.value(Some(item), depth, room)?;
            items.append(made).map_err(|_| Unusual)
        })?;
        self.size += items.len() * self.sizes.value;
        Ok(items.into_any())
    }

    fn mapping(
        &mut self,
        message: &'m [u8],
        depth: u32,
        room: &mut Room,
    ) -> Usual<Bound<'py, PyAny>> {
        let items = PyDict::new(self.py);
        let (mut count, mut distinct, mut characters) = (0, 0, 0);
        each(message, room, |item, room| {
            let (key, held) = pair(item)?;
            let name = self.texts.text(self.py, ascii(key)?)?;
            let made = self.value(held, depth, room)?;
            items.set_item(name, made).map_err(|_| Unusual)?;
            count += 1;
            if items.len() > distinct {
                distinct += 1;
                characters += key.len();
            }
            Ok(())
        })?;
        self.size += self.sizes.of_values(count, characters);
        Ok(items.into_any())
    }
}

/// Keys of other alphabets are hardly ever written, and what they take depends on what was done with them.
fn ascii(key: &[u8]) -> Usual<&[u8]> {
    if key.is_ascii() {
        Ok(key)
    } else {
        Err(Unusual)
    }
}

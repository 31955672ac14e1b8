//! Python's texts: one object for each short one that comes again and again, and what each takes in memory.

use hashbrown::HashMap;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::wire::{text, Unusual, Usual};

const MOST_KEPT: usize = 8_192;

/// What Python's objects take, as `sys.getsizeof` and `spanscore.otlp.kept_size` have it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Sizes {
    /// A text without characters whose widest is of so many bytes: ASCII, one, two, four.
    pub text: [usize; 4],
    pub bytes: usize,
    pub value: usize,
    pub event: usize,
    pub span: usize,
    /// The longest text that is kept as one object.
    pub short: usize,
    /// So many characters of names are in the size of a span.
    pub names: usize,
}

impl Sizes {
    /// Returns `sys.getsizeof` of a text.
    fn of(&self, text: &str) -> Usual<usize> {
        if text.is_ascii() {
            return Ok(self.text[0] + text.len());
        }
        let (chars, widest) = text.chars().fold((0, '\0'), |(count, widest), char| {
            (count + 1, widest.max(char))
        });
        match widest {
            _ if chars == 1 => Err(Unusual), // one object for all who ask, and it grows when it is encoded
            ..='\u{ff}' => Ok(self.text[1] + chars),
            ..='\u{ffff}' => Ok(self.text[2] + 2 * chars),
            _ => Ok(self.text[3] + 4 * chars),
        }
    }

    /// Returns what a text takes beside its place: nothing but its characters where it is short.
    #[inline(always)]
    pub fn of_text(&self, text: &str) -> Usual<usize> {
        if text.len() <= self.short && text.is_ascii() {
            Ok(text.len())
        } else {
            self.of(text)
        }
    }

    /// Returns what `count` values take beside what is in them, under keys of so many characters.
    pub fn of_values(&self, count: usize, characters: usize) -> usize {
        count * self.value + self.text[0] + characters
    }

    /// Returns what the names of a span take that do not fit into its size.
    pub fn of_names(&self, name: &str, status_message: &str, scope: &str) -> Usual<usize> {
        let names = [name, status_message, scope];
        if names.iter().map(|each| characters(each)).sum::<usize>() <= self.names {
            return Ok(0);
        }
        names.iter().map(|each| self.of(each)).sum()
    }
}

/// Returns how many characters a text has. Most are ASCII, which is told sooner.
pub fn characters(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    }
}

/// Texts by their bytes.
pub struct Texts {
    kept: HashMap<Box<[u8]>, Py<PyString>>,
    short: usize,
}

impl Texts {
    pub fn new(short: usize) -> Self {
        Texts {
            kept: HashMap::new(),
            short,
        }
    }

    /// Returns a text, as the one object of it where it is short and ASCII.
    #[inline(always)]
    pub fn text<'py>(&mut self, py: Python<'py>, bytes: &[u8]) -> Usual<Bound<'py, PyString>> {
        match self.kept(py, bytes) {
            Some(kept) => Ok(kept),
            None => Ok(self.made(py, text(bytes)?)),
        }
    }

    /// Returns a text that came before, which is short and ASCII.
    #[inline(always)]
    pub fn kept<'py>(&self, py: Python<'py>, bytes: &[u8]) -> Option<Bound<'py, PyString>> {
        if bytes.len() > self.short {
            return None;
        }
        self.kept.get(bytes).map(|kept| kept.bind(py).clone())
    }

    /// Returns a text that did not come before.
    pub fn made<'py>(&mut self, py: Python<'py>, text: &str) -> Bound<'py, PyString> {
        let made = PyString::new(py, text);
        if text.len() <= self.short && text.is_ascii() {
            if self.kept.len() >= MOST_KEPT {
                self.kept.clear();
            }
            self.kept
                .insert(text.as_bytes().into(), made.clone().unbind());
        }
        made
    }
}

/// The attributes that are wanted of spans that have a parent in their process.
pub struct Wanted {
    keys: HashMap<Box<[u8]>, Py<PyString>>,
    prefixes: Vec<Box<[u8]>>,
}

impl Wanted {
    pub fn new(py: Python<'_>, keys: Vec<String>) -> Self {
        let mut wanted = Wanted {
            keys: HashMap::new(),
            prefixes: vec![],
        };
        for key in keys {
            match key.strip_suffix('*') {
                Some(prefix) => wanted.prefixes.push(prefix.as_bytes().into()),
                None => {
                    wanted
                        .keys
                        .insert(key.as_bytes().into(), PyString::intern(py, &key).unbind());
                }
            }
        }
        wanted
    }

    /// Returns the key as a text, None where it is not wanted.
    #[inline(always)]
    pub fn key<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
        texts: &mut Texts,
    ) -> Usual<Option<Bound<'py, PyString>>> {
        if let Some(known) = self.keys.get(key) {
            return Ok(Some(known.bind(py).clone()));
        }
        if self.prefixes.iter().any(|prefix| key.starts_with(prefix)) {
            return texts.text(py, key).map(Some);
        }
        text(key).map(|_| None)
    }
}

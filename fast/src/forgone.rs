//! Texts that nothing will look at: they are left out before they are made.

use std::sync::Arc;

use hashbrown::HashMap;
use pyo3::prelude::*;
use pyo3::types::PyDict;

const MOST_SHAPES: usize = 4_096;
const LONGEST_SHAPE: usize = 2_048;

/// A key whose text is left out, but for one with any of these words: what Python answers for a shape of spans.
#[derive(FromPyObject)]
struct Forgone(String, Vec<String>);

/// What may be left out of which spans.
pub struct Forgoing {
    /// The keys that it is about.
    keys: Vec<Box<[u8]>>,
    /// Answers, for a scope, the name of a span and the keys of its attributes, which of these may be left out.
    ask: Py<PyAny>,
    known: HashMap<Box<[u8]>, Arc<[Forgone]>>,
}

impl Forgoing {
    pub fn new(keys: Vec<String>, ask: Py<PyAny>) -> Self {
        Forgoing {
            keys: keys
                .into_iter()
                .map(|key| key.into_bytes().into())
                .collect(),
            ask,
            known: HashMap::new(),
        }
    }

    pub fn may_leave_out(&self, key: &[u8]) -> bool {
        self.keys.iter().any(|known| **known == *key)
    }

    fn of_shape(
        &mut self,
        scope: &str,
        name: &str,
        attributes: &Bound<'_, PyDict>,
        keys: &[&[u8]],
    ) -> PyResult<Arc<[Forgone]>> {
        let mut shape = Vec::with_capacity(512);
        for part in [scope.as_bytes(), name.as_bytes()]
            .iter()
            .chain(keys.iter())
        {
            shape.extend_from_slice(&part.len().to_le_bytes());
            shape.extend_from_slice(part);
        }
        if let Some(known) = self.known.get(shape.as_slice()) {
            return Ok(known.clone());
        }
        let asked = self
            .ask
            .bind(attributes.py())
            .call1((scope, name, attributes.keys()))?;
        let found: Arc<[Forgone]> = asked.extract::<Vec<Forgone>>()?.into();
        if shape.len() <= LONGEST_SHAPE {
            if self.known.len() >= MOST_SHAPES {
                self.known.clear();
            }
            self.known.insert(shape.into(), found.clone());
        }
        Ok(found)
    }
}

/// The texts of one span that may be left out; in its attributes, None stands for each.
#[derive(Default)]
pub struct HeldBack<'a> {
    texts: Vec<(&'a [u8], &'a str)>,
    /// The keys of the attributes, in their order.
    pub keys: Vec<&'a [u8]>,
}

impl<'a> HeldBack<'a> {
    /// Holds a text back.
    pub fn hold(&mut self, key: &'a [u8], text: &'a str) {
        self.texts.push((key, text));
    }

    /// Forgets the text of a key that comes again: the last one counts.
    pub fn let_go(&mut self, key: &[u8]) {
        self.texts.retain(|(held, _)| *held != key);
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Returns of each text its key, itself, and whether it is to be kept.
    pub fn sorted_out(
        &self,
        forgoing: &mut Forgoing,
        scope: &str,
        name: &str,
        attributes: &Bound<'_, PyDict>,
    ) -> PyResult<Vec<(&'a [u8], &'a str, bool)>> {
        let forgone = forgoing.of_shape(scope, name, attributes, &self.keys)?;
        let is_kept = |key: &[u8], text: &str| {
            forgone
                .iter()
                .find(|each| each.0.as_bytes() == key)
                .is_none_or(|each| each.1.iter().any(|word| text.contains(word.as_str())))
        };
        Ok(self
            .texts
            .iter()
            .map(|&(key, text)| (key, text, is_kept(key, text)))
            .collect())
    }
}

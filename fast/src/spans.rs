//! Requests with spans: resources, scopes, and the spans below them.

use hashbrown::HashMap;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};

use crate::checks::{self, Room};
use crate::forgone::{Forgoing, HeldBack};
use crate::texts::{characters, Sizes, Texts, Wanted};
use crate::values::Making;
use crate::wire::{Content, Fields, Unusual, Usual};

const MOST_SPANS: usize = 8_192; // so many take some 20 ms, during which everybody else waits
const MOST_ATTRIBUTES: usize = 1_024; // of a span, an event, a link; the limits of the other decoder
const MOST_EVENTS: usize = 128;
const MOST_LINKS: usize = 1_024;
const MOST_VALUES: usize = 8_192; // of a span; half of what the other decoder takes
const MOST_IN_REQUEST: usize = 1 << 18; // a quarter of it
const PARENT_IS_REMOTE: u32 = 0x300;

/// What is given by the package whose spans are made.
pub struct Made {
    pub span: Py<PyAny>,
    pub event: Py<PyAny>,
    pub new: Py<PyAny>,
    pub empty: Py<PyAny>,
    pub unnamed: Py<PyAny>,
    /// Reads the bytes of a Resource: its attributes and how many values it has; None where something in it is unusual.
    pub resource: Py<PyAny>,
    pub sizes: Sizes,
    pub wanted: Option<Wanted>,
}

/// What is kept from request to request.
pub struct Kept {
    pub texts: Texts,
    pub forgoing: Option<Forgoing>,
}

/// The spans of a request, and what each takes.
pub type Decoded<'py> = (Vec<Bound<'py, PyAny>>, Vec<usize>);

/// Why there is nothing: it is for the other decoder, or Python has raised.
pub enum Stop {
    Unusual,
    Raised(PyErr),
}

impl From<Unusual> for Stop {
    fn from(_: Unusual) -> Self {
        Stop::Unusual
    }
}

impl From<PyErr> for Stop {
    fn from(error: PyErr) -> Self {
        Stop::Raised(error)
    }
}

/// Decodes an ExportTraceServiceRequest.
pub fn decode<'py>(
    py: Python<'py>,
    made: &Made,
    kept: &mut Kept,
    request: &[u8],
    most_spans: usize,
) -> Result<Decoded<'py>, Stop> {
    let making = Making {
        py,
        texts: &mut kept.texts,
        long: HashMap::new(),
        sizes: &made.sizes,
        size: 0,
    };
    let mut decoding = Decoding {
        made,
        making,
        forgoing: kept.forgoing.as_mut(),
        values: Room(MOST_IN_REQUEST),
        most_spans: most_spans.min(MOST_SPANS),
        around: Room(most_spans.min(MOST_SPANS)),
        trace_ids: HashMap::new(),
        parents: HashMap::new(),
        spans: vec![],
        sizes: vec![],
    };
    let mut fields = Fields::of(request);
    while let Some((number, content)) = fields.next()? {
        if number == 1 {
            decoding.resource_spans(content.bytes()?)?;
        }
    }
    Ok((decoding.spans, decoding.sizes))
}

struct Decoding<'a, 'm, 'py> {
    made: &'a Made,
    making: Making<'a, 'm, 'py>,
    forgoing: Option<&'a mut Forgoing>,
    values: Room,
    most_spans: usize,
    /// How many resources and scopes there may still be, with spans or without.
    around: Room,
    trace_ids: HashMap<[u8; 16], Bound<'py, PyBytes>>,
    parents: HashMap<[u8; 8], Bound<'py, PyBytes>>,
    spans: Vec<Bound<'py, PyAny>>,
    sizes: Vec<usize>,
}

impl<'m, 'py> Decoding<'_, 'm, 'py> {
    fn resource_spans(&mut self, message: &'m [u8]) -> Result<(), Stop> {
        self.around.take(1)?;
        let mut resource = None;
        let mut scopes = vec![];
        let mut fields = Fields::of(message);
        while let Some((number, content)) = fields.next()? {
            match number {
                1 => once(&mut resource, content.bytes()?)?,
                2 => scopes.push(content.bytes()?),
                3 => content.text().map(|_| ())?,
                _ => {}
            }
        }
        let bytes = PyBytes::new(self.making.py, resource.unwrap_or(b""));
        let read = self.made.resource.bind(self.making.py).call1((bytes,))?;
        let Some((attributes, values)) = read.extract::<Option<(Bound<'py, PyAny>, usize)>>()?
        else {
            return Err(Stop::Unusual);
        };
        self.values.take(values)?;
        for scope in scopes {
            self.scope_spans(scope, &attributes)?;
        }
        Ok(())
    }

    fn scope_spans(&mut self, message: &'m [u8], resource: &Bound<'py, PyAny>) -> Result<(), Stop> {
        self.around.take(1)?;
        let mut scope = None;
        let mut spans = vec![];
        let mut fields = Fields::of(message);
        while let Some((number, content)) = fields.next()? {
            match number {
                1 => once(&mut scope, content.bytes()?)?,
                2 => spans.push(content.bytes()?),
                3 => content.text().map(|_| ())?,
                _ => {}
            }
        }
        if self.spans.len() + spans.len() > self.most_spans {
            return Err(Stop::Unusual);
        }
        let name = self.scope_name(scope.unwrap_or(b""))?;
        let scope = PyString::new(self.making.py, name);
        for span in spans {
            self.span(span, resource, (name, &scope))?;
        }
        Ok(())
    }

    fn scope_name<'a>(&mut self, message: &'a [u8]) -> Usual<&'a str> {
        let mut name = None;
        let mut fields = Fields::of(message);
        while let Some((number, content)) = fields.next()? {
            match number {
                1 => once(&mut name, content.text()?)?,
                2 => content.text().map(|_| ())?,
                3 => {
                    self.values.take(1)?;
                    checks::key_value(content.bytes()?, 0, &mut self.values)?;
                }
                4 => content.small().map(|_| ())?,
                _ => return Err(Unusual),
            }
        }
        Ok(name.unwrap_or(""))
    }

    fn span(
        &mut self,
        message: &'m [u8],
        resource: &Bound<'py, PyAny>,
        (scope_name, scope): (&str, &Bound<'py, PyString>),
    ) -> Result<(), Stop> {
        let py = self.making.py;
        let parts = Parts::of(message)?;
        let trace_id: [u8; 16] = id(parts.trace_id)?;
        let span_id: [u8; 8] = id(parts.span_id)?;
        let parent = if parts.parent.is_empty() {
            None
        } else {
            Some(id::<8>(parts.parent)?)
        };
        let mut room = Room(MOST_VALUES);
        room.take(parts.attributes.len())?;
        self.making.size = self.making.sizes.span;
        // Of the root of a trajectory a configuration may match on any attribute.
        let is_root = parent.is_none() || parts.flags & PARENT_IS_REMOTE == PARENT_IS_REMOTE;
        let wanted = if is_root {
            None
        } else {
            self.made.wanted.as_ref()
        };
        let mut back = HeldBack::default();
        let forgoing = match &self.forgoing {
            // In events there may be what is looked for where an attribute is missing.
            Some(forgoing) if parent.is_some() && parts.events.is_empty() => Some(&**forgoing),
            _ => None,
        };
        let attributes = self.making.attributes(
            &parts.attributes,
            wanted,
            &mut room,
            forgoing.map(|forgoing| (forgoing, &mut back)),
        )?;
        let mut events = Vec::with_capacity(parts.events.len());
        for event in &parts.events {
            events.push(self.event(event, &mut room)?);
        }
        for link in &parts.links {
            check_link(link, &mut room)?;
        }
        self.values.take(MOST_VALUES - room.0)?;
        let name = if parts.name.is_empty() {
            self.made.unnamed.bind(py).clone()
        } else {
            self.making
                .texts
                .text(py, parts.name.as_bytes())?
                .into_any()
        };
        if let (Some(attributes), Some(forgoing), false) =
            (&attributes, &mut self.forgoing, back.is_empty())
        {
            // Not the name that is kept: a text that is looked into keeps its UTF-8 as well, in Python.
            let asked = if parts.name.is_empty() {
                name.cast::<PyString>().map_err(PyErr::from)?.to_str()?
            } else {
                parts.name
            };
            for (key, text, is_kept) in back.sorted_out(forgoing, scope_name, asked, attributes)? {
                let key = self.making.texts.text(py, key)?;
                if is_kept {
                    let (text, _) = self.making.text(text.as_bytes())?;
                    attributes.set_item(key, text)?;
                } else {
                    attributes.del_item(key)?;
                    self.making.size -= characters(text);
                }
            }
        }
        let message = parts.status_message;
        self.making.size += self
            .making
            .sizes
            .of_names(parts.name, message, scope_name)?;
        let trace_id = self
            .trace_ids
            .entry(trace_id)
            .or_insert_with(|| PyBytes::new(py, &trace_id))
            .clone();
        let parent = match parent {
            None => PyBytes::new(py, b""),
            Some(parent) => self
                .parents
                .entry(parent)
                .or_insert_with(|| PyBytes::new(py, &parent))
                .clone(),
        };
        let fields: [Bound<'py, PyAny>; 15] = [
            trace_id.into_any(),
            PyBytes::new(py, &span_id).into_any(),
            parent.into_any(),
            name,
            PyInt::new(py, parts.start).into_any(),
            PyInt::new(py, parts.end).into_any(),
            PyInt::new(py, parts.kind).into_any(),
            PyInt::new(py, parts.status_code).into_any(),
            PyString::new(py, message).into_any(),
            self.or_empty(attributes),
            PyTuple::new(py, events)?.into_any(),
            scope.clone().into_any(),
            resource.clone(),
            PyInt::new(py, parts.flags).into_any(),
            PyInt::new(py, parts.dropped).into_any(),
        ];
        let made = self
            .made
            .new
            .bind(py)
            .call1((self.made.span.bind(py), PyTuple::new(py, fields)?))?;
        self.spans.push(made);
        self.sizes.push(self.making.size);
        Ok(())
    }

    fn event(&mut self, message: &'m [u8], room: &mut Room) -> Result<Bound<'py, PyAny>, Stop> {
        let py = self.making.py;
        let (mut time, mut name, mut pairs) = (0, "", vec![]);
        let mut fields = Fields::of(message);
        while let Some((number, content)) = fields.next()? {
            match number {
                1 => time = content.fixed64()?,
                2 => name = content.text()?,
                3 => pairs.push(content.bytes()?),
                4 => content.small().map(|_| ())?,
                _ => return Err(Stop::Unusual),
            }
        }
        if pairs.len() > MOST_ATTRIBUTES {
            return Err(Stop::Unusual);
        }
        room.take(pairs.len())?;
        let attributes = self.making.attributes(&pairs, None, room, None)?;
        self.making.size += self.making.sizes.event + self.making.sizes.of_text(name)?;
        let fields = [
            PyString::new(py, name).into_any(),
            PyInt::new(py, time).into_any(),
            self.or_empty(attributes),
        ];
        Ok(self
            .made
            .new
            .bind(py)
            .call1((self.made.event.bind(py), PyTuple::new(py, fields)?))?)
    }

    fn or_empty(&self, attributes: Option<Bound<'py, PyDict>>) -> Bound<'py, PyAny> {
        attributes.map_or_else(
            || self.made.empty.bind(self.making.py).clone(),
            Bound::into_any,
        )
    }
}

/// The fields of a Span.
#[derive(Default)]
struct Parts<'a> {
    trace_id: &'a [u8],
    span_id: &'a [u8],
    parent: &'a [u8],
    name: &'a str,
    kind: u32,
    start: u64,
    end: u64,
    attributes: Vec<&'a [u8]>,
    dropped: u32,
    events: Vec<&'a [u8]>,
    links: Vec<&'a [u8]>,
    status_message: &'a str,
    status_code: u32,
    flags: u32,
}

impl<'a> Parts<'a> {
    fn of(message: &'a [u8]) -> Usual<Self> {
        let mut parts = Parts {
            attributes: Vec::with_capacity(16),
            ..Parts::default()
        };
        let mut status = None;
        let mut fields = Fields::of(message);
        while let Some((number, content)) = fields.next()? {
            match number {
                1 => parts.trace_id = content.bytes()?,
                2 => parts.span_id = content.bytes()?,
                3 => content.text().map(|_| ())?,
                4 => parts.parent = content.bytes()?,
                5 => parts.name = content.text()?,
                6 => parts.kind = content.small()?,
                7 => parts.start = content.fixed64()?,
                8 => parts.end = content.fixed64()?,
                9 => parts.attributes.push(content.bytes()?),
                10 => parts.dropped = content.small()?,
                11 => parts.events.push(content.bytes()?),
                12 | 14 => content.small().map(|_| ())?,
                13 => parts.links.push(content.bytes()?),
                15 => once(&mut status, content.bytes()?)?,
                16 => parts.flags = content.fixed32()?,
                _ => {} // a field of a later version of the protocol: skipped, as protobuf does
            }
        }
        let (attributes, events, links) = (
            parts.attributes.len(),
            parts.events.len(),
            parts.links.len(),
        );
        if attributes > MOST_ATTRIBUTES || events > MOST_EVENTS || links > MOST_LINKS {
            return Err(Unusual);
        }
        let mut fields = Fields::of(status.unwrap_or(b""));
        while let Some((number, content)) = fields.next()? {
            match number {
                2 => parts.status_message = content.text()?,
                3 => parts.status_code = content.small()?,
                _ => return Err(Unusual),
            }
        }
        Ok(parts)
    }
}

fn once<T>(place: &mut Option<T>, value: T) -> Usual<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Unusual), // protobuf merges them
    }
}

/// Returns an id, which is not all zeros.
fn id<const N: usize>(bytes: &[u8]) -> Usual<[u8; N]> {
    match <[u8; N]>::try_from(bytes) {
        Ok(id) if id.iter().any(|&byte| byte != 0) => Ok(id),
        _ => Err(Unusual),
    }
}

fn check_link(message: &[u8], room: &mut Room) -> Usual<()> {
    let mut fields = Fields::of(message);
    while let Some((number, content)) = fields.next()? {
        match number {
            1 => length(content, 16)?,
            2 => length(content, 8)?,
            3 => content.text().map(|_| ())?,
            4 => {
                room.take(1)?;
                checks::key_value(content.bytes()?, 0, room)?;
            }
            5 => content.small().map(|_| ())?,
            6 => content.fixed32().map(|_| ())?,
            _ => return Err(Unusual),
        }
    }
    Ok(())
}

fn length(content: Content<'_>, of_id: usize) -> Usual<()> {
    let length = content.bytes()?.len();
    if length == 0 || length == of_id {
        Ok(())
    } else {
        Err(Unusual)
    }
}

/// Returns the spans and their sizes as Python's lists.
pub fn as_lists<'py>(py: Python<'py>, decoded: Decoded<'py>) -> PyResult<Bound<'py, PyTuple>> {
    let (spans, sizes) = decoded;
    PyTuple::new(
        py,
        [
            PyList::new(py, spans)?.into_any(),
            PyList::new(py, sizes)?.into_any(),
        ],
    )
}

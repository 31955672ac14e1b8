//! Reads OTLP trace requests as senders write them, and nothing else: `spanscore.otlp.from_protobuf` is what says what a
//! request means. Whatever is unusual, wrong or large is left to it, the whole request.

mod checks;
mod forgone;
mod spans;
mod texts;
mod values;
mod wire;

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use forgone::Forgoing;
use spans::{as_lists, decode, Kept, Made, Stop};
use texts::{Sizes, Texts, Wanted};

/// Decodes requests, and keeps the texts that come again and again.
#[pyclass(frozen)]
struct Decoder {
    made: Made,
    kept: Mutex<Kept>,
}

#[pymethods]
impl Decoder {
    /// Args:
    ///     span, event, empty, unnamed: what spans are made of.
    ///     resource: reads the bytes of a Resource into attributes and the number of its values, or returns None where
    ///         something in it is unusual.
    ///     sizes: what Python's objects take in memory, in bytes.
    ///     wanted: the attributes to keep of spans that have a parent in their process; one that ends in `*` stands for
    ///         all that begin so; None keeps all.
    ///     forgone: the keys of texts that may be left out of such spans, and what answers for the scope, the name and
    ///         the keys of the attributes of a span with one of them, which these are: a list of keys, each with the
    ///         words of which a text that is kept has one. None leaves out nothing.
    #[new]
    #[pyo3(signature = (*, span, event, empty, unnamed, resource, sizes, wanted, forgone))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        span: Py<PyAny>,
        event: Py<PyAny>,
        empty: Py<PyAny>,
        unnamed: Py<PyAny>,
        resource: Py<PyAny>,
        sizes: Sizes,
        wanted: Option<Vec<String>>,
        forgone: Option<(Vec<String>, Py<PyAny>)>,
    ) -> PyResult<Self> {
        let new = py.get_type::<PyTuple>().getattr("__new__")?.unbind();
        let kept = Mutex::new(Kept {
            texts: Texts::new(sizes.short),
            forgoing: forgone.map(|(keys, ask)| Forgoing::new(keys, ask)),
        });
        let wanted = wanted.map(|keys| Wanted::new(py, keys));
        Ok(Decoder {
            made: Made {
                span,
                event,
                new,
                empty,
                unnamed,
                resource,
                sizes,
                wanted,
            },
            kept,
        })
    }

    /// Returns the spans of a serialized ExportTraceServiceRequest and the bytes that each takes, or None where it is
    /// not for this decoder: something in it is unusual, or it has more spans than that.
    fn decode<'py>(
        &self,
        py: Python<'py>,
        body: &[u8],
        most_spans: usize,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Ok(mut kept) = self.kept.try_lock() else {
            return Ok(None); // another thread is in the middle of a request
        };
        match decode(py, &self.made, &mut kept, body, most_spans) {
            Ok(decoded) => as_lists(py, decoded).map(Some),
            Err(Stop::Unusual) => Ok(None),
            Err(Stop::Raised(error)) => Err(error),
        }
    }
}

#[pymodule]
fn spanscore_fast(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Cargo writes 0.2.0-rc1, and Python 0.2.0rc1.
    module.add("__version__", env!("CARGO_PKG_VERSION").replace('-', ""))?;
    module.add_class::<Decoder>()
}

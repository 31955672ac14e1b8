//! Reads OTLP trace requests as senders write them, and nothing else: `spanscore.otlp.from_protobuf` is what says what a
//! request means. Whatever is unusual, wrong or large is left to it, the whole request.

mod checks;
mod spans;
mod texts;
mod values;
mod wire;

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use spans::{as_lists, decode, Made, Stop};
use texts::{Sizes, Texts, Wanted};

/// Decodes requests, and keeps the texts that come again and again.
#[pyclass(frozen)]
struct Decoder {
    made: Made,
    texts: Mutex<Texts>,
}

#[pymethods]
impl Decoder {
    /// Args:
    ///     span, event, empty, unnamed: what spans are made of.
    ///     resource: reads the bytes of a Resource into attributes, or returns None where something in it is unusual.
    ///     sizes: what Python's objects take in memory, in bytes.
    ///     wanted: the attributes to keep of spans that have a parent in their process; one that ends in `*` stands for
    ///         all that begin so; None keeps all.
    #[new]
    #[pyo3(signature = (*, span, event, empty, unnamed, resource, sizes, wanted))]
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
    ) -> PyResult<Self> {
        let new = py.get_type::<PyTuple>().getattr("__new__")?.unbind();
        let texts = Mutex::new(Texts::new(sizes.short));
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
            texts,
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
        let Ok(mut texts) = self.texts.try_lock() else {
            return Ok(None); // another thread is in the middle of a request
        };
        match decode(py, &self.made, &mut texts, body, most_spans) {
            Ok(decoded) => as_lists(py, decoded).map(Some),
            Err(Stop::Unusual) => Ok(None),
            Err(Stop::Raised(error)) => Err(error),
        }
    }
}

#[pymodule]
fn spanscore_fast(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Decoder>()
}

//! Models that others built: exported, loaded, restored by other names. One thread at a time uses a model.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use dtg_sys as sys;

use crate::error::{Error, ErrorKind, Result, check};
use crate::graph::Value;
use crate::handle::{Handle, Texts, given, string};
use crate::model::Model;
use crate::runtime::Runtime;
use crate::session::Session;
use crate::tensor::Tensor;

/// What of a model is saved for those who do not know how it was built, by names of one's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Export<'a> {
    /// What is fed, such as placeholders; any value will do, the graph is cut off there.
    pub inputs: &'a [(&'a str, Value)],
    /// What is fetched, or a target such as [`Training::train`](crate::Training::train), for a model that is to be trained on.
    pub outputs: &'a [(&'a str, Value)],
    /// Variables become constants, for serving only.
    pub freeze: bool,
}

/// What of a file goes where; write `..Default::default()` for what is not said.
#[derive(Debug, Clone, Copy, Default)]
pub struct RestoreOptions<'a> {
    /// What variables of the model are called in the file. Two names that end with `/` stand for all that begin so:
    /// `("encoder/", "bert/encoder/")`; `""` beside such a one is the root, all names: `("", "bert/")` or `("bert/", "")`. A whole
    /// name counts before the longest beginning.
    pub names: &'a [(&'a str, &'a str)],
    /// What fits is taken; otherwise a variable that finds nothing of its type and shape is an error, and nothing is assigned.
    pub partial: bool,
}

/// Names and values.
fn endpoints(of: &[(&str, Value)]) -> Result<(Texts, Vec<Value>)> {
    let names = Texts::new(of.iter().map(|(name, _)| name), "the name")?;
    Ok((names, of.iter().map(|(_, value)| *value).collect()))
}

/// The pairs as a JSON object; nothing for none.
pub(crate) fn names_json(names: &[(&str, &str)]) -> String {
    fn text(out: &mut String, name: &str) {
        out.push('"');
        for c in name.chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                c if c < ' ' => {
                    let _ = write!(out, "\\u{:04x}", u32::from(c)); // a String takes all
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
    let mut out = String::new();
    for (here, there) in names {
        out.push(if out.is_empty() { '{' } else { ',' });
        text(&mut out, here);
        out.push(':');
        text(&mut out, there);
    }
    if !out.is_empty() {
        out.push('}');
    }
    out
}

impl Model {
    /// Writes one file with all that it takes to compute the outputs from the inputs: the part of the graph that leads there, the values that
    /// its variables have in a session, and the metadata. [`Model::load`] reads it. Errors: `InvalidArgument` (no outputs),
    /// `FailedPrecondition` (an output needs a placeholder that is no input, which is named; a frozen variable is not only read; one
    /// without value), those of a run and of the disk.
    pub fn export(&self, session: &Session, path: impl AsRef<Path>, what: &Export<'_>) -> Result<()> {
        let path = path.as_ref().as_os_str().as_bytes();
        let (input_names, fed) = endpoints(what.inputs)?;
        let (output_names, fetched) = endpoints(what.outputs)?;
        let raw = sys::dtg_export {
            input_names: input_names.as_ptr(),
            inputs: Value::raw(&fed),
            num_inputs: fed.len(),
            output_names: output_names.as_ptr(),
            outputs: Value::raw(&fetched),
            num_outputs: fetched.len(),
            freeze: what.freeze.into(),
            ..sys::dtg_export::INIT
        };
        // SAFETY: an open model and session, a struct whose arrays outlive the call, a text with its length.
        unsafe { check(sys::dtg_model_export(self.raw(), session.raw(), &raw, path.as_ptr().cast(), path.len())) }
    }

    /// A model that [`Model::export`] wrote, over a graph of its own, and a local session in which its variables have their values. Errors:
    /// `NotFound`, `DataLoss` (cut, damaged, or no exported model), `Unimplemented` (of a later release), `ResourceExhausted`.
    ///
    /// ```no_run
    /// use dtg::{Model, Tensor};
    ///
    /// let (model, session) = Model::load("model.dtg")?;
    /// let (x, y) = (model.endpoint("x")?, model.endpoint("y")?);
    /// let answer = session.run().feed(x, &Tensor::from_slice(&[1, 2], &[1.0f32, 2.0])?).fetch(y).call()?;
    /// # let _ = answer;
    /// # Ok::<(), dtg::Error>(())
    /// ```
    pub fn load(path: impl AsRef<Path>) -> Result<(Self, Session)> {
        Self::load_in(&Runtime::default(), path)
    }

    /// As [`Model::load`], over the ops and under the memory limit of a runtime.
    pub fn load_in(runtime: &Runtime, path: impl AsRef<Path>) -> Result<(Self, Session)> {
        let path = path.as_ref().as_os_str().as_bytes();
        let mut session = null_mut();
        // SAFETY: an open runtime or NULL; a text with its length; both answers are ours.
        let model = unsafe {
            Handle::create(|out| sys::dtg_model_load(runtime.raw(), path.as_ptr().cast(), path.len(), &mut session, out))
        }?;
        // SAFETY: where the model was given, so was the session.
        let session = unsafe { Handle::adopt(session) }
            .ok_or_else(|| Error::found(ErrorKind::Internal, "libdtg loaded a model and gave no session; please report it"))?;
        Ok((Self::adopt(model)?, Session::adopt(session)))
    }

    /// The input or output of that name of a model that was loaded. Errors: `NotFound`, with the names that there are.
    pub fn endpoint(&self, name: &str) -> Result<Value> {
        let mut out = Value::NONE;
        // SAFETY: an open model, a text with its length.
        unsafe { check(sys::dtg_model_endpoint(self.raw(), name.as_ptr().cast(), name.len(), &mut out)) }?;
        Ok(Value(out))
    }

    /// All of them as JSON: `{"inputs": [{"name", "dtype", "shape"}], "outputs": [...]}`.
    pub fn endpoints(&self) -> Result<String> {
        let model = self.raw();
        // SAFETY: an open model.
        unsafe { string(|out| sys::dtg_model_endpoints(model, out)) }
    }

    /// Says what the classes are called that an output tells apart, in the order of their numbers, where no schema of the training data does.
    /// `output` is its name in the exported file; `""`: all that have so many classes. Names for an output that a fit or an export then does not
    /// have are told by a warning. Errors: `InvalidArgument` (no names, or one twice; an output that is known and does not tell so many apart).
    pub fn set_classes<S: AsRef<str>>(&self, output: &str, names: &[S]) -> Result<()> {
        let names = Texts::new(names.iter().map(AsRef::as_ref), "the name of a class")?;
        // SAFETY: an open model, a text with its length, and texts that live through the call.
        unsafe { check(sys::dtg_model_set_classes(self.raw(), output.as_ptr().cast(), output.len(), names.or_null(), names.len())) }
    }

    /// Those names, so that what a model predicts can be said in words: name i is that of class i. `output` is one of a model that was loaded;
    /// `""` asks for what is said for all, of any model. A fit on a file whose label is of names keeps them by itself. Errors: `NotFound` (no
    /// such output; nobody has named its classes, or it does not tell so many apart).
    ///
    /// ```no_run
    /// # use dtg::Model;
    /// let (model, _session) = Model::load("run/model.dtg")?;
    /// for (number, name) in model.classes("output")?.iter().enumerate() {
    ///     println!("{number}: {name}");
    /// }
    /// # Ok::<(), dtg::Error>(())
    /// ```
    pub fn classes(&self, output: &str) -> Result<Vec<String>> {
        let model = self.raw();
        // SAFETY: an open model, a text with its length.
        let names = unsafe { Handle::create(|out| sys::dtg_model_classes(model, output.as_ptr().cast(), output.len(), out)) }?;
        Tensor::adopt(names).to_strings()
    }

    /// [`Model::restore`] with names that differ, or for a part of the variables; the others keep what they have. What became of it is
    /// JSON: path, variables, missing, extra, reshaped; `.parse::<RestoreReport>()` has them as fields. Errors: `FailedPrecondition` names all variables that do not fit, `NotFound` (no
    /// file, or a rule that no variable meets), `DataLoss`.
    pub fn restore_from(&self, session: &Session, path: impl AsRef<Path>, options: &RestoreOptions<'_>) -> Result<String> {
        let path = path.as_ref().as_os_str().as_bytes();
        let names = names_json(options.names);
        let raw = sys::dtg_restore {
            names: given(names.as_bytes()).0,
            names_len: names.len(),
            partial: options.partial.into(),
            ..sys::dtg_restore::INIT
        };
        let model = self.raw();
        let (text, length) = (path.as_ptr().cast(), path.len());
        // SAFETY: an open model, an open session, a struct whose text outlives the call, a text with its length.
        unsafe { string(|out| sys::dtg_model_restore_from(model, session.raw(), text, length, &raw, out)) }
    }
}

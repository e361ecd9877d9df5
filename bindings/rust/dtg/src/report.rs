//! What became of a restore, read from the text that the library gives. Plain data; any thread.

use std::iter::Peekable;
use std::str::{Chars, FromStr};

use crate::error::{Error, ErrorKind, Result};

/// What became of [`Model::restore_from`](crate::Model::restore_from), or of [`Checkpoint::resume`](crate::Checkpoint::resume) and
/// [`restore`](crate::Checkpoint::restore), out of their report. What a report does not have is left empty.
///
/// ```
/// use dtg::RestoreReport;
///
/// let text = r#"{"path":"old.safetensors","variables":3,"missing":["head/bias"],"extra":[],"reshaped":[]}"#;
/// let report: RestoreReport = text.parse()?; // or model.restore_from(&session, path, &options)?.parse()?
/// assert_eq!((report.variables, &report.missing[..]), (3, &["head/bias".to_owned()][..]));
/// # Ok::<(), dtg::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Of a checkpoint: "started", "kept" or "restored".
    pub outcome: String,
    /// Of the file or the set.
    pub path: String,
    /// Of a checkpoint: how far training is, 0 for a start.
    pub step: i64,
    /// How many have their values now.
    pub variables: usize,
    /// Of a checkpoint: why newer sets were not taken.
    pub passed_over: Vec<String>,
    /// Variables that are not in it.
    pub missing: Vec<String>,
    /// What is in it, and no variable asked for.
    pub extra: Vec<String>,
    /// Variables that are of another type or shape there.
    pub reshaped: Vec<String>,
    /// Of a checkpoint: what else is worth knowing.
    pub notes: Vec<String>,
}

impl FromStr for RestoreReport {
    type Err = Error;

    /// Reads a report. What later releases add to it is passed over. Errors: `InvalidArgument` for a text that is none.
    fn from_str(text: &str) -> Result<Self> {
        let mut report = Self::default();
        Scanner(text.chars().peekable()).object(&mut report).ok_or_else(|| {
            let shown: String = text.chars().take(60).collect();
            Error::found(ErrorKind::InvalidArgument, format!("read the report of a restore: {shown:?} is none; give it as it came"))
        })?;
        Ok(report)
    }
}

enum Value {
    Text(String),
    Number(i64),
    Texts(Vec<String>),
}

/// The JSON of reports: one object of texts, whole numbers and lists of texts. None: it is something else.
struct Scanner<'a>(Peekable<Chars<'a>>);

impl Scanner<'_> {
    fn object(mut self, report: &mut RestoreReport) -> Option<()> {
        self.list('{', '}', |scanner| {
            let key = scanner.text()?;
            scanner.expect(':')?;
            match (key.as_str(), scanner.value()?) {
                ("outcome", Value::Text(text)) => report.outcome = text,
                ("path", Value::Text(text)) => report.path = text,
                ("step", Value::Number(number)) => report.step = number,
                ("variables", Value::Number(number)) => report.variables = usize::try_from(number).ok()?,
                ("passed_over", Value::Texts(texts)) => report.passed_over = texts,
                ("missing", Value::Texts(texts)) => report.missing = texts,
                ("extra", Value::Texts(texts)) => report.extra = texts,
                ("reshaped", Value::Texts(texts)) => report.reshaped = texts,
                ("notes", Value::Texts(texts)) => report.notes = texts,
                _ => {}
            }
            Some(())
        })?;
        self.blanks();
        self.0.next().is_none().then_some(())
    }

    fn blanks(&mut self) {
        while self.0.next_if(char::is_ascii_whitespace).is_some() {}
    }

    fn expect(&mut self, wanted: char) -> Option<()> {
        self.blanks();
        self.0.next_if_eq(&wanted).map(|_| ())
    }

    fn value(&mut self) -> Option<Value> {
        self.blanks();
        match self.0.peek()? {
            '"' => self.text().map(Value::Text),
            '[' => {
                let mut texts = Vec::new();
                self.list('[', ']', |scanner| {
                    texts.push(scanner.text()?);
                    Some(())
                })?;
                Some(Value::Texts(texts))
            }
            _ => {
                let digits: String = std::iter::from_fn(|| self.0.next_if(|c| *c == '-' || c.is_ascii_digit())).collect();
                digits.parse().ok().map(Value::Number)
            }
        }
    }

    /// What stands between two brackets, with commas between.
    fn list(&mut self, open: char, close: char, mut each: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.expect(open)?;
        if self.expect(close).is_some() {
            return Some(());
        }
        loop {
            each(self)?;
            if self.expect(',').is_none() {
                return self.expect(close);
            }
        }
    }

    fn text(&mut self) -> Option<String> {
        self.expect('"')?;
        let mut units = Vec::new(); // of UTF-16, as escapes are
        let mut room = [0; 2];
        loop {
            match self.0.next()? {
                '"' => return String::from_utf16(&units).ok(),
                '\\' => units.push(self.escaped()?),
                c => units.extend_from_slice(c.encode_utf16(&mut room)),
            }
        }
    }

    fn escaped(&mut self) -> Option<u16> {
        Some(match self.0.next()? {
            'n' => 0x0a,
            't' => 0x09,
            'r' => 0x0d,
            'b' => 0x08,
            'f' => 0x0c,
            'u' => {
                let digits: String = self.0.by_ref().take(4).collect();
                u16::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4)?
            }
            c @ ('"' | '\\' | '/') => c as u16,
            _ => return None,
        })
    }
}

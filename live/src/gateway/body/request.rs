//! What a JSON body says, and where in it.

use std::ops::Range;

use bytes::Bytes;
use windtunnel_core::{Capability, Needs};

use super::{
    edit::{Edit, With},
    scan::{Found, Scanner, Seen, Sort, Written, Wrong},
};
use crate::gateway::{
    ask::{Asked, BadAsk, Spelling},
    batches::Encoding,
};

/// A body that was looked through once.
#[derive(Clone, Debug, Default)]
pub(in crate::gateway) struct Request {
    /// As the client sent it, unpacked.
    pub bytes: Bytes,
    /// What is changed for the child, in order, never overlapping.
    pub edits: Vec<Edit>,
    /// The model asked for.
    pub model: Option<String>,
    /// Whether the answer is wanted piece by piece.
    pub stream: Stream,
    /// The most tokens wanted.
    pub max_tokens: Option<u32>,
    /// What stands in the prompt.
    pub seen: Seen,
    /// What the model must be able to do.
    pub needs: Needs,
    /// What is asked of the scheduler.
    pub asked: Asked,
    /// The texts to be embedded.
    pub inputs: Inputs,
    /// How vectors are to be written.
    pub encoding: Option<Encoding>,
}

/// Whether an answer is wanted piece by piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::gateway) enum Stream {
    #[default]
    No,
    Yes,
}

/// The texts of an embedding request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::gateway) struct Inputs {
    /// Where all of them are.
    pub whole: Range<usize>,
    /// Where each is.
    pub each: Vec<Range<usize>>,
}

/// What a body is looked through for, beside what all have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum LookFor {
    /// What a prompt needs.
    Prompt,
    /// Where the inputs are.
    Inputs,
}

/// Why a body cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Unusable {
    /// It is no JSON object.
    Json(Wrong),
    /// It is not UTF-8 from that byte on.
    Utf8 { at: usize },
    /// A key has a value of the wrong kind.
    Value { key: &'static str, wanted: &'static str },
    /// What is asked of the scheduler makes no sense.
    Ask(BadAsk),
}

impl From<Wrong> for Unusable {
    fn from(wrong: Wrong) -> Unusable {
        Unusable::Json(wrong)
    }
}

impl Request {
    /// Looks through a body once.
    ///
    /// # Errors
    /// If it is no JSON object, or a key the gateway has to understand cannot be understood.
    pub(in crate::gateway) fn read(bytes: Bytes, look_for: LookFor) -> Result<Request, Unusable> {
        if let Err(wrong) = std::str::from_utf8(&bytes) {
            return Err(Unusable::Utf8 { at: wrong.valid_up_to() });
        }
        let mut request = Request { bytes: bytes.clone(), ..Request::default() };
        let scanner = Scanner::new(&bytes);
        Reader { scanner, bytes: &bytes, request: &mut request, look_for, members: Members::default() }.read()?;
        // No more room than is needed, for as long as it waits.
        request.edits.shrink_to_fit();
        Ok(request)
    }
}

/// Members of the outer object so far.
#[derive(Default)]
struct Members {
    /// Whether one stays.
    kept: bool,
    /// The comma before the next.
    comma: Option<usize>,
}

struct Reader<'a> {
    scanner: Scanner<'a>,
    bytes: &'a [u8],
    request: &'a mut Request,
    look_for: LookFor,
    members: Members,
}

/// What becomes of a member.
enum Fate {
    Kept,
    Removed,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), Unusable> {
        let wanted = "a JSON object";
        if self.scanner.peek() != Some(b'{') {
            return Err(Wrong { at: self.scanner.at(), wanted }.into());
        }
        self.scanner.open(0)?;
        let start = self.scanner.at();
        if self.scanner.takes(b'}').is_none() {
            self.members()?;
        }
        self.scanner.end()?;
        if self.request.model.is_none() {
            let with = if self.members.kept { With::MemberAndComma } else { With::Member };
            self.request.edits.insert(0, Edit { range: start..start, with });
        }
        Ok(())
    }

    fn members(&mut self) -> Result<(), Unusable> {
        loop {
            self.scanner.peek();
            let start = self.scanner.at();
            let fate = self.member()?;
            let end = self.scanner.at();
            let comma = self.scanner.takes(b',');
            match fate {
                Fate::Kept => self.members.kept = true,
                Fate::Removed => self.remove(start..end, comma),
            }
            if comma.is_none() {
                self.scanner.expect(b'}', "`,` or `}`")?;
                return Ok(());
            }
            self.members.comma = comma;
        }
    }

    /// A member goes with the comma before it, or, if none before it stays, with the one behind it.
    fn remove(&mut self, member: Range<usize>, comma: Option<usize>) {
        let range = match self.members.comma {
            Some(before) if self.members.kept => before..member.end,
            Some(_) | None => member.start..comma.map_or(member.end, |comma| comma + 1),
        };
        self.request.edits.push(Edit { range, with: With::Nothing });
    }

    fn member(&mut self) -> Result<Fate, Unusable> {
        let key = self.scanner.key()?;
        let name = self.scanner.text(&key).unwrap_or_default();
        match &*name {
            "model" => self.model()?,
            "windtunnel" => return self.asked(Spelling::Own),
            "gridcore" => return self.asked(Spelling::GridCore),
            "stream" => {
                let (sort, _) = self.plain()?;
                self.request.stream = if sort == Sort::True { Stream::Yes } else { Stream::No };
            }
            "max_tokens" | "max_completion_tokens" | "max_output_tokens" | "n_predict" => self.most()?,
            "messages" | "prompt" | "system" | "instructions" | "documents" | "query" => self.prompt()?,
            "input" | "content" if self.look_for == LookFor::Inputs => self.inputs()?,
            "input" | "content" | "input_prefix" | "input_suffix" | "input_extra" => self.prompt()?,
            "tools" => self.tools()?,
            "encoding_format" => self.encoding()?,
            _ => {
                self.plain()?;
            }
        }
        Ok(Fate::Kept)
    }

    fn plain(&mut self) -> Result<(Sort, Range<usize>), Wrong> {
        self.scanner.value(1, &mut Seen::default())
    }

    /// The last one counts, and all are replaced.
    fn model(&mut self) -> Result<(), Unusable> {
        let (sort, range) = self.plain()?;
        let wrong = Unusable::Value { key: "model", wanted: "a string" };
        match sort {
            Sort::String => {
                let written = Written::of(self.bytes, range.clone());
                let name = self.scanner.text(&written).ok_or(wrong)?;
                self.request.model = Some(name.into_owned());
            }
            Sort::Null => self.request.model = None,
            Sort::Number | Sort::True | Sort::False | Sort::Array | Sort::Object => return Err(wrong),
        }
        self.request.edits.push(Edit { range, with: With::Model });
        Ok(())
    }

    fn asked(&mut self, spelling: Spelling) -> Result<Fate, Unusable> {
        let (_, range) = self.plain()?;
        let asked = Asked::in_body(self.bytes.get(range).unwrap_or_default(), spelling).map_err(Unusable::Ask)?;
        self.request.asked = match spelling {
            Spelling::Own => asked.or(self.request.asked),
            Spelling::GridCore => self.request.asked.or(asked),
        };
        Ok(Fate::Removed)
    }

    /// A value that is no count is for the child to complain about.
    fn most(&mut self) -> Result<(), Unusable> {
        let (_, range) = self.plain()?;
        let text = self.bytes.get(range).and_then(|digits| std::str::from_utf8(digits).ok());
        let most = text.and_then(|digits| digits.parse().ok());
        self.request.max_tokens = match (self.request.max_tokens, most) {
            (Some(one), Some(other)) => Some(u32::min(one, other)),
            (one, other) => one.or(other),
        };
        Ok(())
    }

    /// What is neither is for the child to complain about.
    fn encoding(&mut self) -> Result<(), Unusable> {
        let (_, range) = self.plain()?;
        self.request.encoding = match self.bytes.get(range) {
            Some(b"\"base64\"") => Some(Encoding::Base64),
            Some(b"\"float\"") => Some(Encoding::Float),
            Some(_) | None => None,
        };
        Ok(())
    }

    fn prompt(&mut self) -> Result<(), Unusable> {
        self.scanner.value(1, &mut self.request.seen)?;
        if self.request.seen.images == Found::Yes {
            self.request.needs = self.request.needs.with(Capability::Vision);
        }
        if self.request.seen.sound == Found::Yes {
            self.request.needs = self.request.needs.with(Capability::Audio);
        }
        Ok(())
    }

    /// The template writes tools into the prompt; what their schemas speak of is no image.
    fn tools(&mut self) -> Result<(), Unusable> {
        let mut seen = Seen::default();
        let (sort, _) = self.scanner.value(1, &mut seen)?;
        self.request.seen.text += seen.text;
        if sort == Sort::Array && seen != Seen::default() {
            self.request.needs = self.request.needs.with(Capability::Tools);
        }
        Ok(())
    }

    /// One text, tokens of one text, or a list of either.
    fn inputs(&mut self) -> Result<(), Unusable> {
        self.scanner.peek();
        let start = self.scanner.at();
        let mut each = Vec::new();
        if self.scanner.peek() == Some(b'[') {
            if self.list(&mut each)? == Some(Sort::Number) {
                each = std::iter::once(start..self.scanner.at()).collect();
            }
        } else {
            each.push(self.scanner.value(1, &mut self.request.seen)?.1);
        }
        self.request.inputs = Inputs { whole: start..self.scanner.at(), each };
        Ok(())
    }

    /// Says what the first is.
    fn list(&mut self, each: &mut Vec<Range<usize>>) -> Result<Option<Sort>, Wrong> {
        self.scanner.open(1)?;
        if self.scanner.takes(b']').is_some() {
            return Ok(None);
        }
        let mut first = None;
        loop {
            let (sort, range) = self.scanner.value(2, &mut self.request.seen)?;
            first = first.or(Some(sort));
            each.push(range);
            if self.scanner.takes(b']').is_some() {
                return Ok(first);
            }
            self.scanner.expect(b',', "`,` or `]`")?;
        }
    }
}

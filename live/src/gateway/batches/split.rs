//! An answer with vectors, cut into its elements without reading a number.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header, response::Parts};

use crate::gateway::body::{Scanner, Seen, Sort, Wrong};

/// What is answered in place of an answer that is none.
pub(super) const NONSENSE: Bytes = Bytes::from_static(
    br#"{"error":{"message":"the runtime's answer does not hold a vector for every input","type":"server_error","param":null,"code":"runtime_error"}}"#,
);

/// An answer in pieces.
#[derive(Clone, Debug)]
pub(super) struct Pieces {
    pub bytes: Bytes,
    /// Between the brackets of the list.
    pub list: Range<usize>,
    /// In the order of the inputs.
    pub elements: Vec<Element>,
    /// What was counted.
    pub usage: Vec<Count>,
}

/// One vector and what is around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub whole: Range<usize>,
    /// The number of the input.
    pub index: Option<Range<usize>>,
    /// The vector, and what it is written as.
    pub vector: Option<(Sort, Range<usize>)>,
}

/// One number of `usage`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub at: Range<usize>,
    pub count: u64,
}

/// The head of an answer that is none.
pub(super) fn nonsense(mut parts: Parts) -> Parts {
    parts.status = StatusCode::BAD_GATEWAY;
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts
}

impl Pieces {
    /// Cuts an answer; `None`: it is no answer with vectors. Both forms of llama-server are known: an object with
    /// `data`, and a bare list.
    pub(super) fn of(bytes: Bytes) -> Option<Pieces> {
        let text = bytes.clone();
        let mut scanner = Scanner::new(&text);
        let mut pieces = Pieces { bytes, list: 0..0, elements: Vec::new(), usage: Vec::new() };
        match scanner.peek()? {
            b'[' => pieces.list(&mut scanner, 0).ok()?,
            b'{' => pieces.object(&mut scanner).ok()?,
            _ => return None,
        }
        scanner.end().ok()?;
        pieces.in_order().then_some(pieces)
    }

    fn object(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Wrong> {
        let whole = self.bytes.clone();
        members(scanner, 0, &whole, &mut |key, scanner| match key {
            "data" if scanner.peek() == Some(b'[') => self.list(scanner, 1),
            "usage" if scanner.peek() == Some(b'{') => self.usage(scanner),
            _ => scanner.value(1, &mut Seen::default()).map(drop),
        })
    }

    fn list(&mut self, scanner: &mut Scanner<'_>, depth: u32) -> Result<(), Wrong> {
        scanner.peek();
        scanner.open(depth)?;
        let start = scanner.at();
        let mut end = scanner.takes(b']');
        while end.is_none() {
            let element = self.element(scanner, depth + 1)?;
            self.elements.push(element);
            end = scanner.takes(b']');
            if end.is_none() {
                scanner.expect(b',', "`,` or `]`")?;
            }
        }
        self.list = start..end.unwrap_or(start);
        Ok(())
    }

    fn element(&self, scanner: &mut Scanner<'_>, depth: u32) -> Result<Element, Wrong> {
        let mut element = Element::default();
        scanner.peek();
        let start = scanner.at();
        members(scanner, depth, &self.bytes, &mut |key, scanner| {
            let (sort, range) = scanner.value(depth + 1, &mut Seen::default())?;
            match key {
                "index" if sort == Sort::Number => element.index = Some(range),
                "embedding" => element.vector = Some((sort, range)),
                _ => {}
            }
            Ok(())
        })?;
        element.whole = start..scanner.at();
        Ok(element)
    }

    fn usage(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Wrong> {
        let bytes = self.bytes.clone();
        members(scanner, 1, &bytes, &mut |_, scanner| {
            let (_, at) = scanner.value(2, &mut Seen::default())?;
            if let Some(count) = number(&bytes, &at) {
                self.usage.push(Count { at, count });
            }
            Ok(())
        })
    }

    /// Puts the elements into the order of the inputs; whether there is one for each number.
    fn in_order(&mut self) -> bool {
        let number_of = |element: &Element| number(&self.bytes, element.index.as_ref()?);
        let mut numbered: Vec<(u64, Element)> = Vec::with_capacity(self.elements.len());
        for element in std::mem::take(&mut self.elements) {
            let Some(number) = number_of(&element) else { return false };
            if element.vector.is_none() {
                return false;
            }
            numbered.push((number, element));
        }
        numbered.sort_by_key(|(number, _)| *number);
        let complete = (0..).zip(&numbered).all(|(wanted, (number, _))| wanted == *number);
        self.elements = numbered.into_iter().map(|(_, element)| element).collect();
        complete
    }
}

fn number(bytes: &[u8], at: &Range<usize>) -> Option<u64> {
    std::str::from_utf8(bytes.get(at.clone())?).ok()?.parse().ok()
}

/// Hands over every member of an object, whose value has to be taken.
fn members(
    scanner: &mut Scanner<'_>,
    depth: u32,
    bytes: &[u8],
    each: &mut dyn FnMut(&str, &mut Scanner<'_>) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    if scanner.peek() != Some(b'{') {
        return Err(Wrong { at: scanner.at(), wanted: "an object" });
    }
    scanner.open(depth)?;
    if scanner.takes(b'}').is_some() {
        return Ok(());
    }
    loop {
        let key = scanner.key()?;
        let name = bytes.get(key.inside).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default();
        each(name, scanner)?;
        if scanner.takes(b'}').is_some() {
            return Ok(());
        }
        scanner.expect(b',', "`,` or `}`")?;
    }
}

//! Embeddings and scores: numbers that depend on their text alone, so that whoever cut a request apart can be checked.

use base64::{Engine, engine::general_purpose::STANDARD};
use hyper::StatusCode;
use serde_json::{Value, json};

use super::{
    answer::Answer,
    question::text_tokens,
    settings::{Counting, Settings},
};

/// The inputs of a request for vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    texts: Vec<Value>,
    encoding: Encoding,
}

/// How vectors are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Numbers,
    Base64,
}

impl Inputs {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// What the real server says.
    pub fn read(body: &Value) -> Result<Inputs, Answer> {
        let input = body.get("input").or_else(|| body.get("content"));
        let texts = match input {
            // One input in tokens.
            Some(Value::Array(list)) if list.iter().all(Value::is_number) => vec![Value::Array(list.clone())],
            Some(Value::Array(list)) => list.clone(),
            Some(text @ Value::String(_)) => vec![text.clone()],
            Some(_) => return Err(invalid("\"prompt\" elements must be a string, a list of tokens, a JSON object")),
            None => return Err(invalid("\"input\" or \"content\" must be provided")),
        };
        if texts.is_empty() || texts.iter().any(|text| text_tokens(text, Counting::FourBytes) == 0) {
            return Err(invalid("Input content cannot be empty"));
        }
        let encoding = match body.get("encoding_format").and_then(Value::as_str) {
            Some("base64") => Encoding::Base64,
            Some("float") | None => Encoding::Numbers,
            Some(_) => return Err(invalid("The format to return the embeddings in. Can be either float or base64")),
        };
        Ok(Inputs { texts, encoding })
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.texts.len() as u64
    }

    /// The answer.
    pub fn answer(&self, settings: &Settings) -> Value {
        let tokens = self.texts.iter().fold(0, |sum: u32, text| sum.saturating_add(self.tokens(text, settings)));
        let data: Vec<Value> =
            self.texts.iter().enumerate().map(|(place, text)| self.item(place, text, settings)).collect();
        json!({
            "model": settings.model, "object": "list", "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
            "data": data,
        })
    }

    /// The answer of the paths without `/v1`.
    pub fn native(&self, settings: &Settings) -> Value {
        let item = |(place, text)| json!({ "index": place, "embedding": [vector(text, settings.dimensions)] });
        self.texts.iter().enumerate().map(item).collect()
    }

    fn tokens(&self, text: &Value, settings: &Settings) -> u32 {
        text_tokens(text, settings.counting)
    }

    fn item(&self, place: usize, text: &Value, settings: &Settings) -> Value {
        let numbers = vector(text, settings.dimensions);
        match self.encoding {
            Encoding::Numbers => json!({ "embedding": numbers, "index": place, "object": "embedding" }),
            Encoding::Base64 => {
                let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
                json!({ "embedding": STANDARD.encode(bytes), "index": place, "object": "embedding",
                    "encoding_format": "base64" })
            }
        }
    }
}

/// The answer to a request for scores, highest first.
///
/// # Errors
/// What the real server says.
pub fn scores(body: &Value, settings: &Settings) -> Result<(u64, Value), Answer> {
    let query = body.get("query").and_then(Value::as_str).ok_or_else(|| invalid("\"query\" must be provided"))?;
    let documents = body.get("documents").or_else(|| body.get("texts")).and_then(Value::as_array);
    let Some(documents) = documents.filter(|list| !list.is_empty()) else {
        return Err(invalid("\"documents\" must be a non-empty string array"));
    };
    let tokens = documents.iter().fold(0, |sum: u32, one| sum.saturating_add(text_tokens(one, settings.counting)));
    let mut scored: Vec<(usize, f32)> =
        documents.iter().enumerate().map(|(place, one)| (place, score(query, one))).collect();
    scored.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    let top = body.get("top_n").and_then(Value::as_u64).and_then(|top| usize::try_from(top).ok());
    scored.truncate(top.unwrap_or(usize::MAX));
    let result = |&(place, score): &(usize, f32)| json!({ "index": place, "relevance_score": score });
    let results: Vec<Value> = scored.iter().map(result).collect();
    let answer = json!({
        "model": settings.model, "object": "list", "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
        "results": results,
    });
    Ok((documents.len() as u64, answer))
}

fn score(query: &str, document: &Value) -> f32 {
    vector(&json!([query, document]), 1).first().copied().unwrap_or(0.0)
}

/// Numbers in [-1, 1) that a text always has.
fn vector(text: &Value, dimensions: usize) -> Vec<f32> {
    // FNV-1a, Fowler, Noll and Vo.
    let start = text
        .to_string()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let next = |state: &u64| Some(state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f));
    std::iter::successors(Some(start), next)
        .map(|state| (state >> 40) as f32 / (1 << 23) as f32 - 1.0)
        .take(dimensions)
        .collect()
}

fn invalid(message: &str) -> Answer {
    Answer::error(StatusCode::BAD_REQUEST, "invalid_request_error", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_depends_on_its_text_alone() {
        let settings = Settings::default();
        let together = Inputs::read(&json!({ "input": ["one", "two"] })).map(|inputs| inputs.answer(&settings));
        let alone = Inputs::read(&json!({ "input": "two" })).map(|inputs| inputs.answer(&settings));
        let (Ok(together), Ok(alone)) = (together, alone) else { panic!("both are fine") };
        assert_eq!(together["data"][1]["embedding"], alone["data"][0]["embedding"]);
        assert_ne!(together["data"][0]["embedding"], alone["data"][0]["embedding"]);
        assert_eq!(together["usage"]["prompt_tokens"], 2);
    }

    #[test]
    fn base64_holds_the_same_numbers() {
        let settings = Settings { dimensions: 2, ..Settings::default() };
        let inputs = Inputs::read(&json!({ "input": "x", "encoding_format": "base64" }));
        let Ok(inputs) = inputs else { panic!("it is fine") };
        let answer = inputs.answer(&settings);
        let bytes = STANDARD.decode(answer["data"][0]["embedding"].as_str().unwrap()).unwrap();
        let numbers: Vec<f32> = bytes.chunks(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect();
        assert_eq!(numbers, vector(&json!("x"), 2));
    }
}

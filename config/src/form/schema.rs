//! JSON Schema (2020-12) of the files, made from the same tables that files are checked against.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Form, Interval, Key, Need, Rule, Scalar, Shape, Tagged};
use crate::sections::{CONFIGURATION, SCENARIO};

const TIME: &str = r"^[0-9][0-9_]*(\.[0-9_]+)?(ns|us|µs|ms|s|m|h)$";
const SIZE: &str = r"^[0-9][0-9_]*(\.[0-9_]+)?(B|KiB|MiB|GiB|TiB|kB|MB|GB|TB)$";
const BANDWIDTH: &str = r"^[0-9][0-9_]*(\.[0-9_]+)?(B|KiB|MiB|GiB|TiB|kB|MB|GB|TB)/s$";
const ADDRESS: &str = r"^(\[[0-9a-fA-F:.]+\]|[0-9.]+|localhost):[0-9]+$";
const PERCENT: &str = r"^[0-9][0-9_]*(\.[0-9_]+)?%$";
const FIGURE: &str = r"^[0-9][0-9_]*(\.[0-9_]+)?(%|ns|us|µs|ms|s|m|h|B|KiB|MiB|GiB|TiB|kB|MB|GB|TB)$";

/// The JSON Schema of a scenario file.
pub fn schema_scenario() -> Value {
    schema(&SCENARIO)
}

/// The JSON Schema of a configuration file, which is also what a scenario may start from.
pub fn schema_config() -> Value {
    schema(&CONFIGURATION)
}

fn schema(form: &'static Form) -> Value {
    let mut definitions = Definitions::default();
    let Value::Object(body) = definitions.table(form) else { return Value::Null };
    let mut whole = Map::new();
    whole.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    whole.insert("title".to_owned(), json!(form.name));
    whole.extend(body);
    whole.insert("$defs".to_owned(), json!(definitions.done));
    Value::Object(whole)
}

/// Tables met on the way, by the names of their forms.
#[derive(Default)]
struct Definitions {
    done: BTreeMap<&'static str, Value>,
}

impl Definitions {
    fn reference(&mut self, form: &'static Form) -> Value {
        if !self.done.contains_key(form.name) {
            self.done.insert(form.name, Value::Null);
            let table = self.table(form);
            self.done.insert(form.name, table);
        }
        json!({ "$ref": format!("#/$defs/{}", form.name) })
    }

    fn table(&mut self, form: &'static Form) -> Value {
        let mut table = self.object(form);
        if form.rule == Rule::ExactlyOne {
            table.insert("minProperties".to_owned(), json!(1));
            table.insert("maxProperties".to_owned(), json!(1));
        }
        Value::Object(table)
    }

    fn object(&mut self, form: &'static Form) -> Map<String, Value> {
        let required: Vec<&str> =
            form.keys.iter().filter(|key| key.need == Need::Required).map(|key| key.name).collect();
        let properties: Map<String, Value> = form.keys.iter().map(|key| (key.name.to_owned(), self.key(key))).collect();
        let mut object = Map::new();
        object.insert("description".to_owned(), json!(form.doc));
        object.insert("type".to_owned(), json!("object"));
        object.insert("properties".to_owned(), Value::Object(properties));
        object.insert("additionalProperties".to_owned(), json!(false));
        if !required.is_empty() {
            object.insert("required".to_owned(), json!(required));
        }
        object
    }

    fn key(&mut self, key: &'static Key) -> Value {
        let mut value = self.shape(&key.shape);
        if let Value::Object(value) = &mut value {
            value.insert("description".to_owned(), json!(key.doc));
            if let Some(default) = key.default.and_then(from_toml) {
                value.insert("default".to_owned(), default);
            }
        }
        value
    }

    fn shape(&mut self, shape: &'static Shape) -> Value {
        match shape {
            Shape::Scalar(scalar) => scalar.schema(),
            Shape::List(inner) => json!({ "type": "array", "items": self.shape(inner), "minItems": 1 }),
            Shape::Any(inner) => json!({ "type": "array", "items": self.shape(inner) }),
            Shape::Pair(inner) => json!({ "type": "array", "items": self.shape(inner), "minItems": 2, "maxItems": 2 }),
            Shape::Couple(first, second) => {
                let items = [self.shape(first), self.shape(second)];
                json!({ "type": "array", "prefixItems": items, "minItems": 2, "maxItems": 2 })
            }
            Shape::Table(form) => self.reference(form),
            Shape::Tables(form) => json!({ "type": "array", "items": self.reference(form) }),
            Shape::Named(form) => json!({ "type": "object", "additionalProperties": self.reference(form) }),
            Shape::Texts => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            Shape::Tagged(tagged) => self.tagged(tagged),
            Shape::Either(shapes) => {
                let shapes: Vec<Value> = shapes.iter().map(|shape| self.shape(shape)).collect();
                json!({ "anyOf": shapes })
            }
        }
    }

    fn tagged(&mut self, tagged: &'static Tagged) -> Value {
        let mut variants = Vec::new();
        for (tag, form) in tagged.variants {
            if !self.done.contains_key(form.name) {
                let object = self.variant(tagged.tag, tag, form);
                self.done.insert(form.name, object);
            }
            variants.push(json!({ "$ref": format!("#/$defs/{}", form.name) }));
        }
        json!({ "oneOf": variants })
    }

    /// A variant's table with its tag as the first key.
    fn variant(&mut self, key: &str, tag: &str, form: &'static Form) -> Value {
        let mut object = self.object(form);
        if let Some(Value::Object(properties)) = object.get_mut("properties") {
            properties.insert(key.to_owned(), json!({ "const": tag }));
        }
        match object.get_mut("required") {
            Some(Value::Array(required)) => required.insert(0, json!(key)),
            Some(_) | None => {
                object.insert("required".to_owned(), json!([key]));
            }
        }
        Value::Object(object)
    }
}

impl Scalar {
    fn schema(self) -> Value {
        match self {
            Scalar::Text => json!({ "type": "string" }),
            Scalar::Name => json!({ "type": "string", "minLength": 1 }),
            Scalar::Flag => json!({ "type": "boolean" }),
            Scalar::Span | Scalar::SpanAboveZero => json!({ "type": "string", "pattern": TIME }),
            Scalar::SpanOr(word) => json!({ "anyOf": [{ "type": "string", "pattern": TIME }, { "const": word }] }),
            Scalar::Size => json!({ "type": "string", "pattern": SIZE }),
            Scalar::Bandwidth => json!({ "type": "string", "pattern": BANDWIDTH }),
            Scalar::Share => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }),
            Scalar::Factor => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 4294 }),
            Scalar::Warmup => {
                json!({ "anyOf": [{ "const": "auto" }, { "type": "string", "pattern": TIME }, { "type": "string", "pattern": PERCENT }] })
            }
            Scalar::Percent => json!({ "type": "string", "pattern": PERCENT }),
            Scalar::Figure => json!({ "anyOf": [{ "type": "number" }, { "type": "string", "pattern": FIGURE }] }),
            Scalar::Count(low, high) => count(low, high),
            Scalar::CountOr(low, high, word) => json!({ "anyOf": [count(low, high), { "const": word }] }),
            Scalar::Number(Interval::Closed(low, high)) => json!({ "type": "number", "minimum": low, "maximum": high }),
            Scalar::Number(Interval::Above(low, high)) => {
                json!({ "type": "number", "exclusiveMinimum": low, "maximum": high })
            }
            Scalar::Number(Interval::Finite) => json!({ "type": "number" }),
            Scalar::Address => json!({ "type": "string", "pattern": ADDRESS }),
            Scalar::Word(words) => json!({ "enum": words }),
            Scalar::Anything => json!({}),
        }
    }
}

fn count(low: u64, high: u64) -> Value {
    json!({ "type": "integer", "minimum": low, "maximum": high })
}

/// A default as JSON; all of them are single values.
fn from_toml(text: &str) -> Option<Value> {
    let value: toml_edit::Value = text.parse().ok()?;
    let number = || value.as_integer().map(Value::from).or_else(|| value.as_float().map(Value::from));
    value.as_str().map(Value::from).or_else(|| value.as_bool().map(Value::from)).or_else(number)
}

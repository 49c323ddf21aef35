//! The JSON Schema takes what the reader takes, and no other keys.

use std::path::Path;

use serde_json::{Map, Value, json};
use windtunnel_config::{ScenarioFile, policy_keys, schema_config, schema_scenario};

const TEXT: &str = include_str!("files/everything.toml");

#[test]
fn a_file_with_every_key_fits_the_schema() {
    assert_eq!(fits(TEXT), Ok(()));
    let config: Map<String, Value> = json(TEXT)
        .into_iter()
        .filter(|(key, _)| ["devices", "models", "families", "policy"].contains(&key.as_str()))
        .collect();
    let schema = schema_config();
    assert_eq!(check(&schema, &schema, &Value::Object(config)), Ok(()));
    assert_eq!(schema["properties"].as_object().map(Map::len), Some(6));
    let server = json(include_str!("files/daemon.toml"));
    assert_eq!(check(&schema, &schema, &Value::Object(server)), Ok(()));
    for (from, to) in [("body_limit", "body_limits"), ("\"30s\"", "30"), ("[\"batch\"]", "[]"), ("\"1\"", "1")] {
        let text = include_str!("files/daemon.toml").replacen(from, to, 1);
        assert!(check(&schema, &schema, &Value::Object(json(&text))).is_err(), "{from} -> {to}");
    }
}

#[test]
fn a_key_unknown_to_the_reader_is_unknown_to_the_schema_wherever_it_stands() {
    let origin = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/everything.toml");
    let keys: Vec<(usize, &str)> = TEXT.match_indices(" = ").filter_map(|(at, _)| key_before(at)).collect();
    assert!(keys.len() > 150);
    for (at, key) in keys {
        let text = format!("{}{key}_x{}", &TEXT[..at], &TEXT[at + key.len()..]);
        let error = ScenarioFile::parse(&text, &origin).unwrap().resolve(&[]).expect_err(key).to_string();
        let told = error.contains(&format!("{key}_x")) || error.contains(&format!("has no `{key}`"));
        assert!(told, "{key}: {error}");
        assert!(fits(&text).is_err(), "{key}_x fits the schema");
    }
}

#[test]
fn wrong_values_do_not_fit_either() {
    for (from, to) in [
        ("horizon = \"10m\"", "horizon = 10"),
        ("background_share = 0.25", "background_share = 0"),
        ("count = 2", "count = 0"),
        ("routing = \"join_shortest\"", "routing = \"shortest\""),
        ("process = \"poisson\", ", ""),
        ("median = 400, ", "median = \"400\", "),
        ("{ uniform = [1, 64] }", "{ uniform = [1, 64], exponential = 3 }"),
        ("max = 32, ", ""),
    ] {
        let text = TEXT.replacen(from, to, 1);
        assert_ne!(text, TEXT, "{from}");
        assert!(fits(&text).is_err(), "{from} -> {to}");
    }
}

#[test]
fn the_reference_of_the_policy_lists_every_key() {
    let lines = policy_keys().into_iter().map(|key| {
        format!("[{}] {} = {}: {}; {}\n", key.section, key.name, key.default.unwrap_or("-"), key.takes, key.meaning)
    });
    insta::assert_snapshot!(lines.collect::<String>());
}

/// The bare key that ends right before `at`.
fn key_before(at: usize) -> Option<(usize, &'static str)> {
    let start = TEXT[..at].rfind(|one: char| !one.is_ascii_alphanumeric() && one != '_').map_or(0, |at| at + 1);
    (start < at).then(|| (start, &TEXT[start..at]))
}

fn fits(text: &str) -> Result<(), String> {
    let schema = schema_scenario();
    check(&schema, &schema, &Value::Object(json(text)))
}

fn json(text: &str) -> Map<String, Value> {
    let document = toml_edit::Document::parse(text).unwrap();
    document.iter().map(|(key, item)| (key.to_owned(), of_item(item))).collect()
}

fn of_item(item: &toml_edit::Item) -> Value {
    let table = |table: &dyn toml_edit::TableLike| {
        Value::Object(table.iter().map(|(key, item)| (key.to_owned(), of_item(item))).collect())
    };
    match item {
        toml_edit::Item::ArrayOfTables(list) => list.iter().map(|one| table(one)).collect(),
        toml_edit::Item::Value(value) => of_value(value),
        other => other.as_table_like().map_or(Value::Null, table),
    }
}

fn of_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => json!(text.value()),
        toml_edit::Value::Integer(number) => json!(number.value()),
        toml_edit::Value::Float(number) => json!(number.value()),
        toml_edit::Value::Boolean(flag) => json!(flag.value()),
        toml_edit::Value::Datetime(moment) => json!(moment.to_string()),
        toml_edit::Value::Array(list) => list.iter().map(of_value).collect(),
        toml_edit::Value::InlineTable(table) => {
            Value::Object(table.iter().map(|(key, value)| (key.to_owned(), of_value(value))).collect())
        }
    }
}

/// Checks `value` against those parts of JSON Schema that the schemas use; patterns are left to their own tests.
fn check(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
        return check(root, &root["$defs"][name], value);
    }
    let good = |schemas: &Value| {
        schemas.as_array().map(|all| all.iter().filter(|schema| check(root, schema, value).is_ok()).count())
    };
    let wrong = |why: &str| Err(format!("{value} {why} of {schema}"));
    if good(&schema["anyOf"]) == Some(0) || good(&schema["oneOf"]).is_some_and(|count| count != 1) {
        return wrong("fits not one");
    }
    if schema["const"] != Value::Null && schema["const"] != *value {
        return wrong("is not the constant");
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        return wrong("is no word");
    }
    let typed = match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64(),
        Some("number") => value.is_number(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some(other) => panic!("type {other}"),
        None => true,
    };
    let number = value.as_f64().unwrap_or(0.0);
    let bound = |key: &str| schema[key].as_f64();
    let inside = bound("minimum").is_none_or(|low| number >= low)
        && bound("maximum").is_none_or(|high| number <= high)
        && bound("exclusiveMinimum").is_none_or(|low| number > low);
    let size = value.as_array().map(Vec::len).or_else(|| value.as_object().map(Map::len)).unwrap_or(0) as f64;
    let counted = bound("minItems").or(bound("minProperties")).is_none_or(|low| size >= low)
        && bound("maxItems").or(bound("maxProperties")).is_none_or(|high| size <= high);
    if !typed || !inside || !counted {
        return wrong("is outside");
    }
    let items = value.as_array().into_iter().flatten();
    items.filter(|_| !schema["items"].is_null()).try_for_each(|one| check(root, &schema["items"], one))?;
    value.as_object().map_or(Ok(()), |object| check_object(root, schema, object))
}

fn check_object(root: &Value, schema: &Value, object: &Map<String, Value>) -> Result<(), String> {
    for required in schema["required"].as_array().into_iter().flatten() {
        object.get(required.as_str().unwrap()).ok_or_else(|| format!("{required} is missing"))?;
    }
    for (key, value) in object {
        match (&schema["properties"][key], &schema["additionalProperties"]) {
            (Value::Null, Value::Bool(false)) => return Err(format!("{key} is unknown")),
            (Value::Null, Value::Null) => {}
            (Value::Null, other) => check(root, other, value)?,
            (property, _) => check(root, property, value)?,
        }
    }
    Ok(())
}

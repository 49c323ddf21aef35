//! `windtunnel schema`: JSON Schemas, and references of keys.

use windtunnel_config::{policy_keys, reference_config, schema_config, schema_scenario};
use windtunnel_reports::{journal::schema_journal, report::schema_report};

use crate::{
    args::{SchemaArgs, SchemaKind},
    failure::Failure,
    output::print,
    session::Session,
};

pub fn run(args: &SchemaArgs, session: &Session) -> Result<(), Failure> {
    session.only_tables("schema", "has one form for each thing it describes")?;
    let schema = match args.what {
        SchemaKind::Scenario => serde_json::to_string_pretty(&schema_scenario()),
        SchemaKind::Config => serde_json::to_string_pretty(&schema_config()),
        SchemaKind::Journal => serde_json::to_string_pretty(&schema_journal()),
        SchemaKind::Report => serde_json::to_string_pretty(&schema_report()),
        SchemaKind::Reference => return print(&reference_config()),
        SchemaKind::Policy => return print(&policy_reference()),
    };
    let text = schema.map_err(|wrong| Failure::BadInput(format!("write the schema: {wrong}")))?;
    print(&format!("{text}\n"))
}

/// Every policy key as a Markdown table.
fn policy_reference() -> String {
    let mut text = String::from("| section | key | value | default | meaning |\n|---|---|---|---|---|\n");
    for key in policy_keys() {
        let default = key.default.map_or_else(String::new, |default| format!("`{default}`"));
        let (section, name, takes, meaning) = (key.section, key.name, key.takes, key.meaning);
        text.push_str(&format!("| `{section}` | `{name}` | {takes} | {default} | {meaning} |\n"));
    }
    text
}

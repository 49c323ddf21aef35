//! docs/CONFIGURATION.md is what `windtunnel schema reference` prints. `WINDTUNNEL_RENEW_REFERENCE=1 cargo test --test
//! reference` writes it anew.

use std::{fs, path::Path};

use windtunnel_config::reference_config;

#[test]
fn the_reference_of_the_configuration_is_as_the_program_prints_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/CONFIGURATION.md");
    let text = reference_config();
    if std::env::var_os("WINDTUNNEL_RENEW_REFERENCE").is_some() {
        fs::write(&path, &text).expect("the page can be written");
    }
    let page = fs::read_to_string(&path).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()));
    let differing = page.lines().zip(text.lines()).find(|(page, text)| page != text);
    assert_eq!(differing, None, "renew it with WINDTUNNEL_RENEW_REFERENCE=1");
    assert_eq!(page, text);
}

//! What a person reads when a file or an override is wrong, word for word.

use std::path::Path;

use windtunnel_config::{Override, ScenarioFile};

/// A scenario with nothing wrong, for one thing to be changed in.
const GOOD: &str = r#"[run]
horizon = "10s"

[[devices]]
name = "gpu"
count = 2
memory = "16GiB"

[models.m]
batch = { max = 32 }
service = { kind = "batch", alpha = "1ms", beta = "0.5ms" }

[models.s]
slots = 2
capabilities = ["embedding"]
service = { kind = "slots", prefill_per_token = "0.2ms", decode_alpha = "8ms" }

[families.f]
variants = [{ model = "m", quality = "preferred" }]

[policy]
background_share = 0.5

[[workload]]
name = "chat"
model = "m"
prompt_tokens = 400
arrivals = { process = "poisson", rate = 1500 }
"#;

/// What replaces what, or what is added at the end.
const CHANGES: &[(&str, &str)] = &[
    // Syntax.
    ("horizon = \"10s\"", "horizon = 10s"),
    ("[[devices]]", "[[devices]"),
    ("slots = 2", "slots = 2\nslots = 3"),
    // Keys.
    ("alpha", "alhpa"),
    ("background_share", "background-share"),
    ("horizon", "duration"),
    ("rate = 1500", "rate = 1500, cv = 2"),
    ("[run]", "[running]"),
    ("name = \"chat\"\n", ""),
    (", rate = 1500", ""),
    ("process = \"poisson\", ", ""),
    ("\"poisson\"", "\"possion\""),
    // Types, units and ranges.
    ("horizon = \"10s\"", "horizon = 10"),
    ("horizon = \"10s\"", "horizon = \"10sec\""),
    ("horizon = \"10s\"", "horizon = \"0s\""),
    ("\"0.5ms\"", "\"0.3ns\""),
    ("\"16GiB\"", "16"),
    ("\"16GiB\"", "\"16gb\""),
    ("0.5\n", "0.1234567\n"),
    ("0.5\n", "1.5\n"),
    ("0.5\n", "\"half\"\n"),
    ("rate = 1500", "rate = 0"),
    ("rate = 1500", "rate = inf"),
    ("count = 2", "count = 0"),
    ("slots = 2", "slots = 2.5"),
    ("[\"embedding\"]", "\"embedding\""),
    ("[\"embedding\"]", "[\"embeddings\"]"),
    ("prompt_tokens = 400", "prompt_tokens = \"many\""),
    ("prompt_tokens = 400", "prompt_tokens = { uniform = [5] }"),
    ("prompt_tokens = 400", "prompt_tokens = { uniform = [9, 5] }"),
    ("prompt_tokens = 400", "prompt_tokens = { exponential = 5, gamma = { mean = 1, cv = 1 } }"),
    ("prompt_tokens = 400", "prompt_tokens = { lognormal = { cv = 1 } }"),
    ("prompt_tokens = 400", "prompt_tokens = { empirical = \"nowhere.csv\" }"),
    ("[run]", "[run]\nwarmup = \"10s\""),
    ("[run]", "[run]\nwarmup = \"100%\""),
    ("horizon = \"10s\"", ""),
    // What belongs together.
    ("model = \"m\"\np", "model = \"n\"\np"),
    ("model = \"m\"\np", "model = \"f\"\np"),
    ("model = \"m\"\np", "p"),
    ("model = \"m\"\np", "family = \"f\"\nmodel = \"m\"\np"),
    ("batch = { max = 32 }", "batch = { max = 32 }\nslots = 4"),
    ("slots = 2", "batch = { max = 2 }"),
    ("alpha = \"1ms\", beta = \"0.5ms\"", "alpha = \"0s\""),
    ("prefill_per_token", "prefill_fixed"),
    (", decode_alpha = \"8ms\"", ""),
    ("slots = 2", "slots = 2\nestimate = \"1GiB\""),
    ("slots = 2", "slots = 2\nmeasured = true"),
    ("count = 2", "count = 2\nload = { bandwidth = \"0GiB/s\" }"),
    ("slots = 2", "slots = 2\ndevices = [\"cpu0\", \"gpu7\"]"),
    ("slots = 2", "slots = 2\npredicted = { alpha = \"1ms\" }"),
    ("slots = 2", "slots = 2\non.gpu3.predicted = { decode_beta = \"1ms\" }"),
    ("slots = 2", "slots = 2\nfootprint = \"17GiB\"\nresident = true"),
    ("slots = 2", "slots = 2\ndevices = [\"gpu0\"]\non.gpu1.predicted = { decode_beta = \"1ms\" }"),
    ("slots = 2", "slots = 2\naliases = [\"m\"]"),
    ("slots = 2", "slots = 2\ngguf = \"s.gguf\""),
    ("model = \"m\", quality", "model = \"s\", quality"),
    ("prompt_tokens = 400", "inputs = 5"),
    ("prompt_tokens = 400", "from = \"5s\"\nto = \"5s\""),
    ("[policy]", "[policy]\nclasses.batch.admission = \"adaptif\""),
    ("process = \"poisson\", rate = 1500", "process = \"mmpp\", rates = [0, 0], means = [\"1s\"]"),
    ("process = \"poisson\", rate = 1500", "process = \"mmpp\", rates = [0, 1], means = [\"1s\", \"1ns\"]"),
    ("process = \"poisson\", rate = 1500", "process = \"at\""),
    ("", "\n[[faults]]\nkind = \"crash\"\n"),
    ("", "\n[[faults]]\nkind = \"crsh\"\nat = \"1s\"\n"),
    ("", "\n[[faults]]\nat = \"1s\"\n"),
    ("", "\n[[faults]]\nkind = \"crash\"\nat = 1\n"),
    ("", "\n[[faults]]\nkind = \"crash\"\nat = \"1s\"\nrate = 2\n"),
    ("", "\n[[faults]]\nkind = \"crash\"\nprobability = 2\n"),
    ("", "\n[[faults]]\nkind = \"crash\"\nat = \"1s\"\ndevice = \"gpu7\"\n"),
    ("", "\n[[faults]]\nkind = \"crash\"\nat = \"1s\"\nmodel = \"mm\"\n"),
    ("", "\n[[faults]]\nkind = \"crash\"\nat = \"1s\"\nfrom = \"5s\"\nto = \"2s\"\n"),
    ("", "\n[[faults]]\nkind = \"phantom_memory\"\npoll = 2\n"),
    ("", "\n[[faults]]\nkind = \"phantom_memory\"\npolls = 0\n"),
    ("", "\n[[faults]]\nkind = \"lingering_memory\"\n"),
    ("", "\n[[faults]]\nkind = \"slow_exit\"\nfor = 2\n"),
    ("", "\n[[faults]]\nkind = \"never_exits\"\nfor = \"2s\"\n"),
    ("", "\n[[faults]]\nkind = \"slow_load\"\nfactor = 0\n"),
    ("", "\n[[faults]]\nkind = \"stalled_load\"\nfactor = 2\n"),
    ("", "\n[[faults]]\nkind = \"failed_load\"\nprobability = 0\n"),
    ("", "\n[[faults]]\nkind = \"load_oom\"\nprobabilty = 0.5\n"),
    ("", "\n[[faults]]\nkind = \"wrong_estimate\"\n"),
    ("", "\n[[faults]]\nkind = \"memory_growth\"\nbytes = 5\n"),
    ("", "\n[[faults]]\nkind = \"foreign_memory\"\ncurve = [[\"30s\", \"6GiB\"], [\"20s\", \"0GiB\"]]\n"),
    ("", "\n[[faults]]\nkind = \"foreign_memory\"\ncurve = [[\"30s\"]]\n"),
    ("", "\n[[faults]]\nkind = \"foreign_memory\"\ncurve = [[\"6GiB\", \"30s\"]]\n"),
    ("", "\n[[faults]]\nkind = \"silent_overcommit\"\nrate = -1\n"),
    ("", "\n[[faults]]\nkind = \"wedge\"\n"),
    ("", "\n[[faults]]\nkind = \"slow_device\"\nfor = \"2s\"\n"),
    ("", "\n[[faults]]\nkind = \"connection_limit\"\nrequests = 0\n"),
    ("", "\n[[faults]]\nkind = \"monitor\"\n"),
    ("", "\n[[faults]]\nkind = \"monitor\"\nmode = \"stale\"\nmissing = true\n"),
    ("", "\n[[faults]]\nkind = \"monitor\"\nmode = \"gone\"\n"),
    ("", "\n[[faults]]\nkind = \"pressure\"\ncurve = [[\"30s\", \"high\"]]\n"),
    ("", "\n[[faults]]\nkind = \"clock_jump\"\nby = \"5s\"\n"),
    ("", "\n[[faults]]\nname = \"a\"\nkind = \"never_exits\"\n[[faults]]\nname = \"a\"\nkind = \"load_oom\"\n"),
    ("", "\n[[expect]]\nmetric = \"class.batch.p99\"\n"),
    ("", "\n[[expect]]\nmetric = \"class.batch.p99\"\nat_most = 1\nat_least = \"1ms\"\n"),
    ("", "\n[[expect]]\nmetric = \"class.batch.p99\"\nwithin = 0.05\nof = 3\n"),
    ("", "\n[[expect]]\nmetric = \"class.batch.p99\"\nwithin = \"5%\"\n"),
    ("", "\n[[expect]]\nat_most = 3\n"),
    ("", "\n[[sweep]]\nkey = \"workload.cat.arrivals.rate\"\nvalues = [1, 2]\n"),
    (
        "",
        "\n[[sweep]]\nkey = \"policy.background_share\"\nvalues = { from = 0.1, to = 1, steps = 3, of = \"capacity\" }\n",
    ),
    ("", "\n[[sweep]]\nkey = \"devices.gpu.count\"\nvalues = []\n"),
];

const OVERRIDES: &[&str] = &[
    "policy.background_share",
    "=3",
    "policy..background_share=1",
    "policy.background_share=",
    "policy.background_share=[1",
    "policy.background_shar=1",
    "policy.background_share=2",
    "workload.cat.arrivals.rate=1",
    "workload.chat.arrivals.rat=1",
    "workload.chat.arrivals.rate=fast",
    "workload.chat.deadline.x=1",
    "workload.chat.model=mm",
    "devices.gpu0.count=2",
    "models.n.slots=2",
    "run.horizon=10",
    "base=other.toml",
    "faults.crash.at=1s",
];

fn told(text: &str, overrides: &[&str]) -> String {
    let file = ScenarioFile::parse(text, Path::new("wrong.toml"));
    let overrides = overrides.iter().map(|text| Override::parse(text)).collect::<Result<Vec<_>, _>>();
    let scenario = file.and_then(|file| file.resolve(&overrides?));
    scenario.err().map_or_else(|| "nothing is wrong".to_owned(), |error| error.to_string())
}

#[test]
fn the_file_that_is_changed_is_right() {
    assert_eq!(told(GOOD, &[]), "nothing is wrong");
}

#[test]
fn errors_of_a_file_say_where_what_and_what_would_be_right() {
    let mut all = String::new();
    for (from, to) in CHANGES {
        let text = if from.is_empty() { format!("{GOOD}{to}") } else { GOOD.replacen(from, to, 1) };
        assert_ne!(text, GOOD, "{from} is not in the file");
        all += &format!("---- {from:?} -> {to:?}\n{}\n\n", told(&text, &[]));
    }
    assert!(!all.contains("nothing is wrong"), "{all}");
    insta::assert_snapshot!(all);
}

#[test]
fn errors_of_an_override_name_the_override() {
    let all: String = OVERRIDES.iter().map(|one| format!("{}\n\n", told(GOOD, &[one]))).collect();
    insta::assert_snapshot!(all);
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let text = GOOD.replace("alpha", "alhpa").replace("\"16GiB\"", "16").replace("rate = 1500", "rate = -1");
    insta::assert_snapshot!(told(&text, &["policy.background_share=7"]));
}

#[test]
fn a_long_line_is_cut_around_the_place_and_tabs_stay_tabs() {
    let list = vec!["\"0s\""; 100].join(", ");
    let arrivals = format!("\tarrivals = {{ process = \"at\", times = [{list}, 7, {list}] }}");
    let text = GOOD.replace("arrivals = { process = \"poisson\", rate = 1500 }", &arrivals);
    let short = GOOD.replace("slots = 2", "\tslots\t=\t\"zwölf\"");
    insta::assert_snapshot!(format!("{}\n\n{}", told(&text, &[]), told(&short, &[])));
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let error = ScenarioFile::load(Path::new("no/such.toml")).unwrap_err().to_string();
    assert_eq!(error, "the scenario: needs no/such.toml, which does not exist");
    let text = format!("base = \"no/base.toml\"\n{GOOD}");
    let error = ScenarioFile::parse(&text, Path::new("wrong.toml")).unwrap_err().to_string();
    assert!(error.starts_with("wrong.toml:1:8: `base` needs no/base.toml, which does not exist\n"), "{error}");
}

#[test]
fn what_is_no_text_is_shown_at_its_place() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bytes.toml");
    std::fs::write(&path, b"title = \"zw\xf6lf\"\n").expect("the folder for files of tests can be written to");
    let error = ScenarioFile::load(&path).unwrap_err().to_string();
    assert!(error.contains("bytes.toml:1:12: is not UTF-8 from here on\n"), "{error}");
    let text = format!("base = '{}'\n{GOOD}", path.display());
    let error = ScenarioFile::parse(&text, Path::new("over.toml")).unwrap_err().to_string();
    assert!(error.contains("bytes.toml:1:12: is not UTF-8 from here on\n"), "{error}");
}

#[test]
fn a_key_of_endless_parts_is_refused_at_once() {
    let error = Override::parse(&format!("models.m{}=1", ".a".repeat(50_000))).unwrap_err();
    assert_eq!(error.problems()[0].message, "has a key of 50002 parts; none has more than 32");
}

#[test]
fn a_name_as_long_as_a_file_is_cut_where_it_is_told() {
    let name = "x".repeat(100_000);
    for error in [told(&format!("{GOOD}\n[{name}]\n"), &[]), told(GOOD, &[&format!("policy.{name}=1")])] {
        assert!(error.len() < 4_000, "{} bytes", error.len());
    }
}

#[test]
fn a_base_takes_only_what_a_configuration_has() {
    let text = "base = 'everything.toml'\n";
    let origin = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/over.toml");
    let error = ScenarioFile::parse(text, &origin).unwrap_err();
    let messages: Vec<&str> = error.problems().iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(messages[..2], ["unknown key `title`", "unknown key `run`"]);
    assert!(error.problems()[0].source.ends_with("tests/files/everything.toml"));
}

//! The flags of the real server that are known here, as its help lists them.

/// A flag: its names, what it takes, and what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    pub names: &'static [&'static str],
    pub takes: Option<&'static str>,
    pub text: &'static str,
}

const fn flag(names: &'static [&'static str], text: &'static str) -> Flag {
    Flag { names, takes: None, text }
}

const fn with(names: &'static [&'static str], takes: &'static str, text: &'static str) -> Flag {
    Flag { names, takes: Some(takes), text }
}

/// Those that matter to whoever starts servers, and common ones that change nothing here.
pub const FLAGS: [Flag; 52] = [
    flag(&["-h", "--help", "--usage"], "print usage and exit"),
    flag(&["--version"], "show version and build info"),
    with(&["-t", "--threads"], "N", "number of CPU threads to use during generation"),
    with(&["-tb", "--threads-batch"], "N", "number of threads to use during batch and prompt processing"),
    with(&["-c", "--ctx-size"], "N", "size of the prompt context"),
    with(&["-n", "--predict", "--n-predict"], "N", "number of tokens to predict"),
    with(&["-b", "--batch-size"], "N", "logical maximum batch size"),
    with(&["-ub", "--ubatch-size"], "N", "physical maximum batch size"),
    with(&["-fa", "--flash-attn"], "[on|off|auto]", "set Flash Attention use"),
    flag(&["--swa-full"], "use full-size SWA cache"),
    with(&["-ctk", "--cache-type-k"], "TYPE", "KV cache data type for K"),
    with(&["-ctv", "--cache-type-v"], "TYPE", "KV cache data type for V"),
    flag(&["--mlock"], "force system to keep model in RAM"),
    flag(&["--mmap", "--no-mmap"], "whether to memory-map model"),
    with(&["-dev", "--device"], "<dev1,dev2,..>", "comma-separated list of devices to use for offloading"),
    flag(&["--list-devices"], "print list of available devices and exit"),
    with(&["-ot", "--override-tensor"], "<tensor name pattern>=<buffer type>,...", "override tensor buffer type"),
    flag(&["-cmoe", "--cpu-moe"], "keep all Mixture of Experts (MoE) weights in the CPU"),
    with(&["-ncmoe", "--n-cpu-moe"], "N", "keep the MoE weights of the first N layers in the CPU"),
    with(&["-ngl", "--gpu-layers", "--n-gpu-layers"], "N", "max. number of layers to store in VRAM"),
    with(&["-sm", "--split-mode"], "{none,layer,row,tensor}", "how to split the model across multiple GPUs"),
    with(&["-ts", "--tensor-split"], "N0,N1,N2,...", "fraction of the model to offload to each GPU"),
    with(&["-mg", "--main-gpu"], "INDEX", "the GPU to use for the model"),
    with(&["-fit", "--fit"], "[on|off]", "whether to adjust unset arguments to fit in device memory"),
    with(&["--lora"], "FNAME", "path to LoRA adapter"),
    with(&["-m", "--model"], "FNAME", "model path to load"),
    with(&["-lv", "--verbosity", "--log-verbosity"], "N", "set the verbosity threshold"),
    flag(&["--log-disable"], "log disable"),
    with(&["-s", "--seed"], "SEED", "RNG seed"),
    with(&["--temp", "--temperature"], "N", "temperature"),
    with(&["-ctxcp", "--ctx-checkpoints", "--swa-checkpoints"], "N", "max number of context checkpoints per slot"),
    with(&["-cram", "--cache-ram"], "N", "set the maximum cache size in MiB"),
    flag(&["-kvu", "--kv-unified", "-no-kvu", "--no-kv-unified"], "use single unified KV buffer"),
    flag(&["--warmup", "--no-warmup"], "whether to perform warmup with an empty run"),
    with(&["--pooling"], "{none,mean,cls,last,rank}", "pooling type for embeddings"),
    with(&["-np", "--parallel"], "N", "number of server slots"),
    with(&["-mm", "--mmproj"], "FILE", "path to a multimodal projector file"),
    with(&["-a", "--alias"], "STRING", "set model name aliases, comma-separated"),
    with(&["--host"], "HOST", "ip address to listen"),
    with(&["--port"], "PORT", "port to listen"),
    flag(&["--ui", "--webui", "--no-ui", "--no-webui"], "whether to enable the Web UI"),
    flag(&["--embedding", "--embeddings"], "restrict to only support embedding use case"),
    flag(&["--rerank", "--reranking"], "enable reranking endpoint on server"),
    with(&["--api-key"], "KEY", "API key to use for authentication (env: LLAMA_API_KEY)"),
    with(&["--api-key-file"], "FNAME", "path to file containing API keys"),
    with(&["-to", "--timeout"], "N", "server read/write timeout in seconds"),
    with(&["--threads-http"], "N", "number of threads used to process HTTP requests"),
    flag(&["--metrics"], "enable prometheus compatible metrics endpoint"),
    flag(&["--slots", "--no-slots"], "expose slots monitoring endpoint"),
    flag(&["--jinja", "--no-jinja"], "whether to use jinja template engine for chat"),
    with(&["--reasoning-format"], "FORMAT", "controls whether thought tags are allowed"),
    with(&["--chat-template-kwargs"], "STRING", "sets additional params for the json template parser"),
];

/// The help, without the flags named in `hidden`.
pub fn help(hidden: &[&str]) -> String {
    let shown = FLAGS.iter().filter(|flag| !is_hidden(flag, hidden));
    let lines = shown.map(|flag| {
        let takes = flag.takes.map(|takes| format!(" {takes}")).unwrap_or_default();
        format!("{:<40}{}\n", format!("{}{takes}", flag.names.join(", ")), flag.text)
    });
    format!("----- common params -----\n\n{}", lines.collect::<String>())
}

/// The flag of that name, unless it is hidden.
pub fn find(name: &str, hidden: &[&str]) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.names.contains(&name) && !is_hidden(flag, hidden))
}

fn is_hidden(flag: &Flag, hidden: &[&str]) -> bool {
    flag.names.iter().any(|name| hidden.contains(name))
}

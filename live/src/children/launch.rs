//! The command line and the environment of a child.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf};

use windtunnel_core::DeviceKind;

use crate::footprint::Pool;

use super::{
    build::Build,
    settings::{ChildDevice, ChildModel, Purpose, Select},
};

/// Carries the mark by which our processes are known, and those they start.
pub const MARK: &str = "WINDTUNNEL_CHILD";

/// Has a `llama-server` end with its stdin. Its value is the port of a router, which there is none of.
const HELD: &str = "LLAMA_SERVER_ROUTER_PORT";

/// A process to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(String, OsString)>,
}

/// What belongs to one launch and no other.
#[derive(Clone, Debug)]
pub struct Identity {
    pub address: SocketAddr,
    pub key: String,
    pub mark: String,
}

impl Launch {
    /// The launch of a model on a device with a build of the server.
    pub fn new(model: &ChildModel, device: &ChildDevice, build: &Build, identity: &Identity) -> Launch {
        let mut line = Line { build, arguments: model.arguments.iter().map(OsString::from).collect() };
        line.value(&["-m", "--model"], &model.file);
        if let Some(projector) = &model.projector {
            line.value(&["-mm", "--mmproj"], projector);
        }
        line.value(&["-a", "--alias"], &model.name);
        if let Some(context) = model.context {
            line.value(&["-c", "--ctx-size"], context.to_string());
        }
        line.slots(model);
        match &device.select {
            // Not only layers: without this the server still opens every device it finds.
            Select::Processor => line.value(&["-dev", "--device"], "none"),
            Select::Only | Select::Cuda { .. } | Select::Vulkan { .. } | Select::Hip { .. } => {}
        }
        if let Some(layers) = &model.gpu_layers {
            line.value(&["-ngl", "--gpu-layers", "--n-gpu-layers"], layers);
        }
        line.purpose(model.purpose);
        line.value(&["-fit", "--fit"], "off");
        line.flag(&["--no-webui", "--no-ui"], &["--webui", "--ui"]);
        if device.kind == DeviceKind::Unified {
            line.frugal();
        }
        line.identity(identity);
        let mut environment: Vec<(String, OsString)> = [&device.environment, &model.environment]
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.into()))
            .collect();
        environment.extend(selection(&device.select).into_iter().map(|(name, value)| (name.to_owned(), value.into())));
        environment.push((MARK.to_owned(), identity.mark.clone().into()));
        environment.push((HELD.to_owned(), "0".into()));
        if build.knows_word(KEY) {
            environment.push((KEY.to_owned(), identity.key.clone().into()));
        }
        Launch { program: build.program().to_owned(), arguments: line.arguments, environment }
    }
}

/// Where a build reads its key, if its help says so: other users see the arguments of a process, not its environment.
const KEY: &str = "LLAMA_API_KEY";

struct Line<'a> {
    build: &'a Build,
    arguments: Vec<OsString>,
}

impl Line<'_> {
    /// A flag with a value, by the first of its names that the build knows, unless the model's arguments have it.
    fn value(&mut self, names: &[&str], value: impl Into<OsString>) {
        if let Some(name) = self.wanted(names) {
            self.arguments.extend([name.into(), value.into()]);
        }
    }

    /// A flag without one; `opposites` are other names under which the model's arguments may speak of it.
    fn flag(&mut self, names: &[&str], opposites: &[&str]) {
        if !self.has(opposites)
            && let Some(name) = self.wanted(names)
        {
            self.arguments.push(name.into());
        }
    }

    /// A build that cannot share its context among slots has one for everything.
    fn slots(&mut self, model: &ChildModel) {
        let (names, opposites) = (["-kvu", "--kv-unified"], ["-no-kvu", "--no-kv-unified"]);
        let shares = names.iter().any(|name| self.build.knows_flag(name)) && !self.has(&opposites);
        let slots = match model.pool {
            Pool::Divided => model.slots,
            Pool::Shared if shares => {
                self.flag(&names, &opposites);
                model.slots
            }
            Pool::Shared => 1,
        };
        self.value(&["-np", "--parallel"], slots.to_string());
    }

    fn purpose(&mut self, purpose: Purpose) {
        match purpose {
            Purpose::Text => {}
            Purpose::Embedding => self.flag(&["--embeddings", "--embedding"], &[]),
            Purpose::Rerank => self.flag(&["--reranking", "--rerank"], &[]),
        }
    }

    /// Where all memory is the host's, nothing is kept twice and nothing is kept for later.
    fn frugal(&mut self) {
        self.flag(&["--no-mmap"], &["--mmap"]);
        self.value(&["-cram", "--cache-ram"], "0");
        self.value(&["-ctxcp", "--ctx-checkpoints", "--swa-checkpoints"], "0");
    }

    /// Said last and whatever was said before, since the last counts.
    fn identity(&mut self, identity: &Identity) {
        self.arguments.extend(["--host".into(), identity.address.ip().to_string().into()]);
        self.arguments.extend(["--port".into(), identity.address.port().to_string().into()]);
        if !self.build.knows_word(KEY) {
            self.arguments.extend(["--api-key".into(), identity.key.clone().into()]);
        }
    }

    fn wanted<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        if self.has(names) { None } else { names.iter().copied().find(|name| self.build.knows_flag(name)) }
    }

    fn has(&self, names: &[&str]) -> bool {
        self.arguments.iter().any(|argument| names.iter().any(|name| argument == name))
    }
}

fn selection(select: &Select) -> Vec<(&'static str, String)> {
    match select {
        Select::Only | Select::Processor => Vec::new(),
        Select::Cuda { uuid } => {
            vec![("CUDA_VISIBLE_DEVICES", uuid.clone()), ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned())]
        }
        Select::Vulkan { index } => vec![("GGML_VK_VISIBLE_DEVICES", index.to_string())],
        Select::Hip { name } if name.starts_with("GPU-") => vec![("ROCR_VISIBLE_DEVICES", name.clone())],
        Select::Hip { name } => vec![("HIP_VISIBLE_DEVICES", name.clone())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "----- common params -----\n\n\
        -c,    --ctx-size N                     size of the prompt context\n\
        -m,    --model FNAME                    model path to load\n\
        -np,   --parallel N                     number of server slots\n\
        -ngl,  --gpu-layers, --n-gpu-layers N   layers to store in VRAM\n\
        --mmap, --no-mmap                       whether to memory-map model\n\
        -cram, --cache-ram N                    set the maximum cache size\n\
        --no-webui                              disable the Web UI\n\
        --embedding, --embeddings               restrict to embedding\n\
        --api-key KEY                           API key to use for authentication\n";

    fn model() -> ChildModel {
        ChildModel {
            name: "small".to_owned(),
            program: "llama-server".into(),
            file: "/models/small.gguf".into(),
            projector: None,
            purpose: Purpose::Text,
            context: Some(8192),
            slots: 2,
            pool: Pool::Divided,
            gpu_layers: Some("99".to_owned()),
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    fn launch(model: &ChildModel, kind: DeviceKind, select: Select, help: &str) -> (String, Vec<(String, OsString)>) {
        let device = ChildDevice { kind, select, environment: Vec::new() };
        let build = Build::of_help("/bin/llama-server".into(), help);
        let identity =
            Identity { address: ([127, 0, 0, 1], 4242).into(), key: "secret".to_owned(), mark: "mark".to_owned() };
        let launch = Launch::new(model, &device, &build, &identity);
        let arguments: Vec<String> = launch.arguments.iter().map(|one| one.to_string_lossy().into_owned()).collect();
        (arguments.join(" "), launch.environment)
    }

    #[test]
    fn everything_is_said_that_a_build_knows() {
        let (line, environment) = launch(&model(), DeviceKind::Discrete, Select::Only, HELP);
        assert_eq!(
            line,
            "-m /models/small.gguf -c 8192 -np 2 -ngl 99 --no-webui --host 127.0.0.1 --port 4242 --api-key secret"
        );
        assert!(environment.iter().all(|(name, _)| name != KEY));
    }

    #[test]
    fn the_key_stays_out_of_the_arguments_where_a_build_reads_it_elsewhere() {
        let help = format!("{HELP}    (env: LLAMA_API_KEY)\n");
        let (line, environment) = launch(&model(), DeviceKind::Discrete, Select::Only, &help);
        assert!(!line.contains("secret"), "{line}");
        assert!(environment.contains(&(KEY.to_owned(), "secret".into())));
    }

    #[test]
    fn unified_memory_keeps_nothing_beside_the_model_unless_the_model_says_so() {
        let (line, _) = launch(&model(), DeviceKind::Unified, Select::Only, HELP);
        assert!(line.contains("--no-mmap -cram 0 --host"), "{line}");
        let arguments = ["--mmap", "--cache-ram", "64", "-ngl", "7"].map(str::to_owned).to_vec();
        let (line, _) = launch(&ChildModel { arguments, ..model() }, DeviceKind::Unified, Select::Only, HELP);
        assert!(line.starts_with("--mmap --cache-ram 64 -ngl 7 -m ") && !line.contains("--no-mmap"), "{line}");
        assert!(!line.contains("-cram 0") && !line.contains("-ngl 99"), "{line}");
    }

    #[test]
    fn inputs_of_a_batch_share_the_context_where_a_build_can() {
        let batches = ChildModel { slots: 32, pool: Pool::Shared, ..model() };
        let (line, _) = launch(&batches, DeviceKind::Discrete, Select::Only, HELP);
        assert!(line.contains(" -np 1 ") && !line.contains("-kvu"), "{line}");
        let help = format!("{HELP}-kvu,  --kv-unified, -no-kvu, --no-kv-unified   use single unified KV buffer\n");
        let (line, _) = launch(&batches, DeviceKind::Discrete, Select::Only, &help);
        assert!(line.contains(" -kvu -np 32 "), "{line}");
        let arguments = vec!["--no-kv-unified".to_owned()];
        let (line, _) = launch(&ChildModel { arguments, ..batches }, DeviceKind::Discrete, Select::Only, &help);
        assert!(line.contains(" -np 1 ") && !line.contains("-kvu"), "{line}");
    }

    #[test]
    fn a_process_sees_its_device_alone() {
        let of = |select| launch(&model(), DeviceKind::Discrete, select, HELP).1;
        let cuda = of(Select::Cuda { uuid: "GPU-1".to_owned() });
        assert!(cuda.contains(&("CUDA_VISIBLE_DEVICES".to_owned(), "GPU-1".into())));
        assert!(cuda.contains(&("CUDA_DEVICE_ORDER".to_owned(), "PCI_BUS_ID".into())));
        assert!(of(Select::Vulkan { index: 1 }).contains(&("GGML_VK_VISIBLE_DEVICES".to_owned(), "1".into())));
        assert!(of(Select::Hip { name: "0".to_owned() }).contains(&("HIP_VISIBLE_DEVICES".to_owned(), "0".into())));
        let help = format!("{HELP}-dev,  --device <dev1,dev2,..>           devices for offloading\n");
        assert!(launch(&model(), DeviceKind::Unified, Select::Processor, &help).0.contains("-dev none"));
    }
}

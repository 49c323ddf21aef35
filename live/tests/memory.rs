//! Memory as the systems' own files and tools tell it, from trees and outputs in their form.

mod fixtures;

use fixtures::Folder;
use windtunnel_core::{DeviceKind, PressureLevel};
use windtunnel_live::monitor::{
    Figure, Reading, Source, Unreadable,
    amd::{Amd, cards},
    apple::{Apple, Tools, parse},
    host::Host,
};

const MIB: u64 = 1 << 20;

fn tree(name: &str, files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new(name);
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn bytes(figure: Option<Figure>) -> Option<u64> {
    figure.map(|figure| figure.bytes.get())
}

fn of_processes(reading: &Reading) -> Vec<Option<u64>> {
    reading.processes.iter().map(|process| bytes(process.used)).collect()
}

const MEMINFO: &str = "MemTotal:        8388608 kB\nMemFree:         1048576 kB\nMemAvailable:    6291456 kB\n\
    SwapTotal:       1048576 kB\nSwapFree:         786432 kB\n";

/// Process 20 started 21, whose child 22 was left alone and belongs to the group still; 30 is somebody else's.
const PROCESSES: [(&str, &str); 8] = [
    ("proc/20/stat", "20 (llama-server) S 1 20 20 0 -1 4194304"),
    ("proc/20/smaps_rollup", "55d0c000-7ffd0000 ---p 00000000 00:00 0    [rollup]\nRss:  4096 kB\nPss:  2048 kB\n"),
    ("proc/21/stat", "21 (a (b) c) S 20 20 20 0 -1 4194304"),
    ("proc/21/smaps_rollup", "Rss:  1024 kB\nPss:  1024 kB\nPss_Anon: 512 kB\n"),
    ("proc/22/stat", "22 (w) S 1 20 20 0 -1 4194304"),
    ("proc/22/status", "Name:\tw\nVmRSS:\t     512 kB\n"),
    ("proc/30/stat", "30 (other) S 1 30 30 0 -1 0"),
    ("proc/30/smaps_rollup", "Pss:  9999 kB\n"),
];

#[test]
fn a_machine_without_limits_has_what_is_available() {
    let mut files = vec![
        ("proc/meminfo", MEMINFO),
        ("proc/self/cgroup", "0::/user.slice\n"),
        ("sys/fs/cgroup/user.slice/memory.max", "max\n"),
        (
            "proc/pressure/memory",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        ),
    ];
    files.extend(PROCESSES);
    let folder = tree("plain", &files);
    let reading = Host::below(folder.join("")).read(&[20, 30, 99]).unwrap();
    assert_eq!((bytes(reading.total), bytes(reading.used)), (Some(8192 * MIB), Some(2048 * MIB)));
    assert_eq!(of_processes(&reading), [Some(3584 << 10), Some(9999 << 10), None]);
    assert_eq!(reading.processes[0].used.map(|figure| figure.source), Some("/proc/PID/smaps_rollup Pss"));
    assert_eq!((reading.pressure, bytes(reading.swapped)), (Some(PressureLevel::Normal), Some(256 * MIB)));
}

#[test]
fn the_tightest_limit_of_a_control_group_counts() {
    let files = [
        ("proc/meminfo", MEMINFO),
        ("proc/self/cgroup", "0::/a/b\n"),
        ("sys/fs/cgroup/a/memory.max", "4294967296\n"),
        ("sys/fs/cgroup/a/memory.current", "2147483648\n"),
        ("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 1073741824\nactive_file 7\n"),
        ("sys/fs/cgroup/a/b/memory.max", "max\n"),
    ];
    let folder = tree("second", &files);
    let reading = Host::below(folder.join("")).read(&[]).unwrap();
    assert_eq!((bytes(reading.total), bytes(reading.used)), (Some(4096 * MIB), Some(1024 * MIB)));
    assert_eq!(reading.total.map(|total| total.source), Some("cgroup memory.max"));
    assert_eq!(reading.pressure, None);
}

#[test]
fn within_a_limit_the_machine_may_be_the_tighter_one() {
    let files = [
        ("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 524288 kB\n"),
        ("proc/self/cgroup", "12:cpu:/x\n9:memory:/docker/77\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "4294967296\n"),
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n"),
    ];
    let folder = tree("first", &files);
    let reading = Host::below(folder.join("")).read(&[]).unwrap();
    assert_eq!((bytes(reading.total), bytes(reading.used)), (Some(4096 * MIB), Some(3584 * MIB)));
}

#[test]
fn a_limit_beyond_all_memory_is_none() {
    let files = [
        ("proc/meminfo", MEMINFO),
        ("proc/self/cgroup", "9:memory:/\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
    ];
    let folder = tree("unlimited", &files);
    let reading = Host::below(folder.join("")).read(&[]).unwrap();
    assert_eq!(bytes(reading.total), Some(8192 * MIB));
}

#[test]
fn how_scarce_memory_is_goes_by_who_waits_for_it() {
    for (some, full, level) in [
        ("19.99", "0.00", PressureLevel::Normal),
        ("20.00", "19.99", PressureLevel::Warn),
        ("45.10", "20.00", PressureLevel::Critical),
    ] {
        let pressure =
            format!("some avg10={some} avg60=0 avg300=0 total=1\nfull avg10={full} avg60=0 avg300=0 total=1\n");
        let folder = tree(&format!("scarce-{some}"), &[("proc/meminfo", MEMINFO), ("proc/pressure/memory", &pressure)]);
        assert_eq!(Host::below(folder.join("")).read(&[]).unwrap().pressure, Some(level), "{some} {full}");
    }
}

#[test]
fn what_tells_nothing_is_said_to_tell_nothing() {
    let folder = tree("empty", &[("proc/meminfo", "Nothing: 1 kB\n")]);
    let error = Host::below(folder.join("")).read(&[]).unwrap_err().to_string();
    assert!(error.ends_with("proc/meminfo tells neither MemTotal nor MemAvailable"), "{error}");
    let partial = tree("partial", &[("proc/meminfo", "MemTotal: 1024 kB\n")]);
    let reading = Host::below(partial.join("")).read(&[]).unwrap();
    assert_eq!((bytes(reading.total), reading.used), (Some(MIB), None));
}

#[cfg(target_os = "linux")]
#[test]
fn this_machine_and_this_process_can_be_read() {
    let own = std::process::id();
    let reading = Host::new().read(&[own, u32::MAX - 1]).unwrap();
    assert!(reading.total.is_some() && reading.used.is_some());
    let [here, gone] = &reading.processes[..] else { panic!("two were asked for") };
    assert!(bytes(here.used).is_some_and(|used| used > 100 << 10), "{here:?}");
    assert_eq!(gone.used, None);
}

const CARD: [(&str, &str); 7] = [
    ("sys/class/drm/card1/device/vendor", "0x1002\n"),
    ("sys/class/drm/card1/device/uevent", "DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:03:00.0\n"),
    ("sys/class/drm/card1/device/unique_id", "8a6b2f3c1d4e5f60\n"),
    ("sys/class/drm/card1/device/mem_info_vram_total", "25753026560\n"),
    ("sys/class/drm/card1/device/mem_info_vram_used", "1073741824\n"),
    ("sys/class/drm/card1/device/mem_info_gtt_total", "33554432000\n"),
    ("sys/class/drm/card1/device/mem_info_gtt_used", "20971520\n"),
];

const INTEGRATED: [(&str, &str); 6] = [
    ("sys/class/drm/card0/device/vendor", "0x1002\n"),
    ("sys/class/drm/card0/device/uevent", "PCI_SLOT_NAME=0000:c5:00.0\n"),
    ("sys/class/drm/card0/device/mem_info_vram_total", "536870912\n"),
    ("sys/class/drm/card0/device/mem_info_vram_used", "104857600\n"),
    ("sys/class/drm/card0/device/mem_info_gtt_total", "16777216000\n"),
    ("sys/class/drm/card0/device/mem_info_gtt_used", "209715200\n"),
];

const OPEN_FILES: [(&str, &str); 4] = [
    (
        "proc/20/fdinfo/5",
        "pos:\t0\nflags:\t02100002\ndrm-driver:\tamdgpu\ndrm-client-id:\t41\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t2048 KiB\ndrm-memory-gtt: \t1024 KiB\n",
    ),
    (
        "proc/20/fdinfo/6",
        "drm-driver:\tamdgpu\ndrm-client-id:\t41\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t2048 KiB\ndrm-memory-gtt: \t1024 KiB\n",
    ),
    ("proc/21/fdinfo/9", "drm-driver:\tamdgpu\ndrm-client-id:\t42\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t1 MiB\n"),
    (
        "proc/20/fdinfo/7",
        "drm-driver:\tamdgpu\ndrm-client-id:\t43\ndrm-pdev:\t0000:c5:00.0\ndrm-resident-vram:\t64 KiB\ndrm-resident-gtt:\t192 KiB\n",
    ),
];

fn both() -> Folder {
    let mut files: Vec<(&str, &str)> = CARD.to_vec();
    files.extend(INTEGRATED);
    files.extend(OPEN_FILES);
    files.extend(PROCESSES);
    files.push(("sys/class/drm/card2/device/vendor", "0x10de\n"));
    files.push(("sys/class/drm/card1-DP-1/status", "connected\n"));
    tree("amd", &files)
}

#[test]
fn cards_are_told_from_integrated_graphics() {
    let folder = both();
    let found = cards(&folder.join(""));
    let told: Vec<_> = found.iter().map(|card| (card.id.as_str(), card.kind)).collect();
    assert_eq!(told, [("0000:c5:00.0", DeviceKind::Unified), ("GPU-8a6b2f3c1d4e5f60", DeviceKind::Discrete)]);
}

#[test]
fn a_card_has_its_own_memory_and_each_client_counts_once() {
    let folder = both();
    let card = cards(&folder.join(""))[1].clone();
    let reading = Amd::new(folder.join(""), card, DeviceKind::Discrete).read(&[20, 30]).unwrap();
    assert_eq!((bytes(reading.total), bytes(reading.used)), (Some(25_753_026_560), Some(1 << 30)));
    assert_eq!(of_processes(&reading), [Some(3 << 20), None]);
}

#[test]
fn integrated_graphics_have_what_they_share_too() {
    let folder = both();
    let card = cards(&folder.join(""))[0].clone();
    let reading = Amd::new(folder.join(""), card, DeviceKind::Unified).read(&[20]).unwrap();
    assert_eq!(bytes(reading.total), Some(536_870_912 + 16_777_216_000));
    assert_eq!(bytes(reading.used), Some(104_857_600 + 209_715_200));
    assert_eq!(of_processes(&reading), [Some(256 << 10)]);
    assert!(reading.total.is_some_and(|total| total.source.contains("gtt")), "that is said");
}

#[test]
fn a_card_that_went_away_says_so() {
    let folder = both();
    let card = cards(&folder.join(""))[1].clone();
    std::fs::remove_dir_all(folder.join("sys")).unwrap();
    let error = Amd::new(folder.join(""), card, DeviceKind::Discrete).read(&[30]).unwrap_err().to_string();
    assert!(error.starts_with("the driver tells nothing about 0000:03:00.0"), "{error}");
}

/// What the tools of a Mac print.
#[derive(Clone, Debug)]
struct Mac {
    sysctl: &'static str,
    ioreg: &'static str,
    list: &'static str,
}

const SYSCTL: &str = "hw.memsize: 25769803776\niogpu.wired_limit_mb: 0\nkern.memorystatus_vm_pressure_level: 1\n\
    vm.swapusage: total = 2048.00M  used = 1024.25M  free = 1023.75M  (encrypted)\n";
const IOREG: &str = r#"+-o AGXAcceleratorG16X  <class AGXAcceleratorG16X, id 0x1000004c1, registered, matched, active, busy 0 (0 ms), retain 92>
    {
      "IOClass" = "AGXAcceleratorG16X"
      "PerformanceStatistics" = {"In use system memory (driver)"=0,"Alloc system memory"=9124265984,"Device Utilization %"=3,"In use system memory"=1143226368}
      "model" = "Apple M4 Pro"
    }
"#;
const LIST: &str = "ggml_metal_device_init: GPU name:   Apple M4 Pro\nAvailable devices:\n  MTL0: Apple M4 Pro (18186 MiB, 18185 MiB free)\n  BLAS: Accelerate (0 MiB, 0 MiB free)\n";
const MAC: Mac = Mac { sysctl: SYSCTL, ioreg: IOREG, list: LIST };

impl Tools for Mac {
    fn run(&mut self, program: &str, arguments: &[&str]) -> Result<String, Unreadable> {
        let pid = arguments.last().copied().unwrap_or_default();
        match program.rsplit('/').next() {
            Some("sysctl") => Ok(self.sysctl.to_owned()),
            Some("ioreg") => Ok(self.ioreg.to_owned()),
            Some("llama-server") => Ok(self.list.to_owned()),
            Some("ps") => Ok("    1     0     1\n   20     1    20\n   21    20    20\n".to_owned()),
            Some("footprint") if pid == "20" => Ok("======================================================================\nllama-server [20]: 64-bit    Footprint: 5049942016 B (16384 bytes per page)\n======================================================================\n\n  Dirty  Clean\n".to_owned()),
            Some("footprint") if pid == "21" => Ok("worker [21]: 64-bit    Footprint: 16 KB (16384 bytes per page)\n".to_owned()),
            _ => Err(Unreadable(format!("{program} is not there"))),
        }
    }
}

#[test]
fn a_mac_is_read_through_its_tools() {
    let mut apple = Apple::new(MAC, Some("/opt/llama-server".into()));
    let reading = apple.read(&[20, 99]).unwrap();
    assert_eq!(reading.total, Some(Figure::new(18186 * MIB, "llama-server --list-devices")));
    assert_eq!(reading.used, Some(Figure::new(1_143_226_368, "ioreg In use system memory")));
    assert_eq!(of_processes(&reading), [Some(5_049_942_016 + (16 << 10)), None]);
    assert_eq!(reading.pressure, Some(PressureLevel::Normal));
    assert_eq!(bytes(reading.swapped), Some(1024 * MIB + MIB / 4));
}

#[test]
fn without_a_runtime_the_limit_or_the_rule_tells_what_a_mac_has() {
    let total = |sysctl| Apple::new(Mac { sysctl, ..MAC }, None).total().unwrap();
    assert_eq!(bytes(total(SYSCTL)), Some(16 << 30), "two thirds of 24 GiB");
    assert_eq!(bytes(total("hw.memsize: 51539607552\n")), Some(36 << 30), "three quarters of 48 GiB");
    let set = total("hw.memsize: 51539607552\niogpu.wired_limit_mb: 40960\n");
    assert_eq!(set, Some(Figure::new(40 << 30, "sysctl iogpu.wired_limit_mb")));
    assert_eq!(total("nothing\n"), None);
}

#[test]
fn a_mac_whose_tools_print_something_else_is_partly_known() {
    let odd = Mac { sysctl: "kern.memorystatus_vm_pressure_level: 4\nvm.swapusage: odd\n", ioreg: "{}", list: "" };
    let reading = Apple::new(odd, Some("/opt/llama-server".into())).read(&[]).unwrap();
    let expected = Reading { pressure: Some(PressureLevel::Critical), ..Reading::default() };
    assert_eq!(reading, expected);
}

#[test]
fn devices_that_a_runtime_lists_may_have_brackets_in_their_names() {
    let text = "Available devices:\n  Vulkan0: llvmpipe (LLVM 19.1.7, 256 bits) (2048 MiB, 2047 MiB free)\n  (none)\n";
    let [listed] = &parse::devices(text)[..] else { panic!("one device") };
    assert_eq!((listed.name.as_str(), listed.description.as_str()), ("Vulkan0", "llvmpipe (LLVM 19.1.7, 256 bits)"));
    assert_eq!((listed.total, listed.free), (2048 * MIB, 2047 * MIB));
}

#[test]
fn figures_that_make_no_sense_are_left_out() {
    let figure = |bytes| Some(Figure::new(bytes, "test"));
    let reading = Reading { total: figure(10), used: figure(11), ..Reading::default() };
    assert_eq!(reading.plausible(), Reading { total: figure(10), ..Reading::default() });
    let nothing = Reading { total: figure(0), used: figure(11), ..Reading::default() };
    assert_eq!(nothing.plausible(), Reading { used: figure(11), ..Reading::default() });
}

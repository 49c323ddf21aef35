//! Rules that send single tensors to a buffer of another kind.

use regex::Regex;

use super::breakdown::Side;

/// A rule of `-ot`: tensors whose names match go where it says.
#[derive(Clone, Debug)]
pub struct Override {
    pattern: Regex,
    side: Side,
}

impl Override {
    /// Reads `PATTERN=BUFFER`; the buffer `CPU` (and its pinned and repacked kinds) is the host, any other the device.
    /// Nothing if it is no such rule. The pattern is searched for anywhere in a name.
    pub fn parse(rule: &str) -> Option<Override> {
        let (pattern, buffer) = rule.rsplit_once('=')?;
        let host = buffer.to_ascii_uppercase().starts_with("CPU") || buffer.ends_with("_Host");
        let side = if host { Side::Host } else { Side::Device };
        Regex::new(pattern).ok().map(|pattern| Override { pattern, side })
    }

    /// `--cpu-moe`: every expert to the host.
    pub fn experts() -> Override {
        Override::host(r"\.ffn_(up|down|gate|gate_up)_(ch|)exps")
    }

    /// `--n-cpu-moe`: the experts of one block to the host.
    pub fn experts_of(block: u64) -> Override {
        Override::host(&format!(r"blk\.{block}\.ffn_(up|down|gate|gate_up)_(ch|)exps"))
    }

    /// Where the tensor of this name goes, if the rule is about it.
    pub(super) fn side(&self, name: &str) -> Option<Side> {
        self.pattern.is_match(name).then_some(self.side)
    }

    fn host(pattern: &str) -> Override {
        let pattern = Regex::new(pattern).unwrap_or_else(|wrong| unreachable!("a fixed pattern: {wrong}"));
        Override { pattern, side: Side::Host }
    }
}

//! Reads the lines about live blocks.

use super::{ProfileParser, Words};
use crate::allocation_sites::MemoryBlocks;
use crate::profile::LiveBlocks;

fn blocks(words: &mut Words) -> Result<MemoryBlocks, String> {
    Ok(MemoryBlocks { blocks: words.number()?, bytes: words.number()? })
}

impl ProfileParser {
    /// Reads a line that begins with this word. Returns `false` if such lines are not about live blocks.
    pub(super) fn live_line(&mut self, kind: &str, mut words: Words) -> Result<bool, String> {
        let context = |reader: &ProfileParser, words: &mut Words| {
            ProfileParser::known(&reader.contexts, words.number()?, "context")
        };
        match kind {
            "live" => self.live().end = blocks(&mut words)?,
            "peak" => (self.live().peak, self.live().peak_at) = (blocks(&mut words)?, words.number()?),
            "inherited" => self.live().inherited = blocks(&mut words)?,
            "reused-blocks" => self.live().reused = words.number()?,
            "unseen-requests" => self.live().unseen = words.number()?,
            "s" => {
                let at = context(self, &mut words)?;
                let object = self.object(words.number()?)?;
                let after = words.address()?;
                self.live().calls.insert(at, (object, after));
            }
            "h" => {
                let at = context(self, &mut words)?;
                let amounts = (blocks(&mut words)?, blocks(&mut words)?);
                self.live().contexts.insert(at, amounts);
            }
            "l" => {
                let point = (words.number()?, words.number()?);
                self.live().course.push(point);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn live(&mut self) -> &mut LiveBlocks {
        self.profile.live.get_or_insert_default()
    }
}

impl LiveBlocks {
    /// Checks that the blocks of contexts add up to those of the process, and that the course contains the peak.
    pub(super) fn check(&self) -> Result<(), String> {
        let (mut peak, mut end) = (MemoryBlocks::default(), MemoryBlocks::default());
        for (at_peak, at_end) in self.contexts.values() {
            peak += *at_peak;
            end += *at_end;
        }
        if (peak, end) != (self.peak, self.end) {
            return Err(format!(
                "the contexts have {} bytes at the peak and {} at the end, but the process {} and {}",
                peak.bytes, end.bytes, self.peak.bytes, self.end.bytes
            ));
        }
        match self.course.iter().map(|(_, bytes)| *bytes).max() {
            Some(most) if most == self.peak.bytes => Ok(()),
            _ => Err("the course does not contain the peak".to_owned()),
        }
    }
}

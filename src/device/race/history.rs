//! The accesses to one buffer that still matter.
//!
//! An access no longer matters when everything that could conflict with it also conflicts with a later one that is
//! ordered after it and subsumes it, or when the host has waited for it.

use super::clock::{Clocks, Lane};
use super::region::Region;
use super::report::{Conflict, Side};
use super::touches::{Touch as Mark, Touches};
use crate::base::layout::Layout;
use crate::base::span::Origin;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    Read,
    Write,
}

/// One access, as the runtime describes it.
#[derive(Clone, Copy)]
pub struct Use<'a> {
    pub kind: Kind,
    /// In elements of the buffer.
    pub layout: &'a Layout,
    pub elem_bytes: usize,
    pub origin: Origin,
    /// The operation's name.
    pub op: &'static str,
}

#[derive(Clone)]
struct Access {
    kind: Kind,
    lane: u32,
    epoch: u64,
    origin: Origin,
    op: &'static str,
    region: Region,
    /// It accesses the whole buffer and had no conflict with earlier accesses.
    is_settled: bool,
}

impl Access {
    fn conflicts(&self, kind: Kind, region: &Region) -> bool {
        (self.kind == Kind::Write || kind == Kind::Write) && self.region.overlaps(region)
    }

    /// Whether everything that conflicts with `other` also conflicts with this.
    fn subsumes(&self, other: &Access) -> bool {
        (self.kind == Kind::Write || other.kind == Kind::Read) && self.region.contains(&other.region)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Nobody,
    One(u32),
    Several,
}

/// Bound: length of the list of accesses to parts of a buffer at its first cleanup.
const FIRST_CLEANUP: usize = 32;
/// Bound: accesses remembered of one buffer. So many accumulate only if a script accesses hundreds of different parts
/// with events between them and the host waits for none. The older half is then forgotten: a race with one of these is
/// missed, but no false race is reported. Merged parts count as done when the last of them is, so a host read of one
/// part is taken to order less than it does.
const REMEMBERED: usize = 1024;

/// What the detector knows about one buffer.
pub struct BufferClock {
    bytes: u64,
    owner: Owner,
    /// Only while one stream has accessed the buffer: its last write of the whole, and its last read of the whole after
    /// that.
    write: Option<Mark>,
    read: Option<Mark>,
    /// All other accesses, oldest first.
    rest: Vec<Access>,
    cleanup_at: u32,
}

impl BufferClock {
    /// A buffer of this many bytes that nothing has accessed.
    pub fn new(bytes: usize) -> BufferClock {
        BufferClock {
            bytes: bytes as u64,
            owner: Owner::Nobody,
            write: None,
            read: None,
            rest: Vec::new(),
            cleanup_at: FIRST_CLEANUP as u32,
        }
    }

    /// A buffer of this many bytes with the record of the time when only one stream accessed it.
    pub fn resume(bytes: usize, touches: &mut Touches) -> BufferClock {
        let mut clock = BufferClock::new(bytes);
        if touches.owner > 0 {
            clock.owner = Owner::One(touches.owner - 1);
            (clock.write, clock.read) = (touches.write.take(), touches.read.take());
        }
        clock
    }

    /// Accesses in the list.
    #[cfg(test)]
    pub fn remembered(&self) -> usize {
        self.rest.len()
    }

    fn is_whole(&self, access: &Use) -> bool {
        let layout = access.layout;
        layout.offset == 0
            && layout.is_contiguous()
            && (layout.numel() as u64).saturating_mul(access.elem_bytes as u64) == self.bytes
    }

    fn region(&self, access: &Use) -> Region {
        if self.is_whole(access) { Region::whole(self.bytes) } else { Region::of(access.layout, access.elem_bytes) }
    }

    /// Moves the marks of the single owner into the list.
    fn move_marks_to_list(&mut self) {
        let Owner::One(lane) = self.owner else { return };
        let whole = Region::whole(self.bytes);
        let access = |kind, mark: Mark| {
            let Mark { epoch, origin, op } = mark;
            Access { kind, lane, epoch, origin, op, region: whole.clone(), is_settled: true }
        };
        let marks = [(Kind::Write, self.write.take()), (Kind::Read, self.read.take())];
        for (kind, mark) in marks {
            let Some(mark) = mark else { continue };
            let place = self.rest.partition_point(|other| other.epoch < mark.epoch);
            self.rest.insert(place, access(kind, mark));
        }
    }

    /// Removes accesses that no longer matter and merges parts of the same access.
    fn clean_up(&mut self, clocks: &Clocks) {
        self.rest.retain(|access| !clocks.is_done((access.lane, access.epoch)));
        let mut remaining: Vec<Access> = Vec::with_capacity(self.rest.len());
        for access in self.rest.drain(..).rev() {
            if remaining.iter().any(|later| later.lane == access.lane && later.subsumes(&access)) {
                continue;
            }
            let same = |later: &Access| {
                (later.kind, later.lane, later.origin, later.op) == (access.kind, access.lane, access.origin, access.op)
                    && clocks.are_inseparable(access.lane, access.epoch)
            };
            let joined = |later: &Access| if same(later) { access.region.join(&later.region) } else { None };
            match remaining.iter_mut().find_map(|later| joined(later).map(|region| (later, region))) {
                Some((later, region)) => (later.region, later.is_settled) = (region, false),
                None => remaining.push(access),
            }
        }
        remaining.reverse();
        if remaining.len() > REMEMBERED / 2 {
            remaining.drain(..remaining.len() - REMEMBERED / 2);
        }
        self.cleanup_at = (2 * remaining.len()).clamp(FIRST_CLEANUP, REMEMBERED) as u32;
        self.rest = remaining;
    }

    /// Fast path for a stream that reads the whole buffer again, after a read without conflict and without a write
    /// since: what was ordered then is ordered now, and the new read replaces the old one. False for any other read.
    fn read_again(&mut self, lane: Lane, access: &Use, epoch: u64) -> bool {
        if self.owner != Owner::Several {
            return false;
        }
        // Usually it is the last access in the list: one stream reads in a loop.
        if let Some(known) = self.rest.last_mut()
            && (known.kind, known.lane, known.is_settled) == (Kind::Read, lane.0, true)
        {
            (known.epoch, known.origin, known.op) = (epoch, access.origin, access.op);
            return true;
        }
        for at in (0..self.rest.len()).rev() {
            let known = &mut self.rest[at];
            match known.kind {
                Kind::Write => return false,
                Kind::Read if known.lane == lane.0 && known.is_settled => {
                    (known.epoch, known.origin, known.op) = (epoch, access.origin, access.op);
                    // Keeps the list in order of age.
                    self.rest[at..].rotate_left(1);
                    return true;
                }
                Kind::Read => {}
            }
        }
        false
    }

    fn push(&mut self, access: Access, clocks: &Clocks) {
        self.rest.push(access);
        if self.rest.len() >= self.cleanup_at as usize {
            self.clean_up(clocks);
        }
    }
}

impl Clocks {
    /// As [`Clocks::access_known`]; computes whether the access is to the whole buffer.
    #[cfg(test)]
    pub fn access(&mut self, buffer: &mut BufferClock, lane: Lane, access: &Use) -> Option<Conflict> {
        let is_whole = buffer.is_whole(access);
        self.access_known(buffer, lane, access, is_whole)
    }

    /// Records an access of `lane`, and returns the latest earlier one that conflicts with it. `is_whole`: the access
    /// is to the whole buffer.
    ///
    /// Cost: 8 ns for a buffer that one stream alone touches as a whole, 33 ns for one that three streams read,
    /// 65 to 150 ns for parts of one written in a loop (EPYC Zen 5).
    #[inline]
    pub fn access_known(
        &mut self,
        buffer: &mut BufferClock,
        lane: Lane,
        access: &Use,
        is_whole: bool,
    ) -> Option<Conflict> {
        let epoch = self.tick(lane);
        if is_whole && access.kind == Kind::Read && buffer.read_again(lane, access, epoch) {
            return None;
        }
        if buffer.owner == Owner::Nobody {
            buffer.owner = Owner::One(lane.0);
        }
        if buffer.owner == Owner::One(lane.0) && is_whole {
            let mark = Some(Mark { epoch, origin: access.origin, op: access.op });
            match access.kind {
                Kind::Read => buffer.read = mark,
                Kind::Write => {
                    (buffer.write, buffer.read) = (mark, None);
                    buffer.rest.clear();
                }
            }
            return None;
        }
        self.access_part(buffer, lane, access, epoch, is_whole)
    }

    fn access_part(
        &mut self,
        buffer: &mut BufferClock,
        lane: Lane,
        access: &Use,
        epoch: u64,
        is_whole: bool,
    ) -> Option<Conflict> {
        let region = if is_whole { Region::whole(buffer.bytes) } else { buffer.region(access) };
        if region.is_empty() {
            return None;
        }
        let Use { kind, origin, op, .. } = *access;
        let new = Access { kind, lane: lane.0, epoch, origin, op, region, is_settled: is_whole };
        if buffer.owner == Owner::One(lane.0) {
            buffer.push(new, self);
            return None;
        }
        buffer.move_marks_to_list();
        buffer.owner = Owner::Several;
        let conflict = self.find(&buffer.rest, lane, &new);
        let new = Access { is_settled: is_whole && conflict.is_none(), ..new };
        buffer.rest.retain(|old| {
            let before = (old.lane, old.epoch);
            !(self.is_done(before) || self.is_before(before, lane) && new.subsumes(old))
        });
        if buffer.rest.iter().all(|old| old.lane == lane.0) {
            buffer.owner = Owner::One(lane.0);
        }
        buffer.push(new, self);
        conflict
    }

    /// Records an access to a whole buffer that no other stream has accessed; false if it is another kind of access.
    #[inline]
    pub fn touch(&mut self, touches: &mut Touches, lane: Lane, kind: Kind, origin: Origin, op: &'static str) -> bool {
        if touches.history.is_some() || (touches.owner != 0 && touches.owner != lane.0 + 1) {
            return false;
        }
        touches.owner = lane.0 + 1;
        let mark = Some(Mark { epoch: self.tick(lane), origin, op });
        match kind {
            Kind::Read => touches.read = mark,
            Kind::Write => (touches.write, touches.read) = (mark, None),
        }
        true
    }

    /// Whether only this stream has accessed the buffer, each time as a whole.
    pub fn is_alone(&self, touches: &Touches, lane: Lane) -> bool {
        touches.history.is_none() && (touches.owner == 0 || touches.owner == lane.0 + 1)
    }

    /// The host waits for the last write of the only stream that has accessed a buffer.
    pub fn host_read_alone(&mut self, touches: &Touches) {
        if let (Some(lane), Some(mark)) = (touches.owner.checked_sub(1), touches.write) {
            self.host_wait(Lane(lane), mark.epoch);
        }
    }

    /// As [`Clocks::access_known`], but records nothing: for an operation that is refused if there is a conflict.
    pub fn conflict(&self, buffer: &mut BufferClock, lane: Lane, access: &Use) -> Option<Conflict> {
        if buffer.owner == Owner::Nobody || buffer.owner == Owner::One(lane.0) {
            return None;
        }
        let region = buffer.region(access);
        if region.is_empty() {
            return None;
        }
        let Use { kind, origin, op, .. } = *access;
        let new = Access { kind, lane: lane.0, epoch: 0, origin, op, region, is_settled: false };
        buffer.move_marks_to_list();
        self.find(&buffer.rest, lane, &new)
    }

    fn find(&self, earlier: &[Access], lane: Lane, new: &Access) -> Option<Conflict> {
        let unordered = |old: &&Access| !self.is_before((old.lane, old.epoch), lane);
        let old = earlier.iter().rev().filter(unordered).find(|old| old.conflicts(new.kind, &new.region))?;
        let side = |access: &Access| Side {
            kind: access.kind,
            stream: self.name(Lane(access.lane)),
            origin: access.origin,
            op: access.op,
        };
        Some(Conflict { earlier: side(old), later: side(new) })
    }

    /// The host waits for the writes of these elements, as it does before it reads them.
    pub fn host_read(&mut self, buffer: &BufferClock, layout: &Layout, elem_bytes: usize) {
        let region = Region::of(layout, elem_bytes);
        if let (Owner::One(lane), Some(mark)) = (buffer.owner, buffer.write) {
            self.host_wait(Lane(lane), mark.epoch);
        }
        for access in buffer.rest.iter().filter(|access| access.conflicts(Kind::Read, &region)) {
            self.host_wait(Lane(access.lane), access.epoch);
        }
    }
}

//! What the machine allows: file descriptors and memory, as values. Connections, calls and bodies
//! follow them, so that a gateway under attack runs out of places and not out of descriptors.

/// `None`: it is not known, or there is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    pub descriptors: Option<usize>,
    pub memory: Option<usize>,
}

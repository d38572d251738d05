//! How large anything here may be. What has no bound is read until memory ends.

/// Bytes of a record, of a package, of a fixture.
pub const MAX_FILE_BYTES: usize = 256 * 1024;

/// Brackets inside brackets of a record.
pub const MAX_DEPTH: usize = 16;

/// Records of one catalog.
pub const MAX_WORKFLOWS: usize = 500;

/// Inputs of a record.
pub const MAX_INPUTS: usize = 64;

/// Steps of a package, and of a run of it.
pub const MAX_STEPS: usize = 20;

/// Characters of a text that is given as an input.
pub(crate) const MAX_INPUT_CHARS: usize = 100_000;

/// Bytes of a body that a template makes.
pub(crate) const MAX_RENDERED_BYTES: usize = 1024 * 1024;

/// Characters of one output of a step.
pub const MAX_OUTPUT_CHARS: usize = 20_000;

/// Bytes of all inputs of a run together, and of all outputs.
pub const MAX_RUN_BYTES: usize = 256 * 1024;

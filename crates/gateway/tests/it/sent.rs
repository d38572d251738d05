//! What the simulator got from us.

use tollgate_sim::{Received, Sim};

/// A request to the simulator that is a paid call of ours: pictures may take several for one.
pub fn is_whole_call(seen: &Received) -> bool {
    let body = String::from_utf8_lossy(&seen.body);
    let picture = seen.path.starts_with("/video/") && (body.contains(r#""IMAGE""#) || body.contains(r#""messages""#));
    let parts = ["speech", "/t2a", "/multimod", "/music"];
    let verbs = "completions messages responses generateContent streamGenerateContent embeddings embed embedContent \
                 batchEmbedContents rerank systemone decisions converse converse-stream";
    let verb = seen.path.rsplit(['/', ':']).next().unwrap_or_default();
    !picture && (parts.iter().any(|part| seen.path.contains(part)) || verbs.split_whitespace().any(|own| own == verb))
}

/// Responses and transcripts that were made in sessions.
pub fn responses(sim: &Sim) -> usize {
    sim.received().iter().filter(|seen| seen.method == "WS").count()
}

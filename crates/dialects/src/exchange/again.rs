//! Answers read into the hub and written again in their own dialect: the same answer, whatever it
//! holds.
//!
//! In production an answer that stays in its dialect passes as bytes (`passed`). Here it goes
//! through the hub all the same: what the writer makes of the hub's events is laid into what
//! `Event::Rest` carries (`lay`), and every reply (`replies`) and every event of a stream
//! (`events`) must be the one that came; so it must with a member that nobody knows, in every
//! object in turn (`unknown`). What a writer does otherwise than the original is a closed list
//! (`notes`). That its own words mean the same, usage and recast forms included, `meaning` shows by
//! reading them again. So each member of an answer is either carried by the hub, or on the list
//! from which others differ.

mod events;
mod golden;
mod lay;
mod meaning;
mod notes;
mod passed;
mod replies;
mod unknown;

/// Each answer as it came, and on the list whatever the writers did otherwise, no more and no less.
#[test]
fn every_answer_comes_back() {
    let mut notes = notes::Notes::default();
    replies::all(&mut notes);
    events::all(&mut notes);
    assert!(notes.unlisted().is_empty(), "not on the list: {:#?}", notes.unlisted());
    assert!(notes.unneeded().is_empty(), "no longer so: {:#?}", notes.unneeded());
}

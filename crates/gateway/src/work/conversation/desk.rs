//! The desk for conversations: what it keeps beside the till, and a conversation as a call of the
//! till's.

use super::Conversation;
use crate::call::Till;
use crate::door::bodies::Bodies;
use crate::fetcher::Fetcher;
use crate::settings::StorageSettings;
use std::sync::Arc;

pub struct ConversationDesk {
    pub(crate) till: Arc<Till>,
    /// For pictures and documents that requests give by their address.
    pub(crate) fetcher: Fetcher,
    /// Room for long answers.
    pub(crate) bodies: Arc<Bodies>,
    pub(crate) storage: StorageSettings,
}

/// A conversation that is to be answered.
pub struct ConversationCall {
    pub conversation: Conversation,
    pub desk: Arc<ConversationDesk>,
}

impl ConversationDesk {
    /// The call that answers a conversation.
    pub fn call(self: &Arc<Self>, conversation: Conversation) -> ConversationCall {
        ConversationCall { conversation, desk: self.clone() }
    }
}

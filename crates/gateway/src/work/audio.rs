//! An answer with audio that is about to begin: what speech and music have in common.

use crate::call::Call;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use tokio::time::Instant;
use tollgate_media::speech::SpeechFormat;
use tollgate_upstream::{AudioReader, Fault, IncomingBody, Outgoing, Provider, ReplyBody, WholeReply, is_encoded};

/// An answer of status 200 that has not shown any audio.
pub struct AudioAnswer {
    pub body: ReplyBody,
    pub reader: Box<dyn AudioReader>,
    /// The most bytes that may still come.
    pub left: usize,
    until: Instant,
}

/// Sends a request and gives what came with status 200.
pub async fn sent(
    call: &Call,
    provider: &Provider,
    request: Outgoing,
    fault: impl Fn(&WholeReply) -> Fault,
) -> Result<(HeaderMap, IncomingBody), Fault> {
    let client = &call.till.client;
    let reply = client.send(provider, request).await?;
    if !reply.status().is_success() {
        return Err(fault(&client.refused(provider, reply).await));
    }
    if is_encoded(reply.headers()) {
        // It is made by now: nobody makes it once more.
        return Err(Fault { maybe_charged: true, ..Fault::encoded() });
    }
    let (head, body) = reply.into_parts();
    Ok((head.headers, body))
}

impl AudioAnswer {
    pub fn new(call: &Call, provider: &Provider, body: IncomingBody, reader: Box<dyn AudioReader>) -> AudioAnswer {
        let settings = &provider.settings;
        let body = ReplyBody::new(body, settings.idle);
        AudioAnswer { body, reader, left: settings.max_reply_bytes, until: call.deadline }
    }

    /// The beginning of the audio: enough to tell that it is of this format, or all that there is.
    pub async fn first(&mut self, format: SpeechFormat) -> Result<Bytes, Fault> {
        let audio = self.beginning().await?;
        if format.begins(&audio) {
            return Ok(audio);
        }
        let message = format!("The provider's answer is not {}.", format.name());
        Err(Fault { message, ..Fault::garbage() })
    }

    async fn beginning(&mut self) -> Result<Bytes, Fault> {
        let mut audio = BytesMut::new();
        while let Some(piece) = self.body.chunk().await? {
            self.left = self.left.checked_sub(piece.len()).ok_or_else(Fault::too_long)?;
            if Instant::now() > self.until {
                return Err(Fault::idle());
            }
            let out = self.reader.feed(piece)?;
            if audio.is_empty() && out.len() >= SpeechFormat::TELLING {
                return Ok(out);
            }
            audio.extend_from_slice(&out);
            if audio.len() >= SpeechFormat::TELLING {
                return Ok(audio.freeze());
            }
        }
        if audio.is_empty() {
            // Says why there is none.
            return self.reader.end().map(|(rest, _)| rest);
        }
        Ok(audio.freeze())
    }
}

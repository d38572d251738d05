//! Addresses that a provider wrote down: files to be fetched, stores to be filled.

use crate::video::Asking;
use crate::{Client, Fault, IncomingBody, Outgoing, ReplyBody, is_encoded};
use http::{Response, StatusCode};

/// Opens a file, without the key. No redirect is followed.
pub async fn open_link(clients: (&Client, &Client), asking: &Asking<'_>, url: &str) -> Result<ReplyBody, Fault> {
    let request = asking.plain(url).ok_or_else(Fault::garbage)?;
    let reply = send_to_link(clients, asking, request).await?;
    if reply.status() != StatusCode::OK {
        return Err(Fault::no_file(reply.status().as_u16()));
    }
    if is_encoded(reply.headers()) {
        return Err(Fault::encoded());
    }
    Ok(ReplyBody::new(reply.into_body(), asking.provider.settings.idle))
}

/// Sends to such an address. One that does not lead to the provider itself may only lead to a
/// public address, unless the provider is configured otherwise.
pub async fn send_to_link(
    (client, public): (&Client, &Client),
    asking: &Asking<'_>,
    request: Outgoing,
) -> Result<Response<IncomingBody>, Fault> {
    let inside = asking.provider.settings.private_links || asking.is_own(&request.uri().to_string());
    let client = if inside { client } else { public };
    client.send(asking.provider, request).await
}

//! A picture behind a link that a provider wrote down.

use crate::video::Asking;
use crate::{Client, Fault, ReplyBody, is_encoded};
use http::StatusCode;

/// Opens it, without the key. A link that does not lead to the provider itself may only lead to a
/// public address, unless the provider is configured otherwise; no redirect is followed.
pub async fn open_link(
    (client, public): (&Client, &Client),
    asking: &Asking<'_>,
    url: &str,
) -> Result<ReplyBody, Fault> {
    let request = asking.plain(url).ok_or_else(Fault::garbage)?;
    let inside = asking.provider.settings.private_links || asking.is_own(url);
    let client = if inside { client } else { public };
    let reply = client.send(asking.provider, request).await?;
    if reply.status() != StatusCode::OK {
        return Err(Fault::no_file(reply.status().as_u16()));
    }
    if is_encoded(reply.headers()) {
        return Err(Fault::encoded());
    }
    Ok(ReplyBody::new(reply.into_body(), asking.provider.settings.idle))
}

//! The page where a session is paid: a button, and nothing that asks for a card.

use http::{HeaderValue, Method, header};

use super::StripeWorld;
use super::ask::{Answer, made};

pub(super) async fn answer(world: &StripeWorld, method: &Method, session: &str) -> Answer {
    let found = world.book().sessions.get(session).cloned();
    let Some(one) = found else { return made(404, "text/plain", "There is no such session.\n".to_owned()) };
    if *method == Method::POST {
        world.book().pay(session);
        world.send("checkout.session.completed", session).await;
        let mut reply = made(303, "text/plain", "Paid.\n".to_owned());
        if let Ok(to) = HeaderValue::try_from(&one.success_url) {
            reply.headers_mut().insert(header::LOCATION, to);
        }
        return reply;
    }
    let (whole, cents) = (one.amount / 100, one.amount % 100);
    let (product, currency) = (escaped(&one.product), escaped(&one.currency).to_ascii_uppercase());
    let text = format!(
        "<!doctype html><meta charset=utf-8><title>Simulated payment</title>\
         <body style=\"font-family:sans-serif;max-width:30em;margin:4em auto\"><h1>Simulated payment</h1>\
         <p>{product}: {whole}.{cents:02} {currency}. No money moves.</p>\
         <form method=post><button style=\"font-size:1.2em\">Pay</button></form>\
         <p><a href=\"{}\">Cancel</a></p>",
        escaped(&one.cancel_url)
    );
    made(200, "text/html; charset=utf-8", text)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

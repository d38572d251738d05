//! What is written to people: a subject, plain text and HTML, in English and in Chinese. A letter
//! waits in the store as data and becomes text when it is sent.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    pub about: LetterAbout,
    pub to: String,
    /// `zh…` is Chinese, anything else English.
    pub locale: String,
    /// What to open.
    pub link: Option<String>,
    /// Into what somebody is invited, and by whom; what it is about.
    #[serde(default)]
    pub place: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LetterAbout {
    Verify,
    /// Somebody signed up with the e-mail of a person.
    KnownAlready,
    Reset,
    PasswordChanged,
    PasskeyAdded,
    PasskeyRemoved,
    Invite,
    /// To an operator: what fires, in words.
    Alert,
    /// To an owner of an account.
    LowBalance,
    AccountClosed,
    AccountReopened,
}

/// A letter as it is sent.
pub struct WrittenLetter {
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// Subject, what is said, what the link does, what is said below it.
struct Words(&'static str, &'static str, &'static str, &'static str);

impl LetterAbout {
    fn words(self, chinese: bool) -> Words {
        match (self, chinese) {
            (LetterAbout::Verify, false) => Words(
                "Confirm your e-mail",
                "Somebody signed up with this e-mail address. If it was you, confirm it.",
                "Confirm e-mail",
                "The link works once, within 24 hours. If it was not you, do nothing.",
            ),
            (LetterAbout::Verify, true) => Words(
                "请确认您的电子邮箱",
                "有人使用此邮箱地址注册。如果是您本人，请确认。",
                "确认邮箱",
                "链接在 24 小时内有效，仅可使用一次。如果不是您本人，请忽略此邮件。",
            ),
            (LetterAbout::KnownAlready, false) => Words(
                "You have signed up already",
                "Somebody signed up with this e-mail address, which has signed up before. Sign in, or ask for a new password.",
                "Sign in",
                "If it was not you, do nothing: nothing has changed.",
            ),
            (LetterAbout::KnownAlready, true) => Words(
                "您已经注册过",
                "有人使用此邮箱地址注册，但该邮箱此前已注册。请直接登录，或申请重设密码。",
                "登录",
                "如果不是您本人，请忽略此邮件，您的账户没有任何变化。",
            ),
            (LetterAbout::Reset, false) => Words(
                "Choose a new password",
                "Somebody asked for a new password for this e-mail address.",
                "Choose a new password",
                "The link works once, within one hour. If it was not you, do nothing: your password stays.",
            ),
            (LetterAbout::Reset, true) => Words(
                "重设密码",
                "有人为此邮箱地址申请重设密码。",
                "重设密码",
                "链接在一小时内有效，仅可使用一次。如果不是您本人，请忽略此邮件，您的密码不会改变。",
            ),
            (LetterAbout::PasswordChanged, false) => Words(
                "Your password was changed",
                "The password of this e-mail address was changed, and all sessions were ended.",
                "Sign in",
                "If it was not you, ask for a new password at once.",
            ),
            (LetterAbout::PasswordChanged, true) => Words(
                "您的密码已更改",
                "此邮箱地址的密码已更改，所有会话均已结束。",
                "登录",
                "如果不是您本人操作，请立即重设密码。",
            ),
            (LetterAbout::PasskeyAdded, _) => passkey_words(true, chinese),
            (LetterAbout::PasskeyRemoved, _) => passkey_words(false, chinese),
            (LetterAbout::AccountClosed, _) => account_words(true, chinese),
            (LetterAbout::AccountReopened, _) => account_words(false, chinese),
            (LetterAbout::Invite, false) => Words(
                "You are invited",
                "You are invited to",
                "Accept the invite",
                "The link works once, within seven days. If you expect no invite, do nothing.",
            ),
            (LetterAbout::Invite, true) => Words(
                "您收到一份邀请",
                "您被邀请加入",
                "接受邀请",
                "链接在七天内有效，仅可使用一次。如果您不认识邀请人，请忽略此邮件。",
            ),
            (LetterAbout::Alert, false) => Words(
                "Alert",
                "",
                "Open",
                "You get this letter because your address is a place of this rule of alerts.",
            ),
            (LetterAbout::Alert, true) => {
                Words("告警", "", "打开", "您收到此邮件，是因为您的地址是该告警规则的接收地址。")
            }
            (LetterAbout::LowBalance, false) => Words(
                "Your balance is low",
                "The balance of your account has fallen below the threshold that was set for it:",
                "Open",
                "You get one letter when it falls, and another only after it was above. An owner can change the threshold or switch it off.",
            ),
            (LetterAbout::LowBalance, true) => Words(
                "您的余额不足",
                "您账户的余额已低于所设阈值：",
                "打开",
                "余额跌破阈值时只发送一次，回升后再次跌破才会再次发送。所有者可以更改阈值或关闭通知。",
            ),
        }
    }
}

/// An account was closed, or opened again.
fn account_words(closed: bool, chinese: bool) -> Words {
    match (closed, chinese) {
        (true, false) => Words(
            "Your account was closed",
            "An account that you own was closed, and its keys were revoked:",
            "Open",
            "For 30 days whoever runs this service can open it again; then what is known of its people is erased. If you did not want this, tell them now.",
        ),
        (true, true) => Words(
            "您的账户已关闭",
            "您拥有的一个账户已关闭，其密钥已全部吊销：",
            "打开",
            "在 30 天内，本服务的运营者可以重新开启该账户；此后其成员的信息将被清除。如果这不是您的意愿，请立即联系运营者。",
        ),
        (false, false) => Words(
            "Your account is open again",
            "An account that you own was closed, and is open again with its members and its money:",
            "Open",
            "Its old keys stay revoked. Make new ones.",
        ),
        (false, true) => Words(
            "您的账户已重新开启",
            "您拥有的一个账户曾被关闭，现已连同成员和余额重新开启：",
            "打开",
            "原有密钥仍处于吊销状态，请创建新的密钥。",
        ),
    }
}

/// A passkey was added, or removed.
fn passkey_words(added: bool, chinese: bool) -> Words {
    match (added, chinese) {
        (true, false) => Words(
            "A passkey was added",
            "From now on a passkey that was added just now signs you in, without a password.",
            "See your passkeys",
            "If it was not you, sign in at once, remove it, end all other sessions and change your password.",
        ),
        (true, true) => Words(
            "已添加通行密钥",
            "刚刚添加了一个通行密钥，今后无需密码即可用它登录。",
            "查看通行密钥",
            "如果不是您本人操作，请立即登录，移除该通行密钥，结束其他所有会话并更改密码。",
        ),
        (false, false) => Words(
            "A passkey was removed",
            "A passkey of yours was removed and signs nobody in any more.",
            "See your passkeys",
            "If it was not you, sign in at once, end all other sessions and change your password.",
        ),
        (false, true) => Words(
            "已移除通行密钥",
            "您的一个通行密钥已被移除，不能再用它登录。",
            "查看通行密钥",
            "如果不是您本人操作，请立即登录，结束其他所有会话并更改密码。",
        ),
    }
}

impl Letter {
    /// What fires, in words.
    pub fn of_alert(says: String, to: String) -> Letter {
        Letter { about: LetterAbout::Alert, to, locale: "en".to_owned(), link: None, place: says }
    }

    pub fn written(&self) -> WrittenLetter {
        let chinese = self.locale.starts_with("zh");
        let Words(subject, said, act, below) = self.about.words(chinese);
        let stop = if chinese { "。" } else { "." };
        let subject = match self.about {
            LetterAbout::Alert => format!("{subject}: {}", first_words(&self.place)),
            _ => subject.to_owned(),
        };
        let said = match self.place.as_str() {
            "" => said.to_owned(),
            place if said.is_empty() => format!("{place}{stop}"),
            place => format!("{said} {place}{stop}"),
        };
        let link = self.link.as_deref().unwrap_or_default();
        let text = match link {
            "" => format!("{said}\n\n{below}\n"),
            link => format!("{said}\n\n{act}:\n{link}\n\n{below}\n"),
        };
        let button = match link {
            "" => String::new(),
            link => format!("<p><a href=\"{}\">{act}</a></p>\n", escaped(link)),
        };
        let language = if chinese { "zh" } else { "en" };
        let html = format!(
            "<!doctype html>\n<html lang=\"{language}\"><meta charset=\"utf-8\"><title>{}</title>\n\
             <body style=\"font-family:sans-serif;max-width:36em\">\n<p>{}</p>\n{button}<p>{below}</p>\n</body></html>\n",
            escaped(&subject),
            escaped(&said)
        );
        WrittenLetter { subject, text, html }
    }
}

/// As much as a subject has room for, on one line.
fn first_words(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(120).collect()
}

/// What others wrote is text and nothing else.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_is_written_in_both_languages_with_its_link() {
        use LetterAbout::*;
        let all = [
            Verify,
            KnownAlready,
            Reset,
            PasswordChanged,
            PasskeyAdded,
            PasskeyRemoved,
            Invite,
            Alert,
            LowBalance,
            AccountClosed,
            AccountReopened,
        ];
        for about in all {
            let subjects = ["en", "zh-CN"].map(|locale| {
                let letter = Letter {
                    about,
                    to: "a@example.com".to_owned(),
                    locale: locale.to_owned(),
                    link: Some("https://gate.example/x#token=abc".to_owned()),
                    place: "<script>".to_owned(),
                };
                let written = letter.written();
                for body in [&written.text, &written.html] {
                    assert!(body.contains("https://gate.example/x#token=abc"), "{body}");
                }
                assert!(!written.html.contains("<script>"), "{}", written.html);
                written.subject
            });
            assert_ne!(subjects[0], subjects[1]);
        }
    }
}

//! docs/endpoints.md: every endpoint on one page, as the rows have it.

use std::fmt::Write as _;
use std::path::Path;
use tollgate_gateway::endpoints::row::MembersSee;
use tollgate_gateway::endpoints::{Access, AccessRole, Row, rows};
use tollgate_gateway::who::holder::AccountRole;

const PAGE: &str = "../../docs/endpoints.md";

#[test]
fn the_page_of_endpoints_is_what_the_rows_say() {
    let (page, right) = (std::fs::read_to_string(PAGE).unwrap_or_default(), written());
    if page != right {
        let at = Path::new(env!("CARGO_TARGET_TMPDIR")).join("endpoints.md");
        std::fs::write(&at, right).expect("written");
        panic!("docs/endpoints.md is not what the rows say; copy {} over it", at.display());
    }
}

fn written() -> String {
    let mut page = String::from(
        "# Endpoints\n\n\
         Every method and path of the gateway, from the rows in `crates/gateway/src/endpoints/`. A test holds this page to them;\n\
         `GET /openapi.json` describes parameters, bodies and replies.\n\n\
         | who | may call |\n|---|---|\n\
         | anybody | without a key |\n\
         | session | a person who is signed in ([people](people.md)) |\n\
         | key | a key of an account; free of charge |\n\
         | paid | a key of an account; held and charged, and [quoted](billing.md) before |\n\
         | viewer, member, owner | a person who is signed in and has that role in the account, or a key made with `--scope manage`, which may what an owner may ([the account API](account.md)) |\n\
         | operator | an admin key ([the operator's API](operating.md#the-operators-api)), or a session of an operator; auditors read |\n\
         | this machine | requests made on this machine ([health](operating.md#health)) |\n",
    );
    let mut tag = "";
    for row in rows() {
        if row.tag != tag {
            tag = row.tag;
            let mut letters = tag.chars();
            let first = letters.next().map(|letter| letter.to_ascii_uppercase());
            let title: String = first.into_iter().chain(letters).collect();
            let _ = write!(page, "\n## {title}\n\n| endpoint | who | what |\n|---|---|---|\n");
        }
        let _ = writeln!(page, "| `{} {}` | {} | {} |", row.method, row.path, who(row), row.summary);
    }
    page
}

fn who(row: &Row) -> &'static str {
    match row.access {
        Access::Public => "anybody",
        Access::Local => "this machine",
        Access::Session => "session",
        Access::Key => "key",
        Access::Paid => "paid",
        Access::Account(AccountRole::Viewer) => match row.members {
            MembersSee::All => "viewer",
            MembersSee::OwnKeys => "viewer; member: own keys",
            MembersSee::Nothing => "viewer, not member",
        },
        Access::Account(AccountRole::Member) => "member",
        Access::Account(AccountRole::Owner) => "owner",
        Access::Role(AccessRole::Operator) => "operator",
    }
}

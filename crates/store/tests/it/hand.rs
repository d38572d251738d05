//! A hand in the database that is not ours: what an operator with a console, a bug elsewhere or a
//! thief could do.

use tokio::task::JoinSet;

use crate::common::House;

pub enum Hand {
    File(rusqlite::Connection),
    Server(tokio_postgres::Client, #[expect(dead_code, reason = "ends with the hand")] JoinSet<()>),
}

impl Hand {
    pub async fn of(h: &House) -> Self {
        if h.place.url == "sqlite" {
            return Self::File(rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file"));
        }
        let (client, connection) =
            tokio_postgres::connect(&h.place.url, tokio_postgres::NoTls).await.expect("connected");
        let mut driver = JoinSet::new();
        driver.spawn(async move { drop(connection.await) });
        Self::Server(client, driver)
    }

    /// One that nothing in the database stops.
    pub async fn without_triggers(h: &House) -> Self {
        let hand = Self::of(h).await;
        let off = match &hand {
            Self::File(_) => "DROP TRIGGER entry_no_update; DROP TRIGGER entry_no_delete",
            Self::Server(..) => "SET session_replication_role = replica",
        };
        hand.change(off).await.expect("triggers off");
        hand
    }

    /// The columns of a table and their types, as the database knows them.
    pub async fn columns(&self, table: &str) -> Vec<(String, String)> {
        match self {
            Self::File(file) => {
                let mut asked = file.prepare("SELECT name, lower(type) FROM pragma_table_info(?1)").expect("asked");
                let rows = asked.query_map([table], |r| Ok((r.get(0)?, r.get(1)?))).expect("columns");
                rows.collect::<Result<_, _>>().expect("columns")
            }
            Self::Server(client, _) => {
                let sql = "SELECT column_name::text, data_type::text FROM information_schema.columns \
                           WHERE table_name = $1 AND table_schema = 'public' ORDER BY ordinal_position";
                let rows = client.query(sql, &[&table]).await.expect("columns");
                rows.iter().map(|r| (r.get(0), r.get(1))).collect()
            }
        }
    }

    pub async fn change(&self, sql: &str) -> Result<(), String> {
        match self {
            Self::File(file) => file.execute_batch(sql).map_err(|e| e.to_string()),
            Self::Server(client, _) => {
                client.batch_execute(&in_postgres(sql)).await.map_err(|e| match e.as_db_error() {
                    Some(error) => error.to_string(),
                    None => e.to_string(),
                })
            }
        }
    }
}

/// Bytes are written differently: `x'00'`, `zeroblob(n)` and `BLOB` are SQLite's words.
pub fn in_postgres(sql: &str) -> String {
    let mut parts = sql.split("x'");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_once('\'').expect("the end of the bytes");
        text.push_str(&format!("decode('{digits}', 'hex'){rest}"));
    }
    for n in [17, 32] {
        text = text.replace(&format!("zeroblob({n})"), &format!("decode(repeat('00', {n}), 'hex')"));
    }
    text.replace("AS BLOB", "AS bytea")
}

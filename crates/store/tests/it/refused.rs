//! Operations the database refuses for good (here by a trigger): they are left out, all others go
//! on, nothing is sent for ever, and what the failed ones left in memory is forgotten.

use std::time::Duration;

use crate::common::{Customer, House, options, reply};
use tollgate_catalog::Money;
use tollgate_store::testing::{PostgresServer, price};
use tollgate_store::{
    CallId, Change, Credit, CreditKind, Ending, Hold, HoldRefused, NewLimits, Options, Pot, StoreError,
};

/// Whoever waits for a hold waits for the database: with a journal that is synced, it refuses
/// later, and the call is free.
fn unsynced() -> Options {
    Options { journal_sync_fails: true, ..options() }
}

/// One of a group is refused. It is also the first with a new price: the price must be written with
/// the next call that has it.
#[tokio::test]
async fn sqlite_leaves_out_what_is_refused() {
    let slow = Options { commit_pace: Duration::from_millis(300), ..unsynced() };
    let h = House::open_with("sqlite", slow).await;
    let c = h.customer(0, 1_000).await;
    let file = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
    let trigger = "CREATE TRIGGER poison BEFORE INSERT ON entry WHEN new.model = 'poison' \
                   BEGIN SELECT raise(ABORT, 'refused'); END";
    file.execute_batch(trigger).expect("a trigger");
    let mut poisoned = Hold { model: "poison".into(), price: price(2), ..h.wish(&c, 30) };
    poisoned.expires_at += 1;
    let mut held = Vec::new();
    for wish in [h.wish(&c, 10), poisoned, h.wish(&c, 20)] {
        held.push(h.store.hold(wish).await.expect("decided in memory"));
    }
    let [mut first, mut refused, mut last] = <[_; 3]>::try_from(held).ok().expect("three");
    first.durable().await.expect("durable");
    last.durable().await.expect("durable");
    assert!(matches!(refused.durable().await, Err(StoreError::Broken(_))));
    // Its end changes nothing but memory.
    let _ = h.store.close(h.ending(&c, refused.call, 0)).await;
    for (call, charge) in [(first.call, 7), (last.call, 0)] {
        h.store.close(h.ending(&c, call, charge)).await.expect("closed");
    }
    assert_eq!(h.pots(&c).await, (0, 993, 0, 0));
    // Ended before the database said no: it may have reached a provider, so it has its row, and
    // costs nothing.
    let mut quick = h.store.hold(Hold { model: "poison".into(), ..h.wish(&c, 30) }).await.expect("decided in memory");
    h.store.extend(h.more(&c, quick.call, 1, 5)).await.expect("decided in memory");
    let _ = h.store.close(h.ending(&c, quick.call, 3));
    assert!(matches!(quick.durable().await, Err(StoreError::Broken(_))));
    assert_eq!(h.pots(&c).await, (0, 993, 0, 0));
    let row = h.store.usage_of(c.account, quick.call).await.expect("reading").expect("a row");
    assert_eq!((row.hold.nano(), row.charge.nano(), row.model.as_str()), (0, 0, "test"));
    // The price came with the refused hold first; the next one brings it again.
    let dear = h.hold(Hold { price: price(2), ..h.wish(&c, 40) }).await.expect("a hold").call;
    let mut ending = h.ending(&c, dear, 8);
    ending.row.counters.input = 4_000;
    h.store.close(ending).await.expect("closed");
    let row = h.store.usage_of(c.account, dear).await.expect("reading").expect("a row");
    assert_eq!(row.price.expect("the price is there")["faces"]["input"], 2);
    // All that is open is known as such: a later start reads nothing but the end of the ledger.
    tokio::time::sleep(Duration::from_millis(1_000)).await;
    let after = h.held(&c, 1).await;
    h.store.close(h.ending(&c, after, 0)).await.expect("closed");
    let (oldest, entries): (i64, i64) = file
        .query_row("SELECT (SELECT value FROM meta WHERE name = 'oldest_open_seq'), max(seq) FROM entry", [], |r| {
            Ok((r.get(0)?, r.get(1)?))
        })
        .expect("the watermark");
    assert!(oldest >= entries - 2, "the refused hold is not open: {oldest} of {entries}");
    h.close().await;
}

/// While a group is written one operation after the other, an error that may pass stops the whole
/// group, and nothing more is left out.
#[tokio::test]
async fn what_may_pass_is_not_left_out_beside_what_is_refused() {
    let h = House::open_with("sqlite", Options { commit_pace: Duration::from_millis(300), ..unsynced() }).await;
    let c = h.customer(0, 1_000).await;
    let file = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
    file.busy_timeout(Duration::from_secs(20)).expect("patience");
    let triggers = "CREATE TRIGGER poison BEFORE INSERT ON entry WHEN new.model = 'poison' \
                    BEGIN SELECT raise(ABORT, 'refused'); END; \
                    CREATE TRIGGER shaky BEFORE INSERT ON entry WHEN new.model = 'shaky' \
                    BEGIN SELECT abs(-9223372036854775808); END";
    file.execute_batch(triggers).expect("triggers");
    let wish = |model: &str| Hold { model: model.into(), ..h.wish(&c, 30) };
    let mut refused = h.store.hold(wish("poison")).await.expect("decided in memory");
    let mut shaky = h.store.hold(wish("shaky")).await.expect("decided in memory");
    // The journal does not make them so.
    shaky.make_durable();
    for _ in 0..12_000 {
        if h.store.gauges().retries > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    file.execute_batch("DROP TRIGGER shaky").expect("it has passed");
    assert!(matches!(refused.durable().await, Err(StoreError::Broken(_))));
    shaky.durable().await.expect("durable in the end");
    h.store.close(h.ending(&c, shaky.call, 7)).await.expect("closed");
    assert_eq!(h.pots(&c).await, (0, 993, 0, 0));
    h.close().await;
}

/// Nothing is held, used or spent, and all of it can be: 500 paid and a gift of 100, within limits
/// of 600.
async fn as_before(h: &House, c: &Customer, what: &str) {
    let all = h.hold(h.wish(c, 600)).await.unwrap_or_else(|e| panic!("{what}: {e}")).call;
    assert!(h.hold(h.wish(c, 1)).await.is_err(), "{what}");
    h.store.close(h.ending(c, all, 0)).await.expect("closed");
    assert_eq!(h.pots(c).await, (100, 500, 0, 0), "{what}");
    let expiring = h.store.expiring(c.account).await.expect("reading");
    assert_eq!(expiring.iter().map(|e| (e.available.nano(), e.held.nano())).collect::<Vec<_>>(), [(100, 0)], "{what}");
    let account = h.store.account(c.account).await.expect("reading").expect("the account");
    let key = h.store.keys(c.account).await.expect("reading").remove(0);
    assert_eq!([account.used.day.nano(), key.used.day.nano(), key.spent.nano()], [0; 3], "{what}");
}

/// Memory is as the database is afterwards: to the last nano-USD of money, of limits and of credit
/// that expires.
#[tokio::test]
async fn memory_forgets_what_was_refused() {
    let h = House::open_with("sqlite", Options { commit_pace: Duration::from_millis(300), ..unsynced() }).await;
    let c = h.capped_customer(0, 500, Some(600)).await;
    let gift = Credit {
        id: "gift".into(),
        account: c.account,
        kind: CreditKind::TopUp,
        pot: Pot::Trial,
        amount: Money::from_nano(100),
        expires_at: Some(h.clock.now() + 1_000_000),
        reason: String::new(),
        actor: "operator".into(),
    };
    h.store.credit(gift).await.expect("credit");
    let day = NewLimits { day: Change::Set(Money::from_nano(600)), ..NewLimits::default() };
    h.store.change_account(c.account, day.into(), Default::default()).await.expect("limited");
    h.store.change_key(c.key, day.into(), Default::default()).await.expect("limited");
    let file = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
    let trigger = "CREATE TRIGGER poison BEFORE INSERT ON entry WHEN new.model = 'poison' OR (new.kind = 4 AND new.trial + new.paid = 7) \
                   BEGIN SELECT raise(ABORT, 'refused'); END; \
                   CREATE TRIGGER poisoned BEFORE INSERT ON usage WHEN new.model = 'poison' \
                   BEGIN SELECT raise(ABORT, 'refused'); END";
    file.execute_batch(trigger).expect("a trigger");
    as_before(&h, &c, "at first").await;
    for charge in [None, Some(0), Some(120)] {
        let poisoned = Hold { model: "poison".into(), ..h.wish(&c, 150) };
        let mut refused = h.store.hold(poisoned).await.expect("decided in memory");
        if let Some(charge) = charge {
            let _ = h.store.close(h.ending(&c, refused.call, charge));
        }
        assert!(matches!(refused.durable().await, Err(StoreError::Broken(_))));
        as_before(&h, &c, &format!("a hold closed at {charge:?}")).await;
    }
    // Not even its row in the usage log can be written: nobody else waits for it.
    let mut refused =
        h.store.hold(Hold { model: "poison".into(), ..h.wish(&c, 150) }).await.expect("decided in memory");
    let mut ending = h.ending(&c, refused.call, 3);
    ending.row.model = "poison".into();
    let _ = h.store.close(ending);
    assert!(matches!(refused.durable().await, Err(StoreError::Broken(_))));
    as_before(&h, &c, "a row that is refused").await;
    // What counts in the day is right in the database too, where an operation of the same group
    // counted the refused one.
    let mut refused =
        h.store.hold(Hold { model: "poison".into(), ..h.wish(&c, 150) }).await.expect("decided in memory");
    let mut other = h.store.hold(h.wish(&c, 10)).await.expect("decided in memory");
    assert!(refused.durable().await.is_err() && other.durable().await.is_ok());
    while h.store.gauges().queue_len > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let used: i64 = file.query_row("SELECT day_used FROM account", [], |r| r.get(0)).expect("the account");
    assert_eq!(used, 10);
    h.store.close(h.ending(&c, other.call, 0)).await.expect("closed");
    as_before(&h, &c, "a neighbour").await;
    // An extension, of trial credit that expires and of money that was paid.
    for amount in [20, 200] {
        let call = h.held(&c, amount).await;
        let mut more = h.store.extend(h.more(&c, call, 1, 7)).await.expect("decided in memory");
        assert!(matches!(more.durable().await, Err(StoreError::Broken(_))));
        h.extend(h.more(&c, call, 2, 30)).await.expect("another one");
        h.store.close(h.ending(&c, call, 0)).await.expect("closed");
        as_before(&h, &c, "an extension").await;
    }
    drop(file);
    // The same with its close on the way: the hold stays open, and the next start finds the close
    // in the journal.
    let call = h.held(&c, 20).await;
    let mut more = h.store.extend(h.more(&c, call, 1, 7)).await.expect("decided in memory");
    let _ = h.store.close(h.ending(&c, call, 25));
    assert!(matches!(more.durable().await, Err(StoreError::Broken(_))));
    let copy = h.crashed_copy().await;
    let row = copy.store.usage_of(c.account, call).await.expect("reading").expect("a row");
    assert_eq!((row.hold.nano(), row.charge.nano()), (20, 25));
    copy.close().await;
    assert!(h.hold(h.wish(&c, 576)).await.is_err(), "memory has charged it");
    h.held(&c, 575).await;
    h.store.shut().await;
}

/// The database refuses what a delivered call cost. It is not lost when the journal has been
/// written anew many times, nor when the next start meets the same refusal; the first that does not
/// charges it.
#[tokio::test]
async fn sqlite_charges_what_was_refused_at_a_later_start() {
    let h = House::open("sqlite").await;
    let c = h.customer(0, 1_000).await;
    let file = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
    file.busy_timeout(Duration::from_secs(20)).expect("patience");
    let trigger = "CREATE TRIGGER poison BEFORE INSERT ON entry WHEN new.kind = 1 AND new.take_paid = 7 \
                   BEGIN SELECT raise(ABORT, 'refused'); END";
    file.execute_batch(trigger).expect("a trigger");
    let call = h.held(&c, 30).await;
    let _ = h.store.close(h.ending(&c, call, 7)).await;
    write_the_journal_anew(&h, &c).await;
    let h = h.reopen().await;
    assert!(h.store.usage_of(c.account, call).await.expect("reading").is_none(), "refused again, and not given away");
    write_the_journal_anew(&h, &c).await;
    file.execute_batch("DROP TRIGGER poison").expect("mended");
    drop(file);
    let h = h.reopen().await;
    charged_once(&h, &c, call).await;
    h.close().await;
}

/// So many calls that both halves of the journal are used several times.
async fn write_the_journal_anew(h: &House, c: &Customer) {
    for _ in 0..10 {
        let mut closings = Vec::new();
        for _ in 0..100 {
            let held = h.store.hold(h.wish(c, 1)).await.expect("a hold");
            closings.push(h.store.close(h.ending(c, held.call, 0)));
        }
        for closing in closings {
            closing.await.expect("closed");
        }
    }
}

async fn charged_once(h: &House, c: &Customer, call: CallId) {
    let row = h.store.usage_of(c.account, call).await.expect("reading").expect("a row");
    assert_eq!((row.hold.nano(), row.charge.nano(), row.ending), (30, 7, Ending::Answered));
    assert_eq!(h.pots(c).await, (0, 993, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_goes_on() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
    postgres_leaves_out_what_is_refused(&server.database("poison").await.expect("a database")).await;
    postgres_charges_what_was_refused_at_a_later_start(&server.database("later").await.expect("a database")).await;
    large_replies_make_small_groups(&server.database("large").await.expect("a database")).await;
    a_reader_waits_for_what_is_on_its_way(&server.database("flush").await.expect("a database")).await;
    new_prices_come_in_one_order(&server.database("prices").await.expect("a database")).await;
}

async fn postgres_leaves_out_what_is_refused(url: &str) {
    let h = House::open(url).await;
    let c = h.customer(0, 1_000).await;
    let link = Link::to(url).await;
    link.run(
        "CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF NEW.model = 'poison' THEN RAISE EXCEPTION 'refused'; END IF; RETURN NEW; END $$;
         CREATE TRIGGER poison BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION poison()",
    )
    .await;
    let wishes: Vec<Hold> = (0..9)
        .map(|n| Hold { model: if n == 4 { "poison".into() } else { "test".into() }, ..h.wish(&c, 10) })
        .collect();
    let mut tasks = tokio::task::JoinSet::new();
    for (n, wish) in wishes.into_iter().enumerate() {
        let store = h.store.clone();
        tasks.spawn(async move { (n, store.hold(wish).await) });
    }
    while let Some(done) = tasks.join_next().await {
        let (n, held) = done.expect("no panic");
        match held {
            Ok(held) => drop(h.store.close(h.ending(&c, held.call, 1)).await.expect("closed")),
            Err(refused) => assert!(n == 4 && matches!(refused, HoldRefused::Unavailable), "{n}: {refused}"),
        }
    }
    assert!(h.store.ready());
    assert_eq!(h.pots(&c).await, (0, 992, 0, 0));
    let lines = std::fs::read_to_string(h.place.data_dir.join("refused.jsonl")).expect("what was refused");
    assert!(lines.lines().count() == 1 && lines.contains("\"poison\""), "{lines}");
    h.close().await;
}

/// As on the other engine; and neither its own sweep nor its own start gives the call away.
async fn postgres_charges_what_was_refused_at_a_later_start(url: &str) {
    let h = House::open(url).await;
    let c = h.customer(0, 1_000).await;
    let link = Link::to(url).await;
    link.run(
        "CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF NEW.kind = 1 AND NEW.take_paid = 7 THEN RAISE EXCEPTION 'refused'; END IF; RETURN NEW; END $$;
         CREATE TRIGGER poison BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION poison()",
    )
    .await;
    let call = h.held(&c, 30).await;
    let _ = h.store.close(h.ending(&c, call, 7)).await;
    write_the_journal_anew(&h, &c).await;
    h.clock.advance(120_000);
    assert_eq!(h.store.sweep(h.clock.now()).await.expect("a sweep").expired, 0);
    let h = h.reopen().await;
    assert!(h.store.usage_of(c.account, call).await.expect("reading").is_none(), "refused again, and not given away");
    link.run("DROP TRIGGER poison ON entry").await;
    let h = h.reopen().await;
    charged_once(&h, &c, call).await;
    h.close().await;
}

/// A statement has an end: 500 stored replies in one would be more than PostgreSQL reads as one
/// value.
async fn large_replies_make_small_groups(url: &str) {
    let h = House::open(url).await;
    let c = h.customer(0, 1_000_000).await;
    let text = "x".repeat(1 << 20);
    let mut closings = Vec::new();
    for n in 0..40u8 {
        let mut wish = h.wish(&c, 10);
        wish.idem = Some(crate::common::idem(n, n));
        let call = h.hold(wish).await.expect("a hold").call;
        let mut ending = h.ending(&c, call, 1);
        ending.reply = Some(reply(&text));
        closings.push(ending);
    }
    let before = h.store.gauges().commits;
    let closings: Vec<_> = closings.into_iter().map(|ending| h.store.close(ending)).collect();
    for closing in closings {
        assert!(closing.await.expect("closed").applied);
    }
    let groups = h.store.gauges().commits - before;
    assert!(groups >= 10, "80 MB in groups of 8: {groups}");
    h.close().await;
}

/// A close that is neither queued nor applied but on its way: somebody else has the account.
async fn a_reader_waits_for_what_is_on_its_way(url: &str) {
    let h = House::open(url).await;
    let c = h.customer(0, 1_000).await;
    let call = h.held(&c, 10).await;
    let link = Link::to(url).await;
    link.run("BEGIN; SELECT 1 FROM account FOR UPDATE").await;
    let closing = h.store.close(h.ending(&c, call, 4));
    tokio::time::sleep(Duration::from_millis(200)).await;
    let release = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        link.run("COMMIT").await;
    };
    let (row, ()) = tokio::join!(h.store.usage_of(c.account, call), release);
    assert_eq!(row.expect("reading").expect("the row is there").charge.nano(), 4);
    closing.await.expect("closed");
    h.close().await;
}

/// Two replicas bring the same new prices in different orders: with locks in two orders they would
/// wait in a circle.
async fn new_prices_come_in_one_order(url: &str) {
    let link = Link::to(url).await;
    link.run("ALTER DATABASE prices SET deadlock_timeout = '30s'").await;
    let h = House::open_with(url, Options { hold_deadline: Duration::from_secs(20), ..options() }).await;
    let c = h.customer(0, 1_000).await;
    let mut prices = [price(7), price(8)];
    prices.sort_by_key(|p| p.id());
    let [low, high] = prices;
    let insert = |id: [u8; 16]| {
        let id: String = id.iter().map(|b| format!("{b:02x}")).collect();
        format!("INSERT INTO price VALUES ('\\x{id}', 'x') ON CONFLICT DO NOTHING")
    };
    link.run(&format!("BEGIN; {}", insert(low.id()))).await;
    let holds = async {
        let with = |price| h.store.hold(Hold { price, ..h.wish(&c, 10) });
        let (first, second) = tokio::join!(with(high.clone()), with(low.clone()));
        [first.expect("a hold").call, second.expect("a hold").call]
    };
    let other = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let inserted = tokio::time::timeout(Duration::from_secs(10), link.run(&insert(high.id()))).await;
        assert!(inserted.is_ok(), "a circle");
        link.run("ROLLBACK").await;
    };
    let (calls, ()) = tokio::join!(holds, other);
    for call in calls {
        h.store.close(h.ending(&c, call, 0)).await.expect("closed");
    }
    h.close().await;
}

/// A connection of one's own, to get in the way.
struct Link {
    client: tokio_postgres::Client,
    _driver: tokio::task::JoinSet<()>,
}

impl Link {
    async fn to(url: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("a connection");
        let mut driver = tokio::task::JoinSet::new();
        driver.spawn(async move { drop(connection.await) });
        Self { client, _driver: driver }
    }

    async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.expect("done");
    }
}

/// The second line of defence: a sum that SQLite would go on with in floating point is refused,
/// whoever asks for it.
#[tokio::test]
async fn no_amount_becomes_a_floating_point_number() {
    let h = House::open("sqlite").await;
    let c = h.customer(0, 1_000).await;
    let call = h.held(&c, 10).await;
    h.store.close(h.ending(&c, call, 10)).await.expect("closed");
    let file = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
    for column in ["account.paid_available", "account.trial_held", "account.day_used", "key.spent", "usage.refunded"] {
        let (table, column) = column.split_once('.').expect("a table");
        let sum = format!("UPDATE {table} SET {column} = {column} + 9223372036854775807 + 1");
        let refused = file.execute_batch(&sum).expect_err("too large").to_string();
        assert!(refused.contains("an amount is too large"), "{table}.{column}: {refused}");
    }
    h.close().await;
}

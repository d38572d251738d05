//! The ledger as tables that can be read aloud. Columns after `|` are the pots after the line:
//! trial available, paid available, trial held, paid held. `charged` and `lost` are what a close
//! answered.

use std::collections::HashMap;

use crate::common::House;
use tollgate_store::{CreditKind, HoldRefused, Pot};

async fn check(table: &str) {
    let h = House::open("sqlite").await;
    let c = h.customer(0, 0).await;
    let mut calls = HashMap::new();
    for (number, line) in table.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let (words, pots) = line.split_once('|').expect("a line has `|`");
        let words: Vec<&str> = words.split_whitespace().collect();
        let amount = |i: usize| words[i].parse::<i64>().expect("a number");
        let answer = match words[0] {
            "top-up" | "adjust" => {
                let kind = if words[0] == "top-up" { CreditKind::TopUp } else { CreditKind::Adjust };
                let pot = if words[1] == "trial" { Pot::Trial } else { Pot::Paid };
                let done = h.credit(&c, &format!("line {number}"), kind, pot, amount(2)).await;
                if done.is_ok() { "ok" } else { "refused" }.to_owned()
            }
            "refund" => {
                let kind = CreditKind::Refund { call: calls[words[1]] };
                let done = h.credit(&c, &format!("line {number}"), kind, Pot::Paid, amount(2)).await;
                if done.is_ok() { "ok" } else { "refused" }.to_owned()
            }
            "hold" | "hold-paid" => {
                let mut wish = h.wish(&c, amount(2));
                wish.paid_only = words[0] == "hold-paid";
                match h.hold(wish).await {
                    Ok(held) => {
                        calls.insert(words[1].to_owned(), held.call);
                        "ok".to_owned()
                    }
                    Err(HoldRefused::Insufficient { .. }) => "refused".to_owned(),
                    Err(other) => panic!("line {number}: {other}"),
                }
            }
            "extend" => {
                match h.extend(h.more(&c, calls[words[1]], number.try_into().expect("a step"), amount(2))).await {
                    Ok(_) => "ok".to_owned(),
                    Err(HoldRefused::Insufficient { .. }) => "refused".to_owned(),
                    Err(HoldRefused::NotOpen) => "late".to_owned(),
                    Err(other) => panic!("line {number}: {other}"),
                }
            }
            "close" => {
                let closed = h.store.close(h.ending(&c, calls[words[1]], amount(2))).await.expect("closed");
                match (closed.applied, closed.write_off.nano()) {
                    (false, _) => "late".to_owned(),
                    (true, 0) => format!("charged {}", closed.captured.nano()),
                    (true, lost) => format!("charged {} lost {lost}", closed.captured.nano()),
                }
            }
            other => panic!("line {number}: no verb {other}"),
        };
        let wanted = words[3..].join(" ");
        assert_eq!(answer, wanted, "line {number}: {line}");
        let (trial, paid, trial_held, paid_held) = h.pots(&c).await;
        let found = format!("{trial} {paid} {trial_held} {paid_held}");
        assert_eq!(found, pots.split_whitespace().collect::<Vec<_>>().join(" "), "line {number}: {line}");
    }
    h.close().await;
}

#[tokio::test]
async fn trial_is_spent_first() {
    check(
        "top-up    trial 100  ok                  |  100     0    0    0
         top-up    paid  500  ok                  |  100   500    0    0
         hold      A     150  ok                  |    0   450  100   50
         close     A     120  charged 120         |    0   480    0    0
         hold      B     481  refused             |    0   480    0    0
         hold      B     480  ok                  |    0     0    0  480
         close     B       0  charged 0           |    0   480    0    0",
    )
    .await;
}

#[tokio::test]
async fn a_charge_above_the_hold() {
    check(
        "top-up    trial  10  ok                  |   10     0    0    0
         top-up    paid  100  ok                  |   10   100    0    0
         hold      A      20  ok                  |    0    90   10   10
         close     A      50  charged 50          |    0    60    0    0
         hold      B      10  ok                  |    0    50    0   10
         close     B     100  charged 60 lost 40  |    0     0    0    0
         close     B     100  late                |    0     0    0    0
         hold      C       1  refused             |    0     0    0    0
         hold      C       0  ok                  |    0     0    0    0
         close     C       3  charged 0 lost 3    |    0     0    0    0",
    )
    .await;
}

#[tokio::test]
async fn a_stream_that_outgrows_its_hold() {
    check(
        "top-up    trial  10  ok                  |   10     0    0    0
         top-up    paid  100  ok                  |   10   100    0    0
         hold      A       5  ok                  |    5   100    5    0
         extend    A      10  ok                  |    0    95   10    5
         extend    A      96  refused             |    0    95   10    5
         extend    A      45  ok                  |    0    50   10   50
         close     A      55  charged 55          |    0    55    0    0
         extend    A       1  late                |    0    55    0    0
         hold      B       5  ok                  |    0    50    0    5
         extend    B      40  ok                  |    0    10    0   45
         close     B     100  charged 55 lost 45  |    0     0    0    0",
    )
    .await;
}

#[tokio::test]
async fn paid_only_calls_leave_trial_alone() {
    check(
        "top-up    trial 100  ok                  |  100     0    0    0
         hold-paid A      10  refused             |  100     0    0    0
         top-up    paid   50  ok                  |  100    50    0    0
         hold-paid A      30  ok                  |  100    20    0   30
         close     A      60  charged 50 lost 10  |  100     0    0    0",
    )
    .await;
}

#[tokio::test]
async fn corrections() {
    check(
        "top-up    trial  30  ok                  |   30     0    0    0
         top-up    paid  100  ok                  |   30   100    0    0
         hold      A      80  ok                  |    0    50   30   50
         adjust    paid  -51  refused             |    0    50   30   50
         adjust    paid  -50  ok                  |    0     0   30   50
         close     A      80  charged 80          |    0     0    0    0
         refund    A      81  refused             |    0     0    0    0
         refund    A      60  ok                  |   10    50    0    0
         refund    A       5  refused             |   10    50    0    0
         adjust    trial   5  ok                  |   15    50    0    0",
    )
    .await;
}

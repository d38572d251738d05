//! Who gets a place, who has to go, and when.

use super::*;
use tokio::task::JoinSet;

const MINUTE: Duration = Duration::from_secs(60);

/// Places for tests, with tasks that end when they are told to.
struct Hall {
    connections: Connections,
    tasks: JoinSet<()>,
}

impl Hall {
    fn new(most: usize, per_peer: usize) -> Hall {
        Hall::shaking(most, per_peer, None)
    }

    /// The same with TLS.
    fn shaking(most: usize, per_peer: usize, handshakes: Option<usize>) -> Hall {
        let trusted = vec!["10.0.0.0/8".parse().expect("a network")];
        let rules =
            ConnectionLimits { most, per_peer, header_time: MINUTE, idle_time: MINUTE * 5, handshakes, trusted };
        Hall { connections: Connections::new(rules, ConnectionMeter::default()), tasks: JoinSet::new() }
    }

    fn place(&mut self, address: &str) -> Option<SocketPlace> {
        let place = self.connections.place(address.parse().expect("an address"))?;
        place.seat().belongs_to(self.tasks.spawn(std::future::pending()));
        Some(place)
    }

    fn many(&mut self, address: &str, number: usize) -> Vec<SocketPlace> {
        (0..number).map(|_| self.place(address).expect("a place")).collect()
    }

    fn tick(&self, times: usize) {
        (0..times).for_each(|_| self.connections.0.close_the_late());
    }

    fn is_there(&self, place: &SocketPlace) -> bool {
        self.connections.0.lock().seats.contains_key(&place.seat().id)
    }

    fn left(&self, places: &[SocketPlace]) -> usize {
        places.iter().filter(|place| self.is_there(place)).count()
    }

    fn strangers(&self) -> usize {
        self.connections.0.lock().strangers
    }
}

const STRANGER: &str = "198.51.100.1";

#[tokio::test]
async fn silence_ends_a_connection_and_work_does_not() {
    let mut hall = Hall::new(16, 16);
    let (silent, asking, idle, proven) =
        (hall.place(STRANGER), hall.place(STRANGER), hall.place(STRANGER), hall.place(STRANGER));
    let [silent, asking, idle, proven] = [silent, asking, idle, proven].map(|place| place.expect("a place"));
    let _busy = asking.seat().begin(false).expect("served");
    drop(idle.seat().begin(false));
    drop(proven.seat().begin(false));
    proven.seat().prove();
    hall.tick(4);
    assert!(hall.is_there(&silent), "within its time");
    hall.tick(1);
    assert_eq!([&silent, &asking, &idle, &proven].map(|place| hall.is_there(place)), [false, true, false, true]);
    hall.tick(15);
    assert!(hall.is_there(&proven), "a connection with a key may wait longer");
    hall.tick(1);
    assert!(!hall.is_there(&proven) && hall.is_there(&asking), "but not for ever");
    assert!(silent.seat().begin(false).is_none(), "it was told to go");
}

/// Half a head, and then nothing: the time of a head is counted from its first byte, also where a
/// key was seen before.
#[tokio::test]
async fn a_head_that_does_not_come_to_its_end_is_late() {
    let mut hall = Hall::new(16, 16);
    let place = hall.place(STRANGER).expect("a place");
    drop(place.seat().begin(false));
    place.seat().prove();
    hall.tick(10);
    place.seat().heard();
    hall.tick(3);
    place.seat().heard();
    hall.tick(1);
    assert!(hall.is_there(&place));
    hall.tick(1);
    assert!(!hall.is_there(&place), "more bytes make it no younger");
    // On HTTP/2 there are pings between requests.
    let place = hall.place(STRANGER).expect("a place");
    drop(place.seat().begin(true));
    place.seat().prove();
    hall.tick(10);
    place.seat().heard();
    hall.tick(10);
    assert!(hall.is_there(&place));
    hall.tick(1);
    assert!(!hall.is_there(&place), "pings are no requests");
}

#[tokio::test]
async fn the_first_request_is_waited_for_from_the_first_moment() {
    let mut hall = Hall::new(16, 16);
    let place = hall.place(STRANGER).expect("a place");
    for _ in 0..5 {
        place.seat().heard();
        hall.tick(1);
    }
    assert!(!hall.is_there(&place), "half a preface every now and then");
}

#[tokio::test]
async fn a_crowd_of_silent_sockets_keeps_nobody_out() {
    let mut hall = Hall::new(64, 64);
    let crowd = hall.many("127.0.0.1", 64);
    let customer = hall.place("127.0.0.1").expect("a place");
    assert!(!hall.is_there(&crowd[0]) && hall.is_there(&crowd[63]), "the oldest goes");
    let _busy = customer.seat().begin(false).expect("served");
    let later = hall.many("127.0.0.1", 200);
    assert!(hall.is_there(&customer) && hall.left(&crowd) == 0 && hall.left(&later) == 63);
}

#[tokio::test]
async fn strangers_leave_places_for_those_who_are_known() {
    let mut hall = Hall::new(64, 64);
    let known = hall.place("192.0.2.7").expect("a place");
    drop(known.seat().begin(false));
    known.seat().prove();
    drop(known);
    assert_eq!(hall.strangers(), 0);
    let mut crowd = Vec::new();
    let mut calls = Vec::new();
    for number in 0..56 {
        let place = hall.place(&format!("198.51.100.{number}")).expect("a place");
        calls.push(place.seat().begin(false).expect("served"));
        crowd.push(place);
    }
    assert!(hall.place("198.51.100.99").is_none(), "all have something under way, and the rest is not for strangers");
    let back = hall.many("192.0.2.7", 4);
    let proxy = hall.many("10.1.2.3", 4);
    assert_eq!((hall.left(&crowd), hall.left(&back), hall.left(&proxy)), (56, 4, 4));
    let next = hall.place("192.0.2.7");
    assert!(next.is_some() && hall.left(&crowd) == 56, "of those with nothing under way one had to go");
    assert_eq!(hall.left(&back) + hall.left(&proxy), 7);
}

/// A stranger takes no place of one who has shown a key, though it is idle; one who is known does,
/// at the very last.
#[tokio::test]
async fn a_shown_key_is_worth_more_than_none() {
    let mut hall = Hall::new(4, 4);
    let proven = hall.many("192.0.2.7", 3);
    for place in &proven {
        drop(place.seat().begin(false));
        place.seat().prove();
    }
    let silent = hall.place(STRANGER).expect("a place");
    let second = hall.place(STRANGER).expect("the place of the silent one");
    assert!(!hall.is_there(&silent) && hall.left(&proven) == 3);
    let _busy = second.seat().begin(false);
    assert!(hall.place(STRANGER).is_none());
    assert!(hall.place("192.0.2.7").is_some() && hall.left(&proven) == 2);
}

#[tokio::test]
async fn one_address_has_its_part_and_a_network_of_version_six_is_one() {
    let mut hall = Hall::new(64, 4);
    let first = hall.many(STRANGER, 4);
    let fifth = hall.place(STRANGER).expect("instead of its own oldest");
    assert!(!hall.is_there(&first[0]) && hall.left(&first) == 3 && hall.is_there(&fifth));
    let calls: Vec<RequestUnderWay> =
        first[1..].iter().chain([&fifth]).filter_map(|place| place.seat().begin(false)).collect();
    assert_eq!(calls.len(), 4);
    assert!(hall.place(STRANGER).is_none(), "all of them have something under way");
    assert!(hall.place("198.51.100.2").is_some(), "others are not concerned");
    let six = (1..=6).map(|n| hall.place(&format!("2001:db8::{n}")).expect("a place")).collect::<Vec<_>>();
    assert_eq!(hall.left(&six), 4);
    assert_eq!(hall.many("127.0.0.1", 10).len(), 10, "this machine speaks for many");
}

#[tokio::test]
async fn a_socket_that_became_another_thing_is_not_told_to_go() {
    let mut hall = Hall::new(2, 2);
    let place = hall.place(STRANGER).expect("a place");
    drop(place.seat().begin(false));
    place.seat().hand_over();
    hall.tick(1_000);
    assert!(hall.is_there(&place));
    drop(place);
    assert!(hall.connections.0.lock().seats.is_empty() && hall.strangers() == 0);
}

/// A descriptor is free when the socket is closed and not before: whoever accepts waits for those
/// who leave.
#[tokio::test]
async fn those_who_leave_are_waited_for() {
    let mut hall = Hall::new(1_024, 1_024);
    let mut crowd = hall.many("127.0.0.1", 1_024);
    let connections = hall.connections.clone();
    connections.settled().await;
    hall.tick(5);
    assert_eq!(hall.left(&crowd), 0);
    let mut waits = std::pin::pin!(connections.settled());
    assert!(futures_util::poll!(waits.as_mut()).is_pending());
    crowd.truncate(64);
    assert!(futures_util::poll!(waits.as_mut()).is_pending());
    crowd.truncate(63);
    waits.await;
    drop(crowd);
    assert_eq!(connections.0.leaving.load(Ordering::SeqCst), 0);
    assert_eq!(connections.0.meter.open.get(), 0);
}

/// Unfinished handshakes are counted by themselves, and each is counted once, however it ends.
#[tokio::test]
async fn handshakes_under_way_give_way_to_newcomers_and_nobody_else_does() {
    let mut hall = Hall::shaking(64, 64, Some(3));
    let count = |hall: &Hall| hall.connections.0.lock().handshakes;
    let done = hall.many(STRANGER, 2);
    done.iter().for_each(|place| place.seat().shaken());
    assert_eq!(count(&hall), 0);
    let crowd = hall.many("198.51.100.2", 3);
    let newcomer = hall.place("198.51.100.3").expect("a place");
    assert_eq!((hall.left(&done), hall.left(&crowd), count(&hall)), (2, 2, 3));
    // One that was sent away finishes too late.
    crowd.iter().for_each(|place| place.seat().shaken());
    assert_eq!(count(&hall), 1);
    drop(newcomer);
    assert_eq!(count(&hall), 0);
    drop((done, crowd));
    assert_eq!(count(&hall), 0);
}

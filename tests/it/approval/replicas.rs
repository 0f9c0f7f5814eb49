//! Agreements that replicas share, and random histories of them.

use std::collections::HashSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::{APPROVER, CLIENT, VARIABLES, answer, link, shown};
use crate::several::Setup;
use crate::shared_state::{assert_hidden, http_replica};
use crate::support::{HttpServer, LIST, Redis, Upstream, soak, text, wait_until};

/// Two replicas of one server, and what they call.
struct Replicas {
    servers: [HttpServer; 2],
    upstream: Upstream,
    setup: Setup,
}

impl Replicas {
    fn start(redis: &Redis) -> Self {
        let (setup, upstream) = (Setup::new(), Upstream::echo());
        setup.write("office.json", &super::document().to_string());
        let config = setup.config(&json!({
            "spec": "office.json", "base_url": upstream.url, "confirm": "write", "confirm_by": "link",
            "auth_token_env": ["CLIENT", "OTHER"], "reload": 0.2,
            "auth_tokens": [{"name": "boss", "env": "APPROVER", "approve": true}],
        }));
        let servers = [(); 2].map(|()| {
            let server = http_replica(redis, &["--config", &config], &VARIABLES);
            server.logged("tool");
            server
        });
        Self {
            servers,
            upstream,
            setup,
        }
    }

    fn call(&self, replica: usize, token: &str, id: &str) -> Value {
        let authorization = format!("Authorization: Bearer {token}");
        let parameters = json!({"arguments": {"id": id}});
        let headers = [authorization.as_str()];
        let answer =
            self.servers[replica].call_stateless_as(&headers, "remove", parameters, &json!({}));
        answer["result"].clone()
    }

    fn answer(&self, replica: usize, link: &str, agree: bool) -> u16 {
        answer(&self.servers[replica].address, APPROVER, link, agree)
    }
}

#[test]
fn p89_an_agreement_is_for_one_call_of_all_replicas_and_none_is_valid_without_their_state() {
    let Some(mut redis) = Redis::start() else {
        return;
    };
    let replicas = Replicas::start(&redis);
    let path = link(&replicas.call(0, CLIENT, "first"));
    assert_eq!(link(&replicas.call(1, CLIENT, "first")), path);
    assert_hidden(
        &redis,
        &["first", "things", path.trim_start_matches("/approve/")],
    );
    assert_eq!(replicas.answer(1, &path, true), 204);
    assert_eq!(replicas.answer(0, &path, true), 404);
    assert_eq!(replicas.call(0, CLIENT, "first")["isError"], false);
    assert_eq!(
        replicas.upstream.take_one().line,
        "DELETE /things/first HTTP/1.1"
    );
    let again = link(&replicas.call(1, CLIENT, "first"));
    assert_ne!(again, path);
    assert_eq!(replicas.answer(0, &again, true), 204);
    redis.run(&["FLUSHALL"]);
    let third = link(&replicas.call(1, CLIENT, "first"));
    assert_ne!(third, again, "what is lost is asked again");

    redis.kill();
    let refused = replicas.call(0, CLIENT, "first");
    assert!(
        text(&refused).contains("the shared state cannot be used"),
        "{refused}"
    );
    assert_eq!(replicas.answer(0, &third, true), 503);
    redis.restart();
    wait_until("the replicas do not come back", || {
        text(&replicas.call(0, CLIENT, "first")).contains("/approve/")
    });
    assert!(replicas.upstream.received().is_empty());
}

#[test]
fn p89_of_many_calls_at_once_one_uses_the_agreement() {
    let Some(redis) = Redis::start() else {
        return;
    };
    let replicas = Replicas::start(&redis);
    for round in 0..3 {
        let id = format!("{round}");
        let path = link(&replicas.call(0, CLIENT, &id));
        assert_eq!(replicas.answer(0, &path, true), 204);
        std::thread::scope(|scope| {
            for number in 0..16 {
                let (replicas, id) = (&replicas, &id);
                scope.spawn(move || replicas.call(number % 2, CLIENT, id));
            }
        });
        assert_eq!(replicas.upstream.take_all().len(), 1, "round {round}");
    }
}

/// What happens to replicas.
#[derive(Debug, Clone)]
enum Event {
    /// A call at a replica, of a caller, with an identifier.
    Call(usize, bool, u8),
    /// An answer at a replica to a link that was given; without an index, to the last one.
    Answer(usize, Option<prop::sample::Index>, bool),
    /// A look at a link that was given.
    Look(usize, prop::sample::Index),
    /// The document changes.
    Change,
    /// The state is lost, as if all had expired.
    Lose,
    /// The state is away, or back and empty.
    Away(bool),
}

fn event() -> impl Strategy<Value = Event> {
    let any_link = any::<prop::sample::Index>;
    prop_oneof![
        20 => (0..2_usize, any::<bool>(), 0..3_u8).prop_map(|(at, caller, id)| Event::Call(at, caller, id)),
        14 => (0..2_usize, prop::option::of(any_link()), prop::bool::weighted(0.8)).prop_map(|(at, link, agree)| Event::Answer(at, link, agree)),
        1 => (0..2_usize, any_link()).prop_map(|(at, link)| Event::Look(at, link)),
        1 => Just(Event::Change),
        1 => Just(Event::Lose),
        1 => any::<bool>().prop_map(Event::Away),
    ]
}

/// A call: who makes it, the identifier, and the version of the document.
type Asked = (bool, String, u32);

/// Replicas, and what is known of their state.
struct World {
    replicas: Replicas,
    redis: Redis,
    is_away: bool,
    version: u32,
    /// The links that were given, with the calls that they are about.
    links: Vec<(String, Asked)>,
    /// The calls that were agreed to, and not made since.
    agreed: HashSet<Asked>,
    made: usize,
}

impl World {
    fn happen(&mut self, case: u32, event: &Event) {
        match event {
            Event::Call(at, caller, id) => self.call(*at, *caller, &format!("{case}-{id}")),
            Event::Answer(at, index, agree) if !self.links.is_empty() => {
                let last = || self.links.last().unwrap();
                let (path, call) = index.map_or_else(last, |index| index.get(&self.links));
                let status = self.replicas.answer(*at, path, *agree);
                assert!(matches!(status, 204 | 404 | 503), "{status}");
                if status == 204 && *agree {
                    self.agreed.insert(call.clone());
                }
            }
            Event::Look(at, index) if !self.links.is_empty() => {
                let (path, _): &(String, Asked) = index.get(&self.links);
                shown(&self.replicas.servers[*at].address, APPROVER, path);
            }
            Event::Answer(..) | Event::Look(..) => {}
            Event::Change => self.change(),
            Event::Lose if self.is_away => {}
            Event::Lose => {
                self.redis.run(&["FLUSHALL"]);
                self.agreed.clear();
            }
            Event::Away(is_away) if *is_away == self.is_away => {}
            Event::Away(true) => {
                self.redis.kill();
                self.agreed.clear();
                self.is_away = true;
            }
            Event::Away(false) => self.come_back(),
        }
    }

    fn call(&mut self, at: usize, caller: bool, id: &str) {
        let token = if caller { CLIENT } else { VARIABLES[2].1 };
        let result = self.replicas.call(at, token, id);
        let sent = self.replicas.upstream.take_all();
        let call = (caller, id.to_owned(), self.version);
        if sent.is_empty() {
            assert_eq!(result["isError"], true);
            assert!(!self.agreed.contains(&call), "{result} {call:?}");
        } else {
            assert!(self.agreed.remove(&call), "{call:?} was not agreed to");
            assert_eq!(sent.len(), 1);
            assert_eq!(sent[0].path(), format!("/things/{id}"));
            self.made += 1;
        }
        if text(&result).contains("/approve/") {
            let path = link(&result);
            match self.links.iter().find(|(known, _)| *known == path) {
                Some((_, known)) => assert_eq!(*known, call),
                None => self.links.push((path, call)),
            }
        }
    }

    fn change(&mut self) {
        self.version += 1;
        let name = format!("version_{}", self.version);
        let mut changed = super::document();
        changed["paths"][format!("/{name}")] = json!({"get": {"operationId": name}});
        self.replicas
            .setup
            .write("office.json", &changed.to_string());
        let authorization = format!("Authorization: Bearer {CLIENT}");
        for server in &self.replicas.servers {
            wait_until("the document is not read again", || {
                let (_, list) = server.post(&[&authorization], LIST);
                list.contains(&name)
            });
        }
    }

    /// Starts the state again, and waits until each replica uses it.
    fn come_back(&mut self) {
        self.redis.restart();
        self.is_away = false;
        for server in &self.replicas.servers {
            wait_until("the state does not come back", || {
                shown(&server.address, APPROVER, "/approve/none").0 == 404
            });
        }
    }
}

#[test]
fn p89_no_history_leads_to_a_call_without_an_agreement_to_it() {
    let Some(redis) = Redis::start() else {
        return;
    };
    let mut world = World {
        replicas: Replicas::start(&redis),
        redis,
        is_away: false,
        version: 1,
        links: Vec::new(),
        agreed: HashSet::new(),
        made: 0,
    };
    let mut runner = TestRunner::default();
    let histories = prop::collection::vec(event(), 10..40);
    let cases = if soak() { 200 } else { 16 };
    for case in 0..cases {
        let history = histories.new_tree(&mut runner).unwrap().current();
        println!("{history:?}");
        for event in &history {
            world.happen(case, event);
        }
        if world.is_away {
            world.come_back();
        }
        // Answers free the places of open questions.
        for (path, _) in std::mem::take(&mut world.links) {
            for at in 0..2 {
                world.replicas.answer(at, &path, false);
            }
        }
        world.agreed.clear();
    }
    assert!(world.made > 2, "{} calls were made", world.made);
}

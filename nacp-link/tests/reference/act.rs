//! Does what a recorded app did of itself.

use nacp_link::{Answer, LinkState, Request};
use nacp_proto::{Body, Message, Outcome, Registered};

use crate::play::Play;
use crate::recording::{Conn, Recording, What};
use crate::shape::{decode, is_beat};

impl Play {
    /// Does what the app did of itself. Whether there is anything that it can be told to do.
    pub(crate) fn act(&mut self, recorded: &Message) -> bool {
        let message = self.translated(recorded);
        let now = self.world.now();
        let recorded_id = recorded.id.clone();
        match message.body {
            Body::Request {
                kind,
                target,
                payload,
            } if !is_beat(recorded) => {
                let request = Request {
                    to: message.to,
                    kind,
                    target: target.unwrap_or_default(),
                    payload,
                    limit: None,
                };
                self.node().request(now, request, None);
            }
            Body::Response(response) => {
                let Some(running) = self.running.remove(&response.parent_id) else {
                    return false;
                };
                let answer = match response.outcome {
                    Outcome::Ok => Answer::ok(response.payload),
                    Outcome::NotOk { why } => {
                        Answer::not_ok(why.unwrap_or_default(), response.payload)
                    }
                };
                self.node().respond(now, running, answer, None);
            }
            Body::Signal { parent_id, signal } => {
                self.node()
                    .signal(now, &message.to, parent_id, signal, None);
            }
            Body::Notify {
                parent_id,
                hit_sub_name,
                payload,
                ..
            } => {
                if let Some(running) = self.running.get(&parent_id).copied() {
                    self.node().process(now, running, payload, None);
                } else if let Some(subscription) = self.subscriptions.get(&parent_id).copied() {
                    self.node()
                        .notify(now, subscription, &hit_sub_name, payload, None);
                } else {
                    return false;
                }
            }
            Body::Subscribe { target_sub_name } => {
                let stream = self
                    .node()
                    .subscribe(now, &message.to, target_sub_name, None);
                if let Some(stream) = stream {
                    self.streams.insert(recorded_id, stream);
                }
            }
            Body::Unsubscribe { .. } => {
                let Body::Unsubscribe { target_sub_id } = &recorded.body else {
                    return false;
                };
                let Some(stream) = self.streams.get(target_sub_id).copied() else {
                    return false;
                };
                self.node().unsubscribe(now, stream, None);
            }
            Body::Unregister => self.node().disconnect(now, &message.to, None),
            Body::Request { .. } | Body::Register(_) | Body::Ack { .. } => return false,
        }
        true
    }

    /// While the app was offline it did what comes out right behind its next register.
    pub(crate) fn do_ahead(&mut self, recording: &Recording, from: usize, (link, _): &Conn) {
        let offline = self.world.sites[0]
            .node
            .links()
            .any(|link| link.state == LinkState::Offline);
        if !offline {
            return;
        }
        let later = || recording.moments.iter().enumerate().skip(from + 1);
        let next = later().find(|(_, moment)| {
            moment.conn.0 == *link
                && matches!(moment.what, What::Connect)
                && self.takes_part(&moment.conn)
        });
        let Some((start, next)) = next else {
            return;
        };
        let own = self.side(&next.conn, recording, &next.conn);
        for (place, moment) in recording.moments.iter().enumerate().skip(start) {
            let What::Said { by, bytes, .. } = &moment.what else {
                continue;
            };
            let Some(message) = decode(bytes).filter(|_| moment.conn == next.conn) else {
                continue;
            };
            if *by != own {
                let handshake = match &message.body {
                    Body::Ack { .. } | Body::Register(_) => true,
                    Body::Response(response) => Registered::from_payload(&response.payload).is_ok(),
                    _ => false,
                };
                if handshake {
                    continue;
                }
                return;
            }
            let known = self.ids.contains_key(message.id.to_smol_str().as_str());
            if !known && !self.ahead.contains(&place) && self.act(&message) {
                self.ahead.push(place);
            }
        }
    }
}

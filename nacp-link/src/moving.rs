//! An app that was reached through a gateway is bound directly (specification, section 5).

use std::collections::VecDeque;

use nacp_proto::{AppId, Instance};

use crate::Undelivered;
use crate::ids::LinkId;
use crate::link::Served;
use crate::node::Node;
use crate::record::{Class, Key, Record};
use crate::subscribing::MAX_GIVEN_UP;

impl Node {
    /// An app that was reached through a gateway is bound directly: what waits for it moves along.
    /// If it was another instance that was met there, what had been served when that answered last.
    pub(crate) fn move_in(&mut self, id: LinkId) -> Option<Served> {
        let link = self.links.get(id)?;
        let (app, instance) = (link.app.clone(), link.info.instance);
        let mut other = None;
        for gateway in self.gateways.clone() {
            if gateway == id {
                continue;
            }
            let remote = self
                .links
                .get(gateway)
                .and_then(|link| link.remotes.get(&app));
            let met = remote.and_then(|remote| remote.instance);
            if met.is_some() && met != instance {
                other = other.max(remote.map(|remote| remote.served));
            }
            self.enter_instance(id, met.or(instance));
            self.move_records(gateway, id, &app);
            self.move_waiters(gateway, id, &app);
            self.move_tables(gateway, id, &app);
            // What was taken away may have been all that the gateway's replay waited for.
            self.pump(gateway);
        }
        self.enter_instance(id, instance);
        other
    }

    fn enter_instance(&mut self, id: LinkId, instance: Option<Instance>) {
        if let Some(link) = self.links.get_mut(id) {
            link.instances.enter(instance);
        }
    }

    fn move_records(&mut self, gateway: LinkId, id: LinkId, app: &AppId) {
        let is_meant = |record: &Record| is_meant(record, app);
        let pending = self.pending.iter(&gateway).map(|(record, _)| record);
        let keys: Vec<Key> = pending
            .filter(|record| is_meant(record))
            .map(|record| record.key.clone())
            .collect();
        let mut records: Vec<Record> = keys
            .iter()
            .filter_map(|key| self.pending.settle(key))
            .collect();
        let peer = self.peer_of(gateway);
        while let Some(record) = peer
            .and_then(|peer| self.peers.get_mut(peer))
            .and_then(|peer| peer.take_submitted(is_meant))
        {
            if record.is_acknowledged() {
                self.submitted.remove(record.bytes);
            }
            records.push(record);
        }
        records.extend(self.take_queued(gateway, |_, record| is_meant(record)));
        records.sort_by_key(|record| record.seq);
        let (withdrawn, mut records): (Vec<_>, Vec<_>) = records
            .into_iter()
            .partition(|record| self.take_withdrawn(gateway, record));
        for record in withdrawn {
            self.fail(record, Undelivered::Timeout);
        }
        let taker = self.taker(id);
        for record in &mut records {
            self.count_out(record);
            record.link = id;
            if record.was_accepted() {
                record.takers = taker;
            }
            record.tries = 0;
            record.is_excess = false;
            self.count_in(record);
        }
        self.put_at_head(records);
        self.move_blocked(gateway, id, app);
    }

    fn move_blocked(&mut self, gateway: LinkId, id: LinkId, app: &AppId) {
        for mut record in self.take_blocked(gateway, |record| is_meant(record, app)) {
            if !self.take_withdrawn(gateway, &record) {
                record.link = id;
                // It waits on, and nothing is settled.
                let _ = self.block(record);
            }
        }
    }

    fn move_waiters(&mut self, gateway: LinkId, id: LinkId, app: &AppId) {
        let (moved, stays): (Vec<_>, Vec<_>) = self
            .waiters
            .drain(&gateway)
            .partition(|(waiter, _)| waiter.to == *app);
        for (mut waiter, _) in moved {
            waiter.link = id;
            self.wait_for(waiter);
        }
        for (waiter, _) in stays {
            self.wait_for(waiter);
        }
    }

    fn move_tables(&mut self, gateway: LinkId, id: LinkId, app: &AppId) {
        let Some([from, to]) = self.links.get_disjoint_mut([gateway, id]) else {
            return;
        };
        if let Some(mut remote) = from.remotes.remove(app) {
            self.timers.disarm(&mut remote.timer);
        }
        to.subscriptions
            .extend(from.subscriptions.extract_if(|key, _| key.0 == *app));
        to.running
            .extend(from.running.extract_if(|key, _| key.0 == *app));
        let (given_up, stays) = std::mem::take(&mut from.given_up)
            .into_iter()
            .partition::<VecDeque<_>, _>(|(of, _)| of == app);
        from.given_up = stays;
        extend_bounded(&mut to.given_up, given_up);
        let (endings, stays) = std::mem::take(&mut from.endings)
            .into_iter()
            .partition::<VecDeque<_>, _>(|ending| ending.app == *app);
        from.endings = stays;
        extend_bounded(&mut to.endings, endings);
        let streams = &self.streams;
        let is_meant =
            |id: &crate::StreamId| streams.get(*id).is_some_and(|stream| stream.to == *app);
        to.streams
            .extend(from.streams.extract_if(|_, stream| is_meant(stream)));
        for subscription in to.subscriptions.values() {
            if let Some(subscription) = self.subscriptions.get_mut(*subscription) {
                subscription.link = id;
            }
        }
        for running in to.running.values() {
            if let Some(running) = self.running.get_mut(*running) {
                running.link = id;
            }
        }
        for stream in to.streams.values() {
            if let Some(stream) = self.streams.get_mut(*stream) {
                stream.link = id;
            }
        }
    }
}

fn is_meant(record: &Record, app: &AppId) -> bool {
    record.to == *app && !matches!(record.class, Class::Relayed { .. })
}

/// Keeps the newest.
fn extend_bounded<T>(known: &mut VecDeque<T>, moved: VecDeque<T>) {
    known.extend(moved);
    let excess = known.len().saturating_sub(MAX_GIVEN_UP);
    drop(known.drain(..excess));
}

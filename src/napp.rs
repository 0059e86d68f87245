use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nacp_bus::{Event, ListenerId, Pattern};
use nacp_link::{LinkState, NodeSnapshot, Totals, Undelivered};
use nacp_proto::{AppId, Decl, MessageId, Payload, Signal};
use serde::Serialize;

use crate::driver::Core;
use crate::emit::all_accepted;
use crate::links::{LinkWatch, WatchQueue};
use crate::send::SendError;
use crate::{
    Builder, Connect, EmitError, Events, IntoAppId, JobRequest, LinkInfo, ListenError, NotifyError,
    RawRequest, Request, RequestError, SubscribeError, Subscription, Target, TargetError, Value,
};

/// A running app: dials and is dialled, calls and is called.
///
/// A handle: clones are the same app. When the last one is dropped, the app ends as by
/// [`terminate_now`](Self::terminate_now). Handlers get a handle from their context, which does not
/// keep the app alive.
#[derive(Clone)]
pub struct NApp {
    core: Arc<Core>,
    _owner: Option<Arc<Owner>>,
}

/// Ends the node when the last handle is dropped.
struct Owner(Arc<Core>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.terminate_now();
    }
}

impl NApp {
    /// Begins to build an app of this name.
    ///
    /// A name that is none is told by [`Builder::start`].
    pub fn builder(app: impl IntoAppId) -> Builder {
        Builder::new(app.into_app_id())
    }

    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self {
            _owner: Some(Arc::new(Owner(Arc::clone(&core)))),
            core,
        }
    }

    pub(crate) const fn unowned(core: Arc<Core>) -> Self {
        Self { core, _owner: None }
    }

    /// A handle that does not keep the app alive. When the app has ended, every call by it fails as
    /// `terminated`.
    #[must_use]
    pub fn to_unowned(&self) -> Self {
        Self::unowned(Arc::clone(&self.core))
    }

    /// The app's name.
    pub fn app_id(&self) -> &AppId {
        &self.core.parts.app
    }

    /// Where it listens, with the real ports: each can be dialled. Empty for a transport without
    /// addresses of the internet.
    pub fn listen_addrs(&self) -> Vec<SocketAddr> {
        let listens = self.core.parts.listens.iter();
        listens.filter_map(|(_, addr)| *addr).collect()
    }

    /// Where it listens, in the transport's form: each can be dialled.
    pub fn listen_addresses(&self) -> Vec<String> {
        let listens = self.core.parts.listens.iter();
        listens.map(|(address, _)| address.clone()).collect()
    }

    /// Wants an app online: `[APP@]ADDRESS`, or whatever else is a [`Target`].
    ///
    /// # Errors
    ///
    /// Once awaited: [`ConnectError`](crate::ConnectError), with the stage that failed. Whatever the
    /// link was before, it still is.
    pub fn connect<T>(&self, target: T) -> Connect
    where
        T: TryInto<Target>,
        T::Error: Into<TargetError>,
    {
        let target = target.try_into().map_err(Into::into);
        Connect::new(Arc::clone(&self.core), target)
    }

    /// Completes when an app is online, at once if it is.
    ///
    /// # Errors
    ///
    /// [`Undelivered::Terminated`] if this app ends first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn wait_online(&self, app: &AppId) -> Result<(), Undelivered> {
        let mut watch = self.watch_links();
        if self
            .link(app)
            .is_some_and(|link| link.state == LinkState::Online)
        {
            return Ok(());
        }
        while let Some(change) = watch.next().await {
            if change.app == *app && change.state == LinkState::Online {
                return Ok(());
            }
        }
        Err(Undelivered::Terminated)
    }

    /// Calls an ability of another app, with its argument and result as serde types.
    ///
    /// # Errors
    ///
    /// Once awaited: [`RequestError`].
    pub fn request<R>(
        &self,
        to: impl IntoAppId,
        name: &str,
        args: &(impl Serialize + ?Sized),
    ) -> Request<R> {
        let core = Arc::clone(&self.core);
        Request::new(core, to.into_app_id(), name, Payload::new(args))
    }

    /// Calls an ability of another app, with payloads as they are.
    ///
    /// # Errors
    ///
    /// Once awaited: [`RequestError`].
    pub fn request_raw(&self, to: impl IntoAppId, name: &str, payload: Payload) -> RawRequest {
        let core = Arc::clone(&self.core);
        RawRequest(Request::new(core, to.into_app_id(), name, Ok(payload)))
    }

    /// Starts an event at another app.
    ///
    /// # Errors
    ///
    /// Once awaited: [`RequestError::App`] and
    /// [`RequestError::Encode`]. What happens later, the job's response
    /// tells.
    pub fn run(
        &self,
        to: impl IntoAppId,
        name: &str,
        args: &(impl Serialize + ?Sized),
    ) -> JobRequest {
        let core = Arc::clone(&self.core);
        JobRequest::new(core, to.into_app_id(), name, Payload::new(args))
    }

    /// [`run`](Self::run) with a payload as it is.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn run_raw(&self, to: impl IntoAppId, name: &str, payload: Payload) -> JobRequest {
        let core = Arc::clone(&self.core);
        JobRequest::new(core, to.into_app_id(), name, Ok(payload))
    }

    /// Listens to the events of another app's bus whose names a pattern matches. Completes with the
    /// other side's answer, within the response timeout.
    ///
    /// # Errors
    ///
    /// [`SubscribeError`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the subscription.
    pub async fn subscribe(
        &self,
        to: impl IntoAppId,
        pattern: &str,
    ) -> Result<Subscription, SubscribeError> {
        Subscription::make(&self.core, to.into_app_id()?, pattern).await
    }

    /// Emits an event on this app's bus: to its listeners, one after another, and to the apps that
    /// have subscribed. Returns how many there were.
    ///
    /// # Errors
    ///
    /// [`EmitError::Encode`] if the value is none for the wire.
    pub fn emit(&self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<usize, EmitError> {
        Ok(self.emit_raw(name, Payload::new(value)?))
    }

    /// [`emit`](Self::emit) with a payload as it is.
    pub fn emit_raw(&self, name: &str, payload: Payload) -> usize {
        self.core.emit(name, || payload)
    }

    /// Sends an event to one app alone, if it has subscribed to that name. Completes when the
    /// transport has taken it; waits while the link is offline. Returns how many of the app's
    /// subscriptions it hit.
    ///
    /// # Errors
    ///
    /// [`NotifyError`].
    ///
    /// # Cancel safety
    ///
    /// What was polled once is on its way.
    pub async fn notify(
        &self,
        to: impl IntoAppId,
        name: &str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<usize, NotifyError> {
        let payload = Payload::new(value)?;
        let waiting = self.core.notify(&to.into_app_id()?, name, &payload);
        if waiting.is_empty() {
            return Err(NotifyError::NotSubscribed);
        }
        all_accepted(waiting).await
    }

    /// Tells a running event of another app something. Completes when the other side has
    /// acknowledged it, whether or not the event still runs there.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    ///
    /// # Cancel safety
    ///
    /// A signal that was polled once is on its way.
    pub async fn signal(
        &self,
        to: impl IntoAppId,
        request: MessageId,
        signal: Signal,
    ) -> Result<(), SendError> {
        self.core.signal(&to.into_app_id()?, request, signal).await
    }

    /// Calls `callback` with each event on this app's bus whose name a pattern matches: its own
    /// [`emit`](Self::emit)s and what the node reports (specification, section 13).
    ///
    /// Callbacks run on the thread that emits, outside of every lock: they may use the app as they
    /// like, and should be brief. Panics are contained.
    ///
    /// # Errors
    ///
    /// [`ListenError`] if the text is no pattern.
    pub fn listen<F>(&self, pattern: &str, callback: F) -> Result<ListenerId, ListenError>
    where
        F: Fn(&Event<'_, Value>) + Send + Sync + 'static,
    {
        Ok(self.core.bus.listen(&Pattern::parse(pattern)?, callback))
    }

    /// [`listen`](Self::listen) for the next event alone.
    ///
    /// # Errors
    ///
    /// [`ListenError`] if the text is no pattern.
    pub fn listen_once<F>(&self, pattern: &str, callback: F) -> Result<ListenerId, ListenError>
    where
        F: FnOnce(&Event<'_, Value>) + Send + 'static,
    {
        Ok(self
            .core
            .bus
            .listen_once(&Pattern::parse(pattern)?, callback))
    }

    /// Ends a listener; `false` if it has ended already.
    pub fn off(&self, listener: ListenerId) -> bool {
        self.core.bus.off(listener)
    }

    /// Everything that the node reports (specification, section 13), as a stream.
    pub fn events(&self) -> Events {
        Events::new(&self.core.bus, self.core.parts.stream_capacity)
    }

    /// The links now, in no particular order.
    pub fn links(&self) -> Vec<LinkInfo> {
        self.core.lock().node.links().map(LinkInfo::from).collect()
    }

    /// The link to one app.
    pub fn link(&self, app: &AppId) -> Option<LinkInfo> {
        self.core.lock().node.link(app).map(LinkInfo::from)
    }

    /// The changes of all links from now on.
    pub fn watch_links(&self) -> LinkWatch {
        let queue = Arc::new(WatchQueue::new());
        let mut state = self.core.lock();
        if state.has_ended {
            queue.end();
        } else {
            state.watches.push(Arc::downgrade(&queue));
        }
        LinkWatch { queue }
    }

    /// What the node holds now.
    pub fn snapshot(&self) -> NodeSnapshot {
        self.core.lock().node.snapshot()
    }

    /// What the node has done since it was started.
    pub fn totals(&self) -> Totals {
        *self.core.lock().node.totals()
    }

    /// Asks another app what it declares.
    ///
    /// # Errors
    ///
    /// [`RequestError`].
    ///
    /// # Cancel safety
    ///
    /// As for every [`Request`].
    pub async fn introduce(&self, app: impl IntoAppId) -> Result<Decl, RequestError> {
        let request = self.request_raw(app, "NApp.introduce", Payload::empty());
        Ok(request.await?.decode()?)
    }

    /// Asks another app for a sign of life; returns how long it took to come. It takes its turn
    /// behind what was sent before. The node's own heartbeats overtake that:
    /// [`LinkInfo::round_trip`] tells of them.
    ///
    /// # Errors
    ///
    /// [`RequestError`].
    ///
    /// # Cancel safety
    ///
    /// As for every [`Request`].
    pub async fn heartbeat(&self, app: impl IntoAppId) -> Result<Duration, RequestError> {
        #[derive(Serialize)]
        struct Beat<'a> {
            from: &'a str,
        }
        let beat = Payload::new(&Beat {
            from: self.app_id().as_str(),
        })?;
        let sent = crate::driver::now();
        self.request_raw(app, "NApp.heartbeat", beat).await?;
        Ok(crate::driver::now().saturating_duration_since(sent))
    }

    /// Says good-bye to an app: what was sent to it before goes first, new sends settle `peer-gone`.
    /// Completes when its link is dropped, at the latest after the response timeout; at once for one
    /// that is offline or unknown. The link is not made again.
    ///
    /// # Errors
    ///
    /// [`SendError::App`] if it is no name of an app.
    ///
    /// # Cancel safety
    ///
    /// A good-bye that was polled once goes on.
    pub async fn disconnect(&self, app: impl IntoAppId) -> Result<(), SendError> {
        let app = app.into_app_id()?;
        let sending = self.core.sending(|core, token| {
            core.turn(|state, now| {
                state.give_up(&app);
                state.node.disconnect(now, &app, Some(token));
            });
        });
        sending.await
    }

    /// Ends the app politely: no more calls are taken, what waits for offline apps settles, online
    /// ones are told good-bye, within 10 s in all. Then everything else settles `terminated`, and
    /// its sockets are closed. Completes when all that is done.
    ///
    /// Again, at once or later, it completes with the first. Handlers may call it.
    ///
    /// # Cancel safety
    ///
    /// Once polled, the app ends.
    pub async fn terminate(&self) {
        let sending = self.core.sending(|core, token| {
            core.turn(|state, now| state.node.terminate(now, Some(token)));
        });
        // A termination cannot fail.
        let _ = sending.await;
        self.core.tasks.wait().await;
    }

    /// Ends the app at once: every call settles `terminated`, every peer is closed without a word.
    /// Again it does nothing.
    pub fn terminate_now(&self) {
        self.core.terminate_now();
    }
}

impl Core {
    pub(crate) async fn signal(
        self: &Arc<Self>,
        to: &AppId,
        request: MessageId,
        signal: Signal,
    ) -> Result<(), SendError> {
        self.sending(|core, token| {
            core.turn(|state, now| state.node.signal(now, to, request, signal, Some(token)));
        })
        .await
    }
}

impl fmt::Debug for NApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NApp")
            .field("app_id", self.app_id())
            .field("listens", &self.core.parts.listens)
            .finish_non_exhaustive()
    }
}

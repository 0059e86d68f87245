use std::time::Instant;

use nacp::Decl;
use nacp::proto::AppId;

use super::handshake;
use super::stage::{Stage, Stages};
use super::{Scope, link, resume};
use crate::dial::Session;
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::latency::Summary;
use crate::output::Output;
use crate::target::Target;

/// What a probe has found so far.
#[derive(Debug)]
pub(super) struct Probe<'a> {
    scope: &'a Scope,
    pub(super) session: Session,
    pub(super) stages: Stages,
    pub(super) began: Instant,
    pub(super) deadline: tokio::time::Instant,
    /// The stage under way and when it began, once there is a link.
    current: Option<(&'static str, Instant)>,
    pub(super) peer: Option<AppId>,
    pub(super) decl: Option<Decl>,
    pub(super) heartbeat: Option<Summary>,
    pub(super) resumed: Option<resume::Resumed>,
}

impl<'a> Probe<'a> {
    pub(super) async fn start(scope: &'a Scope, target: Target) -> Result<Self, Failure> {
        // Beats of the node itself would mix with those that are measured.
        let session = Session::start(&scope.plan, target, |b| b.heartbeat_interval(None));
        Ok(Self {
            scope,
            session: session.await?,
            stages: Stages::new(plan(scope)),
            began: Instant::now(),
            deadline: scope.plan.deadline(),
            current: None,
            peer: None,
            decl: None,
            heartbeat: None,
            resumed: None,
        })
    }

    /// Goes through all stages, up to the first that fails; the others show as skipped.
    pub(super) async fn go(&mut self, output: &mut Output) -> Result<(), Stop> {
        let mut ended = self.all(output).await;
        if let Err(Stop::Failed(failure)) = &mut ended {
            self.advise(failure);
        }
        if let Err(Stop::Failed(failure)) = &ended {
            self.failed(failure, output)?;
        }
        ended
    }

    /// The user has seen enough.
    pub(super) fn interrupted(&mut self, output: &mut Output) -> Result<(), Stop> {
        let current = self
            .current
            .map(|(stage, _)| stage)
            .unwrap_or_else(|| handshake::current(&self.session.trace));
        let failure = Failure::interrupted(current);
        self.failed(&failure, output)?;
        Err(failure.into())
    }

    pub(super) async fn close(self, interrupt: &Interrupt) {
        self.session.close(interrupt).await;
    }

    async fn all(&mut self, output: &mut Output) -> Result<(), Stop> {
        let peer = self.connect(output).await?;
        self.peer = Some(peer.clone());
        self.enter("introduce");
        let (stage, decl) = link::introduce(self, &peer).await?;
        self.decl = decl;
        self.stages.push(stage, output)?;
        self.enter("heartbeat");
        let (stage, summary) = link::heartbeat(self, &peer, self.scope.count).await?;
        self.heartbeat = summary;
        self.stages.push(stage, output)?;
        self.enter("subscribe");
        let stage = link::subscribe(self, &peer).await?;
        self.stages.push(stage, output)?;
        if let Some(call) = &self.scope.call {
            self.enter("call");
            let stage = link::call(self, &peer, call).await?;
            self.stages.push(stage, output)?;
        }
        if self.scope.resume {
            self.enter("resume");
            let (stage, resumed) = resume::resume(self, &peer).await?;
            self.resumed = Some(resumed);
            self.stages.push(stage, output)?;
        }
        self.enter("good-bye");
        let stage = link::good_bye(self, &peer).await?;
        Ok(self.stages.push(stage, output)?)
    }

    /// What is usually advised is to run a probe.
    fn advise(&self, failure: &mut Failure) {
        let advice = match (
            self.current.map(|(stage, _)| stage),
            failure.reason.as_str(),
        ) {
            (Some(_), "timeout") => {
                "the link stands and this stage is slow: give it more time with --timeout; the \
                 peer's log should tell what it does meanwhile"
            }
            (Some("call"), "no-processor") => {
                "the stage introduce lists what the app declares; an event is called with \
                 `nacp-cli call --event`"
            }
            _ => return,
        };
        failure.hint = Some(advice.to_owned());
    }

    fn enter(&mut self, stage: &'static str) {
        self.current = Some((stage, Instant::now()));
    }

    fn failed(&mut self, failure: &Failure, output: &mut Output) -> Result<(), Stop> {
        match self.current {
            None => handshake::fail(&mut self.stages, &self.session.trace, failure, output)?,
            Some((_, began)) => {
                let stage = Stage::failed(failure, Some(began.elapsed()));
                self.stages.push(stage, output)?;
            }
        }
        Ok(self.stages.skip_rest(output)?)
    }

    async fn connect(&mut self, output: &mut Output) -> Result<AppId, Stop> {
        let connecting = self.session.connect(self.deadline);
        let mut connecting = std::pin::pin!(connecting);
        let peer = loop {
            tokio::select! {
                biased;
                connected = &mut connecting => break connected?,
                () = self.session.trace.changed() => {
                    handshake::advance(&mut self.stages, &self.session.trace, output)?;
                }
            }
        };
        handshake::finish(&mut self.stages, &self.session.trace, output)?;
        Ok(peer)
    }
}

/// What there is to go through.
fn plan(scope: &Scope) -> Vec<&'static str> {
    let mut stages = vec!["resolve", "connect", "frame", "register", "ack"];
    stages.extend(["introduce", "heartbeat", "subscribe"]);
    stages.extend(scope.call.as_ref().map(|_| "call"));
    stages.extend(scope.resume.then_some("resume"));
    stages.push("good-bye");
    stages
}

use std::collections::HashMap;

use nacp_link::Settlement;
use nacp_proto::{AppId, Body, Decoded, Message, MessageId, Outcome, Payload, Response, Signal};

/// An AppId.
pub(crate) fn app(name: &str) -> AppId {
    AppId::new(name).unwrap()
}

/// A message id.
pub(crate) fn id(text: &str) -> MessageId {
    MessageId::new(text).unwrap()
}

/// A payload that is a text.
pub(crate) fn payload(text: &str) -> Payload {
    Payload::new(text).unwrap()
}

/// The text that a payload is, or its bytes.
pub(crate) fn text_of(payload: &Payload) -> String {
    payload
        .decode::<String>()
        .unwrap_or_else(|_| format!("{:02x?}", payload.as_cbor()))
}

/// How a send or call ended, in a few words.
pub(crate) fn settlement(settlement: &Settlement) -> String {
    match settlement {
        Settlement::Delivered => "delivered".to_owned(),
        Settlement::Undelivered(reason) => reason.as_str().to_owned(),
        Settlement::Connected(app) => format!("connected {app}"),
        Settlement::DialFailed(error) => error.as_str().to_owned(),
        Settlement::Answered(answered) => match &answered.response.outcome {
            Outcome::Ok => format!("ok {}", text_of(&answered.response.payload)),
            Outcome::NotOk { why } => format!("not ok: {}", why.as_deref().unwrap_or("")),
        },
        other => panic!("unknown settlement {other:?}"),
    }
}

/// Short for a payload: its text, or nothing.
fn label(payload: &Payload, otherwise: &str) -> String {
    payload
        .decode::<String>()
        .unwrap_or_else(|_| otherwise.to_owned())
}

/// One line for a message. Messages with a text as payload are called by it, and so are their
/// ACKs and answers.
pub(crate) fn describe(labels: &mut HashMap<MessageId, String>, decoded: &Decoded) -> String {
    match decoded {
        Decoded::Message(message) => describe_message(labels, message),
        Decoded::Malformed(malformed) => {
            let name = malformed.message_type.as_str();
            labels.insert(malformed.envelope.id.clone(), name.to_owned());
            format!("malformed {name}")
        }
        Decoded::Unknown {
            envelope,
            type_name,
        } => {
            labels.insert(envelope.id.clone(), type_name.to_string());
            format!("unknown {type_name}")
        }
    }
}

fn describe_message(labels: &mut HashMap<MessageId, String>, message: &Message) -> String {
    let of = |labels: &HashMap<MessageId, String>, id: &MessageId| {
        labels.get(id).cloned().unwrap_or_else(|| format!("?{id}"))
    };
    let (line, own) = match &message.body {
        Body::Register(_) => ("register".to_owned(), "register".to_owned()),
        Body::Unregister => ("unregister".to_owned(), "unregister".to_owned()),
        Body::Subscribe { target_sub_name } => (
            format!("subscribe {target_sub_name}"),
            format!("subscribe {target_sub_name}"),
        ),
        Body::Unsubscribe { target_sub_id } => {
            let line = format!("un{}", of(labels, target_sub_id));
            (line.clone(), line)
        }
        Body::Request { target, .. } if target.as_deref() == Some("NApp.heartbeat") => {
            ("beat".to_owned(), "beat".to_owned())
        }
        Body::Request { payload, .. } => {
            let label = label(payload, "request");
            (format!("request {label}"), label)
        }
        Body::Response(response) => {
            let line = answer_line(&of(labels, &response.parent_id), response);
            let own = format!("answer {}", of(labels, &response.parent_id));
            (line, own)
        }
        Body::Signal { signal, .. } => {
            let label = match signal {
                Signal::Normal(payload) => label(payload, "normal"),
                control => control.kind().to_owned(),
            };
            (format!("signal {label}"), label)
        }
        Body::Notify { payload, .. } => {
            let label = label(payload, "notify");
            (format!("notify {label}"), label)
        }
        Body::Ack { parent_id } => {
            let line = format!("ack {}", of(labels, parent_id));
            (line.clone(), line)
        }
    };
    labels.insert(message.id.clone(), own);
    line
}

fn answer_line(label: &str, response: &Response) -> String {
    match &response.outcome {
        Outcome::Ok => format!("answer {label}"),
        Outcome::NotOk { why } => format!("answer {label}: {}", why.as_deref().unwrap_or("")),
    }
}

//! An event bus with wildcard patterns matched by a trie, generic over the payload.
#![warn(missing_docs)]

use std::hash::BuildHasher;
use std::mem::swap;

use hashbrown::{DefaultHashBuilder, HashTable};
use slab::Slab;
use smallvec::SmallVec;

use crate::pattern::{Pattern, SEPARATOR, STAR, Segment};

/// Stands for "no node" and "no entry"; a slab never hands out this index.
pub(super) const NONE: usize = usize::MAX;

pub(super) type NodeId = usize;

/// Nodes of one depth. Eight hold every combination of literal and star over three segments.
pub(super) type Level = SmallVec<[NodeId; 8]>;

/// The segments of all patterns as a tree, with one hash table for the edges of all nodes.
///
/// A node is kept only while a pattern ends in it or below it. The table is seeded at random, since
/// segments may come from strangers.
#[derive(Debug)]
pub(super) struct Trie {
    nodes: Slab<Node>,
    edges: HashTable<NodeId>,
    hasher: DefaultHashBuilder,
    /// Root of the patterns without a star, each one a single edge labelled with its whole text:
    /// however many segments it has, such a pattern costs one probe.
    literals: NodeId,
    wildcards: NodeId,
}

#[derive(Debug)]
struct Node {
    parent: NodeId,
    /// The edge from the parent, and its hash in the table.
    label: Box<str>,
    hash: u64,
    star: NodeId,
    literal_children: usize,
    entries: List,
}

/// First and last entry of the patterns that end in a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Trie {
    pub(super) fn new() -> Self {
        let mut nodes = Slab::new();
        let literals = nodes.insert(Node::new(NONE, "", 0));
        let wildcards = nodes.insert(Node::new(NONE, "", 0));
        Self {
            nodes,
            edges: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            literals,
            wildcards,
        }
    }

    /// How many nodes there are besides the two roots.
    pub(super) fn len(&self) -> usize {
        self.nodes.len().saturating_sub(2)
    }

    // Called from generic code of other crates, once for each pattern that matches.
    #[inline]
    pub(super) fn list(&self, node: NodeId) -> List {
        self.nodes[node].entries
    }

    pub(super) fn list_mut(&mut self, node: NodeId) -> &mut List {
        &mut self.nodes[node].entries
    }

    /// The node in which `pattern` ends, made if it is not there yet.
    pub(super) fn insert(&mut self, pattern: &Pattern) -> NodeId {
        if pattern.is_literal() {
            return self.insert_literal(self.literals, pattern.as_str());
        }
        let mut node = self.wildcards;
        for segment in pattern.segments() {
            node = match segment {
                Segment::Any => self.insert_star(node),
                Segment::Literal(label) => self.insert_literal(node, label),
            };
        }
        node
    }

    /// Removes `node` if nothing needs it any more, and then its ancestors likewise.
    pub(super) fn prune(&mut self, mut id: NodeId) {
        while self.nodes[id].parent != NONE && self.nodes[id].is_unused() {
            let node = self.nodes.remove(id);
            let parent = &mut self.nodes[node.parent];
            if parent.star == id {
                parent.star = NONE;
            } else {
                parent.literal_children -= 1;
                if let Ok(edge) = self.edges.find_entry(node.hash, |&edge| edge == id) {
                    edge.remove();
                }
            }
            id = node.parent;
        }
    }

    /// The nodes in which patterns end that match `name`.
    pub(super) fn leaves(&self, name: &str) -> Level {
        let mut leaves = Level::new();
        if self.nodes[self.literals].literal_children > 0 {
            let hash = self.hasher.hash_one(name);
            if let Some(leaf) = self.literal(self.literals, name, hash) {
                leaves.push(leaf);
            }
        }
        if self.nodes[self.wildcards].has_children() {
            self.descend(name, &mut leaves);
        }
        leaves
    }

    fn descend(&self, name: &str, leaves: &mut Level) {
        let (mut one, mut other) = (Level::new(), Level::new());
        // Swapped as references, the levels themselves stay where they are.
        let (mut level, mut next) = (&mut one, &mut other);
        level.push(self.wildcards);
        for segment in name.split(SEPARATOR) {
            self.step(level, segment, next);
            swap(&mut level, &mut next);
            if level.is_empty() {
                return;
            }
        }
        let ends = |&node: &NodeId| self.nodes[node].entries.first != NONE;
        leaves.extend(level.iter().copied().filter(ends));
    }

    /// Sets `next` to the children of `level` that `segment` leads to. No node has two parents, so
    /// there are never more than there are nodes at that depth.
    fn step(&self, level: &[NodeId], segment: &str, next: &mut Level) {
        let hash = self.hasher.hash_one(segment);
        next.clear();
        for &id in level {
            let node = &self.nodes[id];
            if node.star != NONE {
                next.push(node.star);
            }
            if node.literal_children > 0
                && let Some(child) = self.literal(id, segment, hash)
            {
                next.push(child);
            }
        }
    }

    fn literal(&self, parent: NodeId, label: &str, label_hash: u64) -> Option<NodeId> {
        let hash = edge_hash(parent, label_hash);
        let is_edge = |&id: &NodeId| {
            let node = &self.nodes[id];
            node.parent == parent && *node.label == *label
        };
        self.edges.find(hash, is_edge).copied()
    }

    fn insert_literal(&mut self, parent: NodeId, label: &str) -> NodeId {
        let label_hash = self.hasher.hash_one(label);
        if let Some(id) = self.literal(parent, label, label_hash) {
            return id;
        }
        let hash = edge_hash(parent, label_hash);
        let id = self.nodes.insert(Node::new(parent, label, hash));
        self.nodes[parent].literal_children += 1;
        let Self { nodes, edges, .. } = self;
        edges.insert_unique(hash, id, |&id| nodes[id].hash);
        id
    }

    fn insert_star(&mut self, parent: NodeId) -> NodeId {
        if self.nodes[parent].star == NONE {
            let id = self.nodes.insert(Node::new(parent, STAR, 0));
            self.nodes[parent].star = id;
        }
        self.nodes[parent].star
    }
}

impl Node {
    fn new(parent: NodeId, label: &str, hash: u64) -> Self {
        let entries = List {
            first: NONE,
            last: NONE,
        };
        Self {
            parent,
            label: label.into(),
            hash,
            star: NONE,
            literal_children: 0,
            entries,
        }
    }

    fn has_children(&self) -> bool {
        self.star != NONE || self.literal_children > 0
    }

    fn is_unused(&self) -> bool {
        !self.has_children() && self.entries.first == NONE
    }
}

/// One hash of a segment serves all parents; the odd factor (of the golden ratio) sets them apart.
fn edge_hash(parent: NodeId, label_hash: u64) -> u64 {
    label_hash ^ (parent as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many nodes a search for `name` looks at, level by level.
    fn visited(trie: &Trie, name: &str) -> Vec<usize> {
        let mut level: Level = [trie.wildcards].into_iter().collect();
        name.split(SEPARATOR)
            .map(|segment| {
                let mut next = Level::new();
                trie.step(&level, segment, &mut next);
                level = next;
                level.len()
            })
            .collect()
    }

    fn with_patterns(patterns: impl IntoIterator<Item = String>) -> Trie {
        let mut trie = Trie::new();
        for text in patterns {
            let node = trie.insert(&Pattern::parse(&text).unwrap());
            trie.list_mut(node).first = 0;
        }
        trie
    }

    #[test]
    fn t19_patterns_that_share_their_segments_share_the_walk() {
        let shared = ["s:*"; 10].join(":");
        let trie = with_patterns((0..10_000).map(|i| format!("{shared}:{i}")));
        let name = format!("{}:77", ["s:x"; 10].join(":"));
        assert_eq!(visited(&trie, &name), [1; 21]);
        assert_eq!(trie.leaves(&name).len(), 1);
        assert_eq!(trie.len(), 20 + 10_000);
    }

    #[test]
    fn t19_a_level_never_holds_more_nodes_than_there_are_patterns() {
        // Bit by bit a star or a literal: the walk doubles at each of the 20 segments until every
        // pattern has a node of its own, and no further.
        let pattern = |i: u32| {
            let segment = |bit: u32| if i >> (bit % 10) & 1 == 1 { "*" } else { "s" };
            (0..20).map(segment).collect::<Vec<_>>().join(":")
        };
        let trie = with_patterns((1..1024).map(pattern));
        let levels = visited(&trie, &["s"; 20].join(":"));
        assert_eq!(levels[..9], [2, 4, 8, 16, 32, 64, 128, 256, 512]);
        assert_eq!(levels[9..], [1023; 11]);
    }

    #[test]
    fn a_node_goes_when_the_last_pattern_through_it_goes() {
        let mut trie = with_patterns(["a:*:b".into(), "a:*:c".into()]);
        assert_eq!(trie.len(), 4);
        for (text, left) in [("a:*:b", 3), ("a:*:c", 0)] {
            let node = trie.insert(&Pattern::parse(text).unwrap());
            trie.list_mut(node).first = NONE;
            trie.prune(node);
            assert_eq!(trie.len(), left);
        }
        assert!(trie.edges.is_empty());
    }

    #[test]
    fn a_literal_pattern_is_one_node() {
        let trie = with_patterns(["a:b:c:d".into()]);
        assert_eq!(trie.len(), 1);
        assert_eq!(trie.leaves("a:b:c:d").len(), 1);
        assert_eq!(trie.leaves("a:b:c").len(), 0);
    }
}

/// The index that stands for "no node".
pub(crate) const NONE: u32 = u32::MAX;

/// A node's place in one list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) prev: u32,
    pub(crate) next: u32,
}

impl Link {
    pub(crate) const ALONE: Self = Self {
        prev: NONE,
        next: NONE,
    };
}

/// A node that is threaded on lists; `which` tells them apart.
pub(crate) trait Linked {
    fn link(&mut self, which: usize) -> &mut Link;
}

/// A doubly linked list threaded through nodes that lie in a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl List {
    pub(crate) const EMPTY: Self = Self {
        head: NONE,
        tail: NONE,
    };

    #[inline]
    pub(crate) fn push_back<N: Linked>(&mut self, nodes: &mut [N], which: usize, node: u32) {
        *nodes[node as usize].link(which) = Link {
            prev: self.tail,
            next: NONE,
        };
        match self.tail {
            NONE => self.head = node,
            tail => nodes[tail as usize].link(which).next = node,
        }
        self.tail = node;
    }

    #[inline]
    pub(crate) fn push_front<N: Linked>(&mut self, nodes: &mut [N], which: usize, node: u32) {
        *nodes[node as usize].link(which) = Link {
            prev: NONE,
            next: self.head,
        };
        match self.head {
            NONE => self.tail = node,
            head => nodes[head as usize].link(which).prev = node,
        }
        self.head = node;
    }

    #[inline]
    pub(crate) fn unlink<N: Linked>(&mut self, nodes: &mut [N], which: usize, node: u32) {
        let Link { prev, next } = *nodes[node as usize].link(which);
        match prev {
            NONE => self.head = next,
            prev => nodes[prev as usize].link(which).next = next,
        }
        match next {
            NONE => self.tail = prev,
            next => nodes[next as usize].link(which).prev = prev,
        }
    }
}

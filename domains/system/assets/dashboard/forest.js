/** Most records that the page keeps. The oldest trees are dropped, each as a whole. */
export const RECORDS_MAX = 2000
/** Most nodes of one tree that are kept. */
const TREE_MAX = 500

/** The causal trees of the last records. A tree holds all events that one HTTP request has caused, or one event without a request. */
export class Forest {
  /** By key, oldest first. */
  #trees = new Map()
  #nodes = new Map()
  #failures = new Map()
  /** Id of a missing cause → the events that it has caused. */
  #waiting = new Map()
  #size = 0
  /** Trees since the beginning. */
  treesSeen = 0
  version = 0

  get size() {
    return this.#size
  }

  node(id) {
    return this.#nodes.get(id)
  }

  tree(key) {
    return this.#trees.get(key)
  }

  clear() {
    this.#trees.clear()
    this.#nodes.clear()
    this.#failures.clear()
    this.#waiting.clear()
    this.#size = 0
    this.version++
  }

  add(record) {
    if (this.#nodes.has(record.id)) return
    const parent = record.parent_id === null ? undefined : this.#nodes.get(record.parent_id)
    const key = parent?.tree.key ?? (record.request_id === null ? record.id : `request:${record.request_id}`)
    const tree = this.#trees.get(key) ?? this.#plant(key, record)
    tree.version++
    this.version++
    const atMs = Date.parse(record.timestamp)
    tree.lastMs = Math.max(tree.lastMs, atMs)
    if (tree.size >= TREE_MAX) {
      tree.more++
      return
    }
    const node = { record, tree, parent, children: [], atMs, failures: this.#failures.get(record.id) ?? [] }
    if (node.failures.length > 0) tree.failed = true
    ;(parent?.children ?? tree.roots).push(node)
    this.#nodes.set(record.id, node)
    tree.size++
    this.#size++
    if (parent === undefined && record.parent_id !== null) this.#wait(node)
    this.#adopt(node)
    this.#prune(tree)
  }

  /** Keeps a node whose cause is missing: the cause may still come, since records of one millisecond have no order. */
  #wait(node) {
    const { parent_id } = node.record
    const siblings = this.#waiting.get(parent_id)
    if (siblings !== undefined) return siblings.push(node)
    if (this.#waiting.size >= RECORDS_MAX) this.#waiting.delete(this.#waiting.keys().next().value)
    this.#waiting.set(parent_id, [node])
  }

  /** Moves the nodes that have waited for this parent below it, with their subtrees. */
  #adopt(parent) {
    const children = this.#waiting.get(parent.record.id)
    if (children === undefined) return
    this.#waiting.delete(parent.record.id)
    for (const node of children) {
      const { tree } = node
      if (this.#nodes.get(node.record.id) !== node) continue
      tree.roots = tree.roots.filter((each) => each !== node)
      node.parent = parent
      parent.children.push(node)
      if (tree === parent.tree) continue
      this.#move(node, parent.tree)
      if (tree.size === 0) this.#trees.delete(tree.key)
    }
  }

  #move(node, tree) {
    node.tree.size--
    tree.size++
    tree.failed ||= node.failures.length > 0
    node.tree = tree
    for (const child of node.children) this.#move(child, tree)
  }

  #plant(key, { request_id, timestamp }) {
    const atMs = Date.parse(timestamp)
    const tree = {
      key,
      requestId: request_id,
      roots: [],
      size: 0,
      more: 0,
      firstMs: atMs,
      lastMs: atMs,
      failed: false,
      version: 0,
      rows: null,
      rowsVersion: -1,
    }
    this.#trees.set(key, tree)
    this.treesSeen++
    return tree
  }

  #prune(newest) {
    for (const tree of this.#trees.values()) {
      if (this.#size <= RECORDS_MAX || tree === newest) return
      this.#trees.delete(tree.key)
      this.#size -= tree.size
      const walk = (nodes) => {
        for (const { record, children } of nodes) {
          this.#nodes.delete(record.id)
          this.#failures.delete(record.id)
          walk(children)
        }
      }
      walk(tree.roots)
    }
  }

  /** Notes a delivery that has failed for good. */
  fail(failure) {
    const { event_id: id, subscriber } = failure
    const failures = this.#failures.get(id) ?? []
    if (failures.some((each) => each.subscriber === subscriber && each.attempts === failure.attempts)) return
    failures.push(failure)
    if (this.#failures.size > RECORDS_MAX) this.#failures.delete(this.#failures.keys().next().value)
    this.#failures.set(id, failures)
    const node = this.#nodes.get(id)
    if (node === undefined) return
    node.failures = failures
    node.tree.failed = true
    node.tree.version++
    this.version++
  }

  /** The rows to show, newest tree first, each with its place among those of the same cause. @param matches chooses trees; null for all */
  rows(matches) {
    const rows = []
    const trees = [...this.#trees.values()]
    const tops = []
    for (let n = trees.length - 1; n >= 0; n--) {
      const tree = trees[n]
      if (matches !== null && !someNode(tree.roots, matches, tree)) continue
      for (const row of rowsOf(tree)) {
        rows.push(row)
        if (row.depth === 0) tops.push(row)
      }
    }
    for (const [n, row] of tops.entries()) {
      row.position = n + 1
      row.setSize = tops.length
    }
    return rows
  }
}

function someNode(nodes, matches, tree) {
  return nodes.some((node) => matches(node, tree) || someNode(node.children, matches, tree))
}

/** The row of the request, when there is one, then its events, each before the events that it has caused. */
function rowsOf(tree) {
  if (tree.rowsVersion === tree.version) return tree.rows
  const rows = []
  if (tree.requestId !== null)
    rows.push({ key: tree.key, tree, node: null, depth: 0, guides: '', position: 1, setSize: 1 })
  const walk = (nodes, depth, guides) => {
    nodes.forEach((node, n) => {
      const isLast = n === nodes.length - 1
      rows.push({
        key: node.record.id,
        tree,
        node,
        depth,
        guides: depth === 0 ? '' : guides + (isLast ? 'L' : 'T'),
        position: n + 1,
        setSize: nodes.length,
      })
      walk(node.children, depth + 1, depth === 0 ? '' : guides + (isLast ? ' ' : 'I'))
    })
  }
  walk(tree.roots, tree.requestId === null ? 0 : 1, '')
  tree.rows = rows
  tree.rowsVersion = tree.version
  return rows
}

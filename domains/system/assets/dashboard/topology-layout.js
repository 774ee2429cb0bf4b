export const NODE_HEIGHT = 34
const ROW_STEP = 46
const LAYER_GAP = 72
const TOOL_GAP = 14
const CHAR_WIDTH = 7.3
const PADDING = 24
/** Lines of nodes have at least this width. */
const ROOM_MIN = 340

/** Positions of all nodes: on top the layers of plugins and events, below them plugins without events, at the bottom the tools. It is at least as wide as wanted. */
export function place(tied, edges, loose, tools, wantedWidth) {
  const nodes = new Map()
  const widthOf = (id) => Math.round(split(id)[1].length * CHAR_WIDTH) + (id.startsWith('event ') ? 84 : 26)
  let x = PADDING
  let bottom = PADDING
  const layers = layersOf(tied, edges)
  const tallest = Math.max(0, ...layers.map((layer) => layer.length))
  for (const layer of layers) {
    const width = Math.max(...layer.map(widthOf))
    const top = PADDING + ((tallest - layer.length) * ROW_STEP) / 2
    layer.forEach((id, n) => {
      nodes.set(id, { x, y: top + n * ROW_STEP, width })
      bottom = Math.max(bottom, top + (n + 1) * ROW_STEP)
    })
    x += width + LAYER_GAP
  }
  const room = Math.max(ROOM_MIN, wantedWidth, x - LAYER_GAP + PADDING)
  bottom = flow(nodes, loose, widthOf, room, bottom + (tied.length > 0 && loose.length > 0 ? 20 : 0))
  bottom = flow(
    nodes,
    tools.map((name) => `tool ${name}`),
    widthOf,
    room,
    bottom + 36,
  )
  return { nodes, width: room, height: bottom + PADDING }
}

/** Places nodes in lines, as words in a text. @returns the lower end of the last line */
function flow(nodes, ids, widthOf, room, top) {
  let x = PADDING
  let y = top
  for (const id of ids) {
    const width = widthOf(id)
    if (x > PADDING && x + width > room - PADDING) {
      x = PADDING
      y += ROW_STEP
    }
    nodes.set(id, { x, y, width })
    x += width + TOOL_GAP
  }
  return ids.length === 0 ? top : y + NODE_HEIGHT
}

/** A curve to the right. A curve to the left runs below the direct line, or below the nodes in between. */
function curve(from, to) {
  const [y1, y2] = [from.y + NODE_HEIGHT / 2, to.y + NODE_HEIGHT / 2]
  if (to.x > from.x + from.width) return bow(from.x + from.width, y1 - 4, to.x - 3, y2 - 4)
  if (from.x - to.x - to.width < 2 * LAYER_GAP && from.x > to.x) return bow(from.x, y1 + 6, to.x + to.width + 3, y2 + 6)
  const [x1, x2] = [from.x + from.width / 2, to.x + to.width / 2]
  const [below, end] = [from.y + NODE_HEIGHT, to.y + NODE_HEIGHT]
  const deep = Math.max(below, end) + 34
  return `M${x1} ${below}C${x1} ${deep} ${x2} ${deep} ${x2} ${end + 3}`
}

function bow(x1, y1, x2, y2) {
  const middle = (x1 + x2) / 2
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`
}

/** A curve from a plugin down to a tool that it uses. */
function drop(from, to) {
  const [x1, y1, x2] = [from.x + from.width / 2, from.y + NODE_HEIGHT, to.x + to.width / 2]
  const middle = (y1 + to.y) / 2
  return `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${to.y}`
}

/** What the path of an edge is: its class, its course, and its end. */
export function edgeOf(from, to, nodes) {
  const ends = [nodes.get(from), nodes.get(to)]
  if (to.startsWith('tool ')) return { kind: 'edge-tool', d: drop(...ends) }
  return { kind: ends[1].x <= ends[0].x ? 'edge-back' : '', d: curve(...ends), marker: 'url(#arrow)' }
}

/** `event user.created` → kind and name. */
export function split(id) {
  const at = id.indexOf(' ')
  return [id.slice(0, at), id.slice(at + 1)]
}

/** Sweeps over the layers to reduce crossings. With so few nodes, further sweeps change nothing. */
const SWEEPS = 6

/**
 * Places the nodes of a directed graph in layers from left to right, each as far left as its predecessors allow, and reduces crossings
 * by moving nodes to the middle of their neighbours. Edges that close a cycle are ignored.
 * Source: Sugiyama, Tagawa, Toda, "Methods for Visual Understanding of Hierarchical System Structures", 1981.
 * @param {string[]} ids
 * @param {[from: string, to: string][]} edges
 * @returns {string[][]} layers of ids, in their order from top to bottom
 */
export function layersOf(ids, edges) {
  const out = new Map(ids.map((id) => [id, []]))
  for (const [from, to] of edges) out.get(from)?.push(to)
  const forward = withoutCircles(ids, out)
  const layerOf = longestPaths(ids, forward)
  const layers = []
  for (const id of ids) {
    const layer = layerOf.get(id)
    layers[layer] ??= []
    layers[layer].push(id)
  }
  const into = new Map(ids.map((id) => [id, []]))
  for (const [from, targets] of out) for (const to of targets) into.get(to).push(from)
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isDown = sweep % 2 === 0
    const order = isDown ? layers.keys() : [...layers.keys()].reverse()
    const placeOf = new Map()
    for (const layer of layers) settle(layer, placeOf)
    for (const n of order) {
      const middle = (id) => {
        const near = (isDown ? into : out).get(id).filter((each) => layerOf.get(each) !== n)
        return near.length === 0
          ? placeOf.get(id)
          : near.reduce((sum, each) => sum + placeOf.get(each), 0) / near.length
      }
      const middles = new Map(layers[n].map((id) => [id, middle(id)]))
      layers[n].sort((a, b) => middles.get(a) - middles.get(b))
      settle(layers[n], placeOf)
    }
  }
  return layers
}

/** Gives each node of a layer its position, from 0 to 1. */
function settle(layer, placeOf) {
  for (const [n, id] of layer.entries()) placeOf.set(id, n / layer.length)
}

/** The edges without those that close a cycle. */
function withoutCircles(ids, out) {
  const state = new Map()
  const forward = new Map(ids.map((id) => [id, []]))
  const walk = (id) => {
    state.set(id, 'open')
    for (const to of out.get(id)) {
      if (state.get(to) === 'open') continue
      forward.get(id).push(to)
      if (!state.has(to)) walk(to)
    }
    state.set(id, 'done')
  }
  const hasCause = new Set([...out.values()].flat())
  for (const id of ids) if (!hasCause.has(id)) walk(id)
  for (const id of ids) if (!state.has(id)) walk(id)
  return forward
}

function longestPaths(ids, forward) {
  const causes = new Map(ids.map((id) => [id, 0]))
  for (const targets of forward.values()) for (const to of targets) causes.set(to, causes.get(to) + 1)
  const layerOf = new Map(ids.map((id) => [id, 0]))
  const ready = ids.filter((id) => causes.get(id) === 0)
  for (const id of ready) {
    for (const to of forward.get(id)) {
      layerOf.set(to, Math.max(layerOf.get(to), layerOf.get(id) + 1))
      causes.set(to, causes.get(to) - 1)
      if (causes.get(to) === 0) ready.push(to)
    }
  }
  return layerOf
}

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
